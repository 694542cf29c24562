"""Runs that start from trained weights."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.training.small import (
    CONFIG,
    RECIPE,
    digits,
    make_job,
    outcome,
    stopped_after,
    whole,
    write_npz,
)
from vitreous.checkpoints.store import load, save
from vitreous.errors import CheckpointError, ConfigError, RunError
from vitreous.models.classifier import build
from vitreous.objectives.classification import classification_loss
from vitreous.protocol.splits import training_and_validation
from vitreous.training.fine_tuning import fine_tune
from vitreous.training.folder import RUN
from vitreous.training.job import Job, job_of
from vitreous.training.layers import layer_of
from vitreous.training.optimizers import make_optimizers
from vitreous.training.run import batches, fresh_state, labelled, run
from vitreous.training.start import Start, begin, open_weights, slow_down, start_from
from vitreous.training.verify import verify

DEEP = replace(CONFIG, depth=3, register_tokens=1, layer_scale=0.1, classes=4)
START = Start(weights="x", sha256="y")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A model of four classes."""
    torch.manual_seed(1)
    save(build(DEEP), tmp_path / "weights")
    return tmp_path / "weights"


def tuned_job(weights: Path, *, recipe=RECIPE, seed: int = 0, **options) -> Job:
    data = digits()
    config, start = start_from(weights, data, **options)
    return Job(config, recipe, data, seed, torch.device("cpu"), start)


def body(model) -> dict:
    return {n: t for n, t in model.state_dict().items() if not n.startswith("head")}


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize(("precision", "average"), [("float32", 0.0), ("bfloat16", 0.9)])
def test_what_is_frozen_ends_as_it_began_bit_for_bit_and_the_head_learns(
    optimizer, precision, average, weights, tmp_path, no_report
):
    recipe = replace(RECIPE, optimizer=optimizer, precision=precision, average=average)
    job = tuned_job(weights, recipe=replace(recipe, decay_everything=True), freeze=True)
    begun = fresh_state(job).working.master.head.weight.clone()
    whole(job, tmp_path / "run")
    source, tuned = body(load(weights)), load(tmp_path / "run")
    assert all(torch.equal(tensor, source[name]) for name, tensor in body(tuned).items())
    assert not torch.equal(tuned.head.weight, begun)


def test_a_frozen_backbone_drops_nothing_while_the_head_trains(weights, tmp_path, no_report):
    job = tuned_job(weights, freeze=True, dropout=0.5, drop_path=0.5, attention_dropout=0.5)
    events = run(job, tmp_path / "run")
    loss = next(events).loss
    events.close()
    assert loss == pytest.approx(first_loss(job), rel=1e-5)


def first_loss(job: Job) -> float:
    """Of the first batch in eval mode throughout."""
    state = fresh_state(job)
    training, _ = training_and_validation(job.dataset.train_labels)
    batch = next(iter(batches(job, state, labelled(job, training))))
    model = state.working.model.eval()
    return classification_loss(model(batch.images), batch.labels, smoothing=0.0).item()


def test_without_freezing_every_weight_moves(weights, tmp_path, no_report):
    whole(tuned_job(weights), tmp_path / "run")
    source, tuned = body(load(weights)), body(load(tmp_path / "run"))
    same = {n for n, t in tuned.items() if t.is_floating_point() and torch.equal(t, source[n])}
    assert same == set()


def test_the_first_step_sees_the_trained_weights_and_a_fresh_head(weights):
    state = fresh_state(tuned_job(weights, layer_decay=0.5))
    source, begun = load(weights), state.working.master
    assert all(torch.equal(tensor, body(source)[name]) for name, tensor in body(begun).items())
    assert begun.head.weight.shape == (3, 8)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("decay", [0.5, 0.75, 1.0])
def test_rates_are_those_of_the_formula(optimizer: str, decay: float):
    model = build(DEEP)
    recipe = replace(RECIPE, optimizer=optimizer, weight_decay=0.1)
    plain = make_optimizers(model, recipe)
    full = {id(p): (g["peak"], g["weight_decay"]) for o in plain for g in o.param_groups
            for p in g["params"]}  # fmt: skip
    lowered = make_optimizers(model, recipe)
    slow_down(replace(START, layer_decay=decay), model, lowered)
    names = {id(p): name for name, p in model.named_parameters()}
    groups = [group for one in lowered for group in one.param_groups]
    assert sorted(id(p) for g in groups for p in g["params"]) == sorted(names)
    for group in groups:
        for parameter in group["params"]:
            peak, weight_decay = full[id(parameter)]
            wanted = peak * decay ** (3 + 1 - by_hand(names[id(parameter)]))
            assert group["peak"] == group["lr"] == pytest.approx(wanted, rel=1e-12)
            assert group["weight_decay"] == weight_decay


def by_hand(name: str) -> int:
    """Which of embeddings (0), blocks (1, 2, 3) and the rest (4) of the deep model."""
    table = {"cls_token": 0, "reg_token": 0, "pos_embed": 0, "patch_embed": 0, "head": 4}
    table |= {"encoder.norm": 4, "pool": 4}
    table |= {f"encoder.blocks.{block}.": block + 1 for block in range(3)}
    (layer,) = {layer for start, layer in table.items() if name.startswith(start)}
    return layer


