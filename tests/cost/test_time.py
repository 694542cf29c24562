import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.models.drawn import own_configs
from vitreous import DataError, Recipe, ViTConfig, preset
from vitreous.cost.calibration import HEAD_DIMS, NAMES, Calibration, calibration_file, read
from vitreous.cost.flops import first_map, forward
from vitreous.cost.parameters import count_parameters, hidden_matrices
from vitreous.cost.time import predict

NOTHING = 1e-30
SMALL = ViTConfig(image_size=8, patch_size=2, width=16, depth=3, heads=2)
RECIPE = Recipe(batch_size=4, optimizer="adamw")


def machine(**seconds: float) -> Calibration:
    """One on which every unit of the named kinds takes so long, and all else nothing."""
    kinds = {name: seconds.get(name.replace(".", "_"), NOTHING) for name in NAMES}
    curves = {name: [(1.0, each)] for name, each in kinds.items()}
    return Calibration(machine="abacus", threads=1, torch="0", measured="now", curves=curves)


@given(config=own_configs())
@example(config=SMALL)
@example(config=replace(SMALL, pooling="attention", activation="swiglu"))
@settings(deadline=None, max_examples=50)
def test_an_answer_takes_as_long_as_its_multiply_adds_where_only_those_take_time(config):
    speeds = machine(linear_forward_float32=1.0, convolution_forward_float32=1.0)
    parts = forward(config)
    pooled = 2 * config.tokens * config.width * (config.pooling == "attention")
    wanted = parts.total - parts.attention_products - pooled
    assert predict(config, RECIPE, speeds).image == pytest.approx(wanted)


@given(config=own_configs())
@example(config=SMALL)
@settings(deadline=None, max_examples=50)
def test_a_step_leaves_out_tokens_that_nobody_pools_and_the_gradient_of_pixels(config):
    speeds = machine(linear_backward_bfloat16=1.0, convolution_backward_bfloat16=1.0)
    parts = forward(config, train=True)
    pooled = 2 * config.tokens * config.width * (config.pooling == "attention")
    wanted = parts.total - parts.attention_products - pooled - first_map(config) / 2
    assert predict(config, RECIPE, speeds).step == pytest.approx(RECIPE.batch_size * wanted)


@given(config=own_configs())
@settings(deadline=None, max_examples=50)
def test_every_weight_of_attention_is_paid_once(config):
    seconds = {f"attention{e}_inference_float32": 1.0 for e in HEAD_DIMS}
    rows = config.depth * config.tokens + (config.pooling == "attention")
    paid = predict(config, RECIPE, machine(**seconds)).image
    assert paid == pytest.approx(rows * config.tokens * config.heads)


@given(config=own_configs())
@settings(deadline=None, max_examples=50)
def test_adamw_pays_for_every_parameter_and_muon_for_its_matrices(config):
    everything = predict(config, RECIPE, machine(adamw=1.0)).step
    assert everything == pytest.approx(count_parameters(config))
    muon = replace(RECIPE, optimizer="muon")
    rest = predict(config, muon, machine(adamw=1.0)).step
    assert everything - rest == pytest.approx(hidden_matrices(config))
    assert predict(config, muon, machine(muon=1.0)).step > 0.1
    assert predict(config, RECIPE, machine(muon=1.0)).step < 0.1


def test_a_machine_twice_as_slow_takes_twice_as_long():
    fast, slow = (machine(**{n.replace(".", "_"): each for n in NAMES}) for each in (1.0, 2.0))
    for precision in ("float32", "bfloat16"):
        recipe = Recipe(precision=precision)
        one, two = (predict(preset("digits"), recipe, speeds) for speeds in (fast, slow))
        assert two == pytest.approx((2 * one.step, 2 * one.image))


def test_a_larger_batch_takes_longer_by_as_much_for_every_image_and_is_updated_once():
    speeds = machine(linear_forward_bfloat16=1e-3, adamw=1.0)
    steps = [predict(SMALL, replace(RECIPE, batch_size=b), speeds).step for b in (1, 2, 3)]
    assert steps[2] - steps[1] == pytest.approx(steps[1] - steps[0])
    assert 2 * steps[0] - steps[1] == pytest.approx(count_parameters(SMALL))


@given(size=st.floats(1, 1000))
def test_between_two_sizes_a_speed_is_between_theirs_and_beyond_them_as_at_the_end(size):
    curves = machine().curves | {"muon": [(10.0, 4.0), (100.0, 1.0)]}
    speeds = replace(machine(), curves=curves)
    assert 1.0 <= speeds.seconds("muon", size) <= 4.0
    assert (speeds.seconds("muon", 10), speeds.seconds("muon", 100)) == (4.0, 1.0)
    assert speeds.seconds("muon", math.sqrt(1000)) == pytest.approx(2.0)
    assert (speeds.seconds("muon", 1), speeds.seconds("muon", 1e6)) == (4.0, 1.0)


# the file


def test_a_calibration_comes_back_from_its_file(tmp_path: Path):
    (tmp_path / "machine.json").write_text(json.dumps(machine(muon=0.5).to_dict()))
    assert read(tmp_path / "machine.json") == machine(muon=0.5)


def test_it_is_kept_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert calibration_file() == tmp_path / "vitreous" / "machine.json"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert calibration_file() == tmp_path / ".cache" / "vitreous" / "machine.json"


def damaged(**changes: object) -> str:
    return json.dumps(asdict(machine()) | changes)


def without(name: str) -> dict[str, object]:
    return {n: curve for n, curve in machine().curves.items() if n != name}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "null",
        damaged()[:-40],
        damaged(more=1),
        damaged(curves=[]),
        damaged(curves=without("muon")),
        damaged(curves=without("muon") | {"muon": []}),
        damaged(curves=without("muon") | {"muon": [[1, 0]]}),
        damaged(curves=without("muon") | {"muon": [[1, math.nan]]}),
        damaged(curves=without("muon") | {"muon": [[2, 1], [1, 1]]}),
        damaged(curves=without("muon") | {"muon": [[1, "fast"]]}),
        damaged(curves=without("muon") | {"muon": [1]}),
    ],
)
def test_a_damaged_file_is_answered_with_what_to_run(content: str, tmp_path: Path):
    file = tmp_path / "machine.json"
    file.write_text(content)
    with pytest.raises(DataError, match=r"machine.json: no whole calibration .*vitreous measure"):
        read(file)


def test_a_machine_that_was_not_measured_is_answered_with_what_to_run(tmp_path: Path):
    with pytest.raises(DataError, match="not been measured yet; run: vitreous measure"):
        read(tmp_path / "machine.json")
    with pytest.raises(DataError, match=r"not readable: Is a directory; run: vitreous measure"):
        read(tmp_path)
