import os
import signal
import threading

import pytest

from tests.training.small import CONFIG, RECIPE, digits, make_job, outcome, whole
from vitreous.training import run as runs
from vitreous.training.interrupt import interrupts_held
from vitreous.training.run import train


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_only_asks(kind: signal.Signals):
    with interrupts_held() as interrupted:
        assert not interrupted()
        os.kill(os.getpid(), kind)
        assert interrupted()


def test_the_second_signal_acts():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with interrupts_held() as interrupted:
            os.kill(os.getpid(), signal.SIGINT)
            assert interrupted()
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_signals_did_before_they_do_after():
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}
    with interrupts_held():
        assert signal.getsignal(signal.SIGINT) is not before[signal.SIGINT]
    with interrupts_held():
        os.kill(os.getpid(), signal.SIGTERM)
    assert {kind: signal.getsignal(kind) for kind in before} == before


def test_in_another_thread_signals_are_not_ours():
    before, seen = signal.getsignal(signal.SIGINT), []

    def inside() -> None:
        with interrupts_held() as interrupted:
            seen.extend([interrupted(), signal.getsignal(signal.SIGINT) is before])

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [False, True]


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_training_stops_between_two_steps_and_goes_on_to_the_same_bits(
    kind, tmp_path, no_report, monkeypatch
):
    unbroken = whole(make_job(dataset=digits()), tmp_path / "whole")
    plain = runs.augmented

    def interrupted_in_step_7(images, recipe, seed, step):
        if step == 6:
            os.kill(os.getpid(), kind)
        return plain(images, recipe, seed, step)

    monkeypatch.setattr(runs, "augmented", interrupted_in_step_7)
    out = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt, match="go on with resume=True"):
        train(CONFIG, digits(), recipe=RECIPE, out=out)
    monkeypatch.undo()
    monkeypatch.setattr(runs, "render_report", lambda out: out)
    train(CONFIG, digits(), recipe=RECIPE, out=out, resume=True)
    assert outcome(out) == unbroken