def test_an_attention_pool_learns_with_the_head():
    model = build(replace(DEEP, pooling="attention"))
    layers = {layer_of(n, 3) for n, _ in model.named_parameters() if n.startswith("pool.")}
    assert layers == {4}


@pytest.mark.parametrize("options", [{"freeze": True}, {"layer_decay": 0.75}])
@pytest.mark.parametrize(("optimizer", "precision"), [("adamw", "float32"), ("muon", "bfloat16")])
def test_a_stopped_run_goes_on_bit_for_bit_without_its_source(
    options, optimizer, precision, weights, tmp_path, no_report
):
    recipe = replace(RECIPE, optimizer=optimizer, precision=precision)
    data = write_npz(digits(), tmp_path / "data.npz")
    job = tuned_job(weights, recipe=recipe, **options)
    job = replace(job, dataset=replace(job.dataset, name=str(data)))
    unbroken = whole(job, tmp_path / "whole")
    stopped_after(job, tmp_path / "broken", 7)
    for file in weights.iterdir():
        file.unlink()
    again = job_of(tmp_path / "broken", device="cpu")
    assert again.start == job.start
    whole(again, tmp_path / "broken", resume=True)
    assert outcome(tmp_path / "broken") == unbroken


def test_resuming_from_other_weights_is_refused(weights, tmp_path, no_report):
    job = tuned_job(weights, freeze=True)
    stopped_after(job, tmp_path / "run", 3)
    for other in (replace(job.start, sha256="0"), replace(job.start, freeze=False), None):
        with pytest.raises(RunError, match="started with another start"):
            next(run(replace(job, start=other), tmp_path / "run", resume=True))


def test_the_run_folder_says_what_it_started_from(weights, tmp_path, no_report):
    job = tuned_job(weights, layer_decay=0.5)
    whole(job, tmp_path / "run")
    start = json.loads((tmp_path / "run" / RUN).read_text())["start"]
    assert start["weights"] == str(weights)
    assert start["sha256"] == job.start.sha256
    assert start["layer_decay"] == 0.5
    assert "the head of 4 classes is dropped" in start["notes"][0]
    assert f"{weights}, sha256 {start['sha256']}" in (tmp_path / "run" / "README.md").read_text()


def test_a_run_without_a_start_records_none():
    assert "start" not in make_job().describe()


def test_a_tuned_run_is_verified(weights, tmp_path, no_report):
    data = write_npz(digits(60, 20), tmp_path / "data.npz")
    fine_tune(weights, data, recipe=RECIPE, out=tmp_path / "run", freeze=True)
    assert all(check.holds for check in verify(tmp_path / "run"))


def test_grey_images_of_another_size_are_fitted_and_all_of_it_is_said(tmp_path, no_report):
    colour = replace(DEEP, channels=3, image_size=(12, 16))
    save(build(colour), tmp_path / "colour")
    config, start = start_from(tmp_path / "colour", digits())
    assert (config.image_shape, config.channels, config.classes) == ((8, 8), 1, 3)
    told = " ".join(start.notes)
    for words in (
        "the head of 4 classes is dropped",
        "summed over 3 channels: 3 became 1",
        "from a grid of (3, 4) to (2, 2)",
        "the weights know pixels minus (0.5, 0.5, 0.5) over (0.5, 0.5, 0.5); these data",
    ):
        assert words in told


def test_rates_of_dropout_may_change_and_widths_may_not(weights):
    config, _ = start_from(weights, digits(), dropout=0.3)
    assert config.dropout == 0.3
    with pytest.raises(CheckpointError, match="ask for another model than the weights hold"):
        start_from(weights, digits(), depth=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"freeze": True, "layer_decay": 0.5}, "exclude each other"),
        ({"layer_decay": 0.0}, "layer_decay=0.0 must be above 0 and at most 1"),
        ({"layer_decay": 1.5}, "layer_decay=1.5"),
    ],
)
def test_what_contradicts_is_refused_before_anything_is_read(options, words, tmp_path):
    with pytest.raises(ConfigError, match=words):
        start_from(tmp_path / "absent", digits(), **options)


def test_absent_weights_are_named(tmp_path):
    with pytest.raises(CheckpointError, match="absent: there is no such file or folder"):
        start_from(tmp_path / "absent", digits())


def test_weights_of_another_library_go_to_its_reader(tmp_path, monkeypatch):
    (tmp_path / "foreign.npz").write_bytes(b"foreign")
    model = build(DEEP)
    asked = []
    reader = SimpleNamespace(load_weights=lambda *a, **k: asked.append((a, k)) or (model, None))
    monkeypatch.setitem(sys.modules, "vitreous.interop", SimpleNamespace(load=reader))
    monkeypatch.setitem(sys.modules, "vitreous.interop.load", reader)
    assert open_weights(tmp_path / "foreign.npz", heads=2)[0] is model
    assert asked == [((tmp_path / "foreign.npz",), {"heads": 2})]


def test_a_damaged_checkpoint_of_ours_is_ours_and_is_named(weights):
    file = weights / "model.safetensors"
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        open_weights(weights)


def test_beginning_does_not_touch_the_head():
    model = build(CONFIG)
    head = model.head.weight.clone()
    begin(replace(START, freeze=True), model)
    assert torch.equal(model.head.weight, head)
    trains = {name for name, p in model.named_parameters() if p.requires_grad}
    assert trains == {"head.weight", "head.bias"}
