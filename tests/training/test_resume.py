"""A run that was stopped ends as if it had not been, to the last bit."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch

from tests.training.small import (
    AUGMENTATION,
    CONFIG,
    digits,
    make_job,
    outcome,
    stopped_after,
    whole,
)
from vitreous.errors import CheckpointError, RunError
from vitreous.training import run as runs
from vitreous.training.folder import SNAPSHOT
from vitreous.training.run import fresh_state, run
from vitreous.training.state import Epoch, restore, snapshot

NAMES = ("optimizer", "precision", "average", "keep")
flat = lambda lists: list(itertools.chain.from_iterable(lists))
PAIRS = [
    ("adamw", "float32", 0.0, "last"),
    ("adamw", "bfloat16", 0.9, "best"),
    ("muon", "float32", 0.9, "last"),
    ("muon", "bfloat16", 0.0, "best"),
]


def job_of(optimizer: str, precision: str, average: float, keep: str):
    return make_job(
        optimizer=optimizer,
        precision=precision,
        average=average,
        keep=keep,
        patience=5,
        label_smoothing=0.1,
        **AUGMENTATION,
    )


@pytest.mark.parametrize(NAMES, PAIRS)
def test_stopping_after_step_7_changes_nothing(
    optimizer, precision, average, keep, tmp_path, no_report
):
    job = job_of(optimizer, precision, average, keep)
    unbroken = whole(job, tmp_path / "whole")
    stopped_after(job, tmp_path / "broken", 7)
    assert whole(job, tmp_path / "broken", resume=True) == unbroken


def test_stopping_after_every_single_step_changes_nothing(tmp_path, no_report):
    job = job_of("muon", "bfloat16", 0.9, "best")
    unbroken, out = whole(job, tmp_path / "whole"), tmp_path / "broken"
    for step in range(1, job.steps + 1):
        stopped_after(job, out, step, resume=step > 1)
    assert whole(job, out, resume=True) == unbroken


@pytest.mark.parametrize("epoch", [1, 2, 3])
def test_stopping_after_an_epoch_changes_nothing(epoch: int, tmp_path, no_report):
    job = job_of("adamw", "float32", 0.0, "best")
    unbroken = whole(job, tmp_path / "whole")
    for event in run(job, tmp_path / "broken"):
        if isinstance(event, Epoch) and event.epoch == epoch:
            break
    assert whole(job, tmp_path / "broken", resume=True) == unbroken


@pytest.mark.parametrize("most", [7, 13, 15])
def test_a_limit_in_the_middle_of_an_epoch_is_kept_over_a_stop(most: int, tmp_path, no_report):
    job = make_job(max_steps=most)
    unbroken = whole(job, tmp_path / "whole")
    stopped_after(job, tmp_path / "broken", 6)
    assert whole(job, tmp_path / "broken", resume=True) == unbroken
    assert unbroken["result"]["steps"] == most


def test_the_images_of_every_step_are_those_of_an_unbroken_run(tmp_path, no_report, monkeypatch):
    seen: list[tuple[int, list[int]]] = []
    plain = runs.augmented

    def watched(images, recipe, seed, step):
        seen.append((step, images[:, 0, 0, 0].tolist()))
        return plain(images, recipe, seed, step)

    monkeypatch.setattr(runs, "augmented", watched)
    job = job_of("adamw", "float32", 0.0, "last")
    whole(job, tmp_path / "whole")
    unbroken, seen[:] = list(seen), []
    stopped_after(job, tmp_path / "broken", 7)
    whole(job, tmp_path / "broken", resume=True)
    assert seen == unbroken
    epochs = [flat(ids for _, ids in unbroken[i : i + 5]) for i in (0, 5, 10)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(20))] * 3
    assert epochs[0] != epochs[1] != epochs[2]


def test_leaving_out_the_last_batch_leaves_out_other_images_each_epoch(
    tmp_path, no_report, monkeypatch
):
    seen: list[list[int]] = []
    plain = runs.augmented
    monkeypatch.setattr(
        runs,
        "augmented",
        lambda images, *o: seen.append(images[:, 0, 0, 0].tolist()) or plain(images, *o),
    )
    job = make_job(leave_out_last_batch=True)
    whole(job, tmp_path / "run")
    assert [len(ids) for ids in seen] == [4] * 12
    left = [set(range(20)) - set(flat(seen[i : i + 4])) for i in (0, 4, 8)]
    assert [len(ids) for ids in left] == [4, 4, 4]
    assert left[0] != left[1]


def test_a_snapshot_holds_every_number_of_the_state(tmp_path: Path):
    job = job_of("muon", "bfloat16", 0.9, "best")
    stopped_after(job, tmp_path / "run", 12)
    state = fresh_state(job)
    restore(state, tmp_path / "run" / SNAPSHOT)
    snapshot(state, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "run" / SNAPSHOT).read_bytes()


def test_a_snapshot_is_no_pickle_and_is_read_as_plain_tensors(tmp_path: Path):
    stopped_after(job_of("muon", "bfloat16", 0.9, "best"), tmp_path / "run", 7)
    tensors = safetensors.torch.load_file(tmp_path / "run" / SNAPSHOT)
    kinds = {name.split(".")[0] for name in tensors}
    assert kinds == {"weights", "average", "best", "optimizer"}
    momentum = [n for n in tensors if n.endswith("momentum_buffer")]
    assert momentum
    assert all(tensors[n].abs().sum() > 0 for n in momentum)


def test_a_snapshot_of_another_model_is_refused(tmp_path: Path):
    stopped_after(make_job(), tmp_path / "run", 3)
    state = fresh_state(make_job(optimizer="muon", average=0.5))
    tensors = safetensors.torch.load_file(tmp_path / "run" / SNAPSHOT)
    tensors.pop("weights.head.bias")
    safetensors.torch.save_file(tensors, tmp_path / "less", metadata={"state": "{}"})
    with pytest.raises(RunError, match="not a snapshot of this run"):
        restore(state, tmp_path / "less")


def test_a_torn_snapshot_is_refused(tmp_path: Path):
    out = tmp_path / "run"
    stopped_after(make_job(), out, 3)
    whole_file = (out / SNAPSHOT).read_bytes()
    (out / SNAPSHOT).write_bytes(whole_file[:-100])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        next(run(make_job(), out, resume=True))


@pytest.mark.parametrize(
    ("job", "what"),
    [
        (make_job(learning_rate=0.02), "recipe"),
        (make_job(seed=1), "seed"),
        (make_job(dataset=digits(seed=1)), "data_sha256"),
        (make_job(config=replace(CONFIG, depth=2)), "config"),
    ],
    ids=["recipe", "seed", "data", "config"],
)
def test_going_on_with_other_settings_is_refused_and_changes_nothing(job, what, tmp_path):
    out = tmp_path / "run"
    stopped_after(make_job(), out, 3)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(RunError, match=f"was started with another {what}"):
        next(run(job, out, resume=True))
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_a_run_that_has_ended_is_not_resumed_and_not_overwritten(tmp_path, no_report):
    out = tmp_path / "run"
    before = whole(make_job(), out)
    for resume in (True, False):
        with pytest.raises(RunError, match="a run that has ended is there"):
            next(run(make_job(), out, resume=resume))
    assert outcome(out) == before


def test_a_run_that_has_not_ended_is_not_overwritten_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "run"
    stopped_after(make_job(), out, 3)
    with pytest.raises(RunError, match=f"go on with: vitreous train --resume {out}"):
        next(run(make_job(), out))


def test_a_folder_without_a_run_is_not_resumed(tmp_path):
    with pytest.raises(RunError, match=r"is .* a run folder"):
        next(run(make_job(), tmp_path, resume=True))


def test_time_goes_on_where_it_was(tmp_path, no_report):
    out = tmp_path / "run"
    stopped_after(make_job(), out, 7)
    state = fresh_state(make_job())
    restore(state, out / SNAPSHOT)
    *_, result = run(make_job(), out, resume=True)
    assert 0 < state.seconds < result.train_seconds


@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 5, 6, 14])
@pytest.mark.parametrize(
    NAMES,
    list(
        itertools.product(["adamw", "muon"], ["float32", "bfloat16"], [0.0, 0.9], ["best", "last"])
    ),
)
def test_stopping_anywhere_with_any_recipe_changes_nothing(
    optimizer, precision, average, keep, step, tmp_path, no_report
):
    job = job_of(optimizer, precision, average, keep)
    unbroken = whole(job, tmp_path / "whole")
    stopped_after(job, tmp_path / "broken", step)
    assert whole(job, tmp_path / "broken", resume=True) == unbroken
