"""Training a reader: repeatable, resumable, and on strings of the training split."""

import contextlib
import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.models.tiny_reader import TINY
from vitreous.checkpoints.readers import load_reader
from vitreous.cli.__main__ import main
from vitreous.data.shards import pack
from vitreous.data.strings import draw_string
from vitreous.errors import CheckpointError, ConfigError, RunError
from vitreous.models.reader import STOP
from vitreous.objectives.reading import ctc_loss, writing_loss
from vitreous.training import reader as training
from vitreous.training.loop import Step
from vitreous.training.reader import ReaderJob, bank_of, fresh_state, mixed, run_reader

JOB = ReaderJob(
    config=TINY,
    recipe=replace(training.RECIPE, batch_size=8, max_steps=5, precision="float32"),
    check_every=3,
    validation_strings=12,
)


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of 12 strings, drawn in this process: four together are six steps."""
    monkeypatch.setattr(training, "SHARD", 12)
    monkeypatch.setattr(training, "drawing_ahead", lambda *_: nullcontext())


def run_to_end(out: Path, *, resume: bool = False) -> list[float]:
    return [e.loss for e in run_reader(JOB, out, resume=resume) if isinstance(e, Step)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    out = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "SHARD", 12)
        patch.setattr(training, "drawing_ahead", lambda *_: nullcontext())
        return out, run_to_end(out)


@pytest.mark.parametrize("stop", [1, 3, 4])
def test_a_stopped_run_goes_on_bit_for_bit(whole, tmp_path, stop: int):
    with contextlib.closing(run_reader(JOB, tmp_path)) as events:
        losses = []
        for event in events:
            losses += [event.loss] if isinstance(event, Step) else []
            if len(losses) == stop:
                break
    losses += run_to_end(tmp_path, resume=True)
    assert losses == whole[1]
    for name in ("model.safetensors", "config.json"):
        mine, theirs = ((folder / name).read_bytes() for folder in (tmp_path, whole[0]))
        assert mine == theirs


def test_what_a_run_leaves_says_how_it_was_made(whole):
    facts = json.loads((whole[0] / "config.json").read_text())
    assert facts["facts"]["run"]["seed"] == 0
    assert facts["facts"]["run"]["recipe"]["max_steps"] == 5
    assert 0.1 < facts["temperature"] < 20
    assert 0 <= facts["threshold"] <= 1
    history = json.loads((whole[0] / "history.json").read_text())
    assert [one["steps"] for one in history] == [3, 5]


def test_a_run_that_has_ended_is_not_run_again(whole):
    with pytest.raises(RunError, match="ended"):
        run_to_end(whole[0], resume=True)
    with pytest.raises(RunError, match="choose another"):
        run_to_end(whole[0])


def test_a_reader_goes_to_a_file_and_comes_back(whole):
    model = load_reader(whole[0])
    assert model.config == TINY
    assert not model.training
    (whole[0] / "cut.safetensors").write_bytes((whole[0] / "model.safetensors").read_bytes()[:900])
    with pytest.raises(CheckpointError):
        load_reader(whole[0] / "cut.safetensors")


def test_a_run_can_begin_with_anothers_weights(whole):
    state = fresh_state(replace(JOB, start=str(whole[0])))
    for name, tensor in load_reader(whole[0]).state_dict().items():
        assert torch.equal(state.weights[name], tensor)
    with pytest.raises(RunError, match="this run is of"):
        fresh_state(ReaderJob(start=str(whole[0])))


def test_banks_of_the_three_parts_share_no_digit():
    parts = [bank_of(part).images for part in ("training", "validation", "test")]
    assert [len(part) for part in parts] == [48_000, 12_000, 10_000]
    keys = [{image.tobytes() for image in part} for part in parts]
    assert len(keys[0] & keys[1]) + len(keys[0] & keys[2]) + len(keys[1] & keys[2]) < 5


def test_a_new_file_is_mixed_with_earlier_ones_only():
    for number in range(9):
        chosen = mixed(0, number)
        assert chosen[0] == number
        assert max(chosen) == number
        assert len(chosen) == training.TOGETHER
    assert mixed(3, 7) == mixed(3, 7)


def test_a_batch_holds_strings_of_like_width_and_none_twice():
    strips = [pack([draw_string(bank_of("validation"), 0, i) for i in range(12)])] * 4
    rows = training.batch_rows(JOB, 0, strips)
    whole = np.concatenate(rows)
    assert len(whole) == len(set(whole.tolist())) == 48
    widths = np.concatenate([one.widths for one in strips])
    assert max(np.ptp(widths[row]) for row in rows) < np.ptp(widths)


def test_the_loss_asks_for_each_digit_and_then_for_the_end():
    state = fresh_state(JOB)
    model = state.working.model.eval()
    images, widths = torch.rand(2, 1, 32, 40), torch.tensor([40, 40])
    loss = training.loss_of(model, images, widths, ["07", ""])
    before = torch.tensor([[11, 0, 7], [11, 11, 11]])
    wanted = torch.tensor([[0, 7, STOP], [STOP, -100, -100]])
    written, columns, real = model(images, widths, before)
    digits, lengths = torch.tensor([[0, 7], [0, 0]]), torch.tensor([2, 0])
    by_hand = 0.7 * writing_loss(written, wanted) + 0.3 * ctc_loss(columns, real, digits, lengths)
    torch.testing.assert_close(loss, by_hand)


def test_the_verb_shows_what_it_would_do_and_refuses_what_a_reader_has_not(tmp_path, capsys):
    words = ["train", "reader", "--set", "max_steps=7", "--set", "width=64", "--dry-run"]
    assert main(words) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["steps"] == 7
    assert shown["job"]["config"]["width"] == 64
    assert main(["train", "reader", "--source", "mnist"]) == 1
    assert "--source" in capsys.readouterr().err
    assert main(["train", "reader", "--set", "wdith=64"]) == 1
    assert "width" in capsys.readouterr().err
    assert main(["train", "--start-from", "runs/x"]) == 1
    assert "vitreous train reader" in capsys.readouterr().err


def test_the_verb_trains_and_says_where(tmp_path, capsys, monkeypatch):
    few = training.validation_strings(JOB)
    monkeypatch.setattr(training, "validation_strings", lambda _: few)
    out = tmp_path / "run"
    tiny = {"width": 16, "depth": 1, "heads": 2, "stem": "[4,8,8]", "batch_size": 8, "max_steps": 2}
    words = [word for key, value in tiny.items() for word in ("--set", f"{key}={value}")]
    assert main(["train", "reader", *words, "--out", str(out), "--json"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    assert json.loads(last) == {"run": str(out)}
    assert main(["train", "--resume", str(out)]) == 1
    assert "ended" in capsys.readouterr().err


def test_the_runs_of_the_packages_weights_follow_each_other_and_go_on(
    tmp_path, capsys, monkeypatch
):
    few = training.validation_strings(JOB)
    monkeypatch.setattr(training, "validation_strings", lambda _: few)
    second = replace(JOB, start=str(tmp_path / "a"), seed=1)
    monkeypatch.setattr(
        training, "stages", lambda _: [(JOB, tmp_path / "a"), (second, tmp_path / "b")]
    )
    words = ["train", "reader", "--out", str(tmp_path), "--json"]
    assert main(words) == 0
    made = (tmp_path / "b" / "model.safetensors").read_bytes()
    assert made != (tmp_path / "a" / "model.safetensors").read_bytes()
    for path in (tmp_path / "b").glob("*.json"):
        path.unlink()
    (tmp_path / "b" / "model.safetensors").unlink()
    capsys.readouterr()
    assert main(words) == 0
    assert "training" not in capsys.readouterr().err
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == made


def test_the_packages_weights_are_three_runs_each_from_the_one_before():
    jobs, folders = zip(*training.stages(Path("runs")), strict=True)
    assert [job.strings for job in jobs] == ["rough", "hard", "legible"]
    assert [job.start for job in jobs] == [None, *map(str, folders[:-1])]
    assert len({job.seed for job in jobs}) == len(set(folders)) == 3


@pytest.mark.parametrize("seed", [training.VALIDATION_SEED, training.TEST_SEED, -1])
def test_nobody_trains_on_held_out_strings(seed: int):
    with pytest.raises(ConfigError, match="strings of validation and test"):
        training.ReaderJob(seed=seed)
