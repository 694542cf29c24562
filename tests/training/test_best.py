"""Which epoch's weights are kept: one bias starts at 0 and grows by one each epoch."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.training.small import make_job, scores
from vitreous.checkpoints.store import load
from vitreous.protocol.stopping import Patience
from vitreous.training import run as runs
from vitreous.training.loop import Step
from vitreous.training.run import fresh_state, run
from vitreous.training.state import Epoch


@pytest.fixture
def one_more_each_epoch(monkeypatch: pytest.MonkeyPatch, no_report) -> pytest.MonkeyPatch:
    def steps_of_epoch(job, state, data) -> Iterator[Step]:
        state.step += 5
        state.images, state.training_seconds = 20, 1.0
        with torch.no_grad():
            state.working.master.head.bias += 1
        state.working.take_weights()
        state.follow(job.recipe.average)
        yield Step(state.step - 1, 1.0, 20)

    monkeypatch.setattr(runs, "steps_of_epoch", steps_of_epoch)
    return monkeypatch


def losses(patch: pytest.MonkeyPatch, *those: float) -> None:
    made = scores(*those)
    patch.setattr(runs, "score", lambda *_: next(made))


def kept(out: Path) -> float:
    bias = load(out).head.bias
    assert torch.equal(bias, bias[:1].expand(3))
    return bias[0].item()


CASES = {
    "patience ends the run": ((3.0, 1.0, 2.0, 2.0, 2.0), 3, 10),
    "the last epoch ends the run": ((3.0, 1.0, 2.0), 5, 3),
}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(("those", "patience", "epochs"), CASES.values(), ids=CASES.keys())
def test_the_best_weights_are_copies_and_are_put_back(
    those, patience, epochs, precision, one_more_each_epoch, tmp_path
):
    losses(one_more_each_epoch, *those)
    job = make_job(keep="best", patience=patience, epochs=epochs, precision=precision)
    *_, result = run(job, tmp_path / "run")
    assert kept(tmp_path / "run") == 2.0
    assert result.epochs == len(those)
    assert result.kept == "weights after epoch 2, of the lowest validation loss"


@pytest.mark.parametrize(("those", "patience", "epochs"), CASES.values(), ids=CASES.keys())
def test_keeping_the_last_keeps_the_last(those, patience, epochs, one_more_each_epoch, tmp_path):
    losses(one_more_each_epoch, *those)
    *_, result = run(make_job(patience=patience, epochs=epochs), tmp_path / "run")
    assert kept(tmp_path / "run") == len(those)
    assert result.kept == f"weights after epoch {len(those)}, the last"


def test_of_a_moving_average_the_best_epochs_average_is_kept(one_more_each_epoch, tmp_path):
    losses(one_more_each_epoch, 3.0, 1.0, 2.0)
    job = make_job(keep="best", average=0.5)
    list(run(job, tmp_path / "run"))
    # The share of the newest weights is 1 - min(0.5, (1 + step) / (10 + step)): a half from step 8.
    first = (1 - 6 / 15) * 1
    assert kept(tmp_path / "run") == pytest.approx((first + 2) / 2)


def test_patience_and_best_outlive_a_stop(one_more_each_epoch, tmp_path):
    losses(one_more_each_epoch, 0.50, 0.40, 0.45)
    job, out = make_job(keep="best", patience=2, epochs=9), tmp_path / "run"
    for event in run(job, out):
        if isinstance(event, Epoch) and event.epoch == 3:
            break
    losses(one_more_each_epoch, 0.44)
    *_, result = run(job, out, resume=True)
    assert result.epochs == 4
    assert kept(out) == 2.0
    assert result.kept == "weights after epoch 2, of the lowest validation loss"


def test_a_copy_does_not_follow_the_weights():
    state = fresh_state(make_job())
    state.keep_best()
    with torch.no_grad():
        state.working.master.head.bias += 1
    assert state.best is not None
    assert state.best["head.bias"].tolist() == [0.0, 0.0, 0.0]


def test_a_gain_below_min_delta_is_not_kept(one_more_each_epoch, tmp_path):
    losses(one_more_each_epoch, 1.0, 0.96, 0.92, 0.90)
    list(run(make_job(keep="best", min_delta=0.05, epochs=4), tmp_path / "run"))
    assert kept(tmp_path / "run") == 3.0


def test_the_average_follows_by_its_decay_once_it_is_old():
    state = fresh_state(make_job(average=0.9))
    assert state.average is not None
    with torch.no_grad():
        state.working.master.head.bias += 1
    state.step = 1000
    for wanted in (0.1, 0.19, 0.271):
        state.follow(0.9)
        assert state.average["head.bias"][0].item() == pytest.approx(wanted)


def test_a_recipes_patience_reaches_the_run():
    assert fresh_state(make_job(patience=4, min_delta=0.1)).patience == Patience(4, 0.1)
