"""Real processes, really killed: what goes on afterwards ends as if nothing had happened."""

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.runs import environment, python, stopped_in, words
from tests.training.small import outcome
from vitreous.cli.__main__ import main
from vitreous.errors import RunError
from vitreous.training.state import snapshot

NAMES = ("optimizer", "precision", "average", "keep")
PRODUCT = list(
    itertools.product(["adamw", "muon"], ["float32", "bfloat16"], [0.0, 0.9], ["best", "last"])
)


def unbroken(data: Path, out: Path, **changes: object) -> dict[str, object]:
    assert main(words(data, out, **changes)) == 0
    return outcome(out)


def resumed(out: Path) -> dict[str, object]:
    assert main(["train", "--resume", str(out)]) == 0
    return outcome(out)


def test_a_run_that_was_killed_goes_on_to_the_same_bits(data, tmp_path, no_report):
    changes = {"optimizer": "muon", "precision": "bfloat16", "average": 0.9, "keep": "best"}
    wanted = unbroken(data, tmp_path / "whole", **changes)
    killed = stopped_in(8, "SIGKILL", words(data, tmp_path / "broken", **changes))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "broken" / "result.json").exists()
    assert resumed(tmp_path / "broken") == wanted


def test_ctrl_c_exits_130_says_how_to_go_on_and_loses_nothing(data, tmp_path, no_report):
    wanted, out = unbroken(data, tmp_path / "whole"), tmp_path / "broken"
    stopped = stopped_in(6, "SIGINT", words(data, out), every=999.0)
    assert stopped.returncode == 130, stopped.stderr
    assert f"vitreous train --resume {out}" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert resumed(out) == wanted


def test_a_stop_that_cannot_be_saved_never_says_that_it_was(data, tmp_path, monkeypatch, capsys):
    def full(state, path) -> None:
        if state.step == 7:
            raise RunError(f"{path}: could not be written: No space left on device")
        snapshot(state, path)

    def interrupt(event) -> None:
        if getattr(event, "number", None) == 6:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("vitreous.training.run.snapshot", full)
    monkeypatch.setattr("vitreous.cli.progress.tell_plainly", interrupt)
    assert main(words(data, tmp_path / "run")) == 1
    told = capsys.readouterr().err
    assert "No space left on device" in told
    assert "saved" not in told


@pytest.mark.slow
@pytest.mark.parametrize(NAMES, PRODUCT)
def test_killing_anywhere_with_any_recipe_changes_nothing(
    optimizer, precision, average, keep, data, tmp_path, no_report
):
    changes = {"optimizer": optimizer, "precision": precision, "average": average, "keep": keep}
    wanted = unbroken(data, tmp_path / "whole", **changes)
    step = PRODUCT.index((optimizer, precision, average, keep)) % 15
    line = words(data, tmp_path / "broken", **changes)
    assert stopped_in(step, "SIGKILL", line).returncode == -signal.SIGKILL
    assert resumed(tmp_path / "broken") == wanted


@pytest.mark.slow
@pytest.mark.parametrize("step", [0, 4, 5, 9, 14])
def test_a_kill_between_snapshots_loses_time_and_nothing_else(step, data, tmp_path, no_report):
    wanted = unbroken(data, tmp_path / "whole")
    line = words(data, tmp_path / "broken")
    assert stopped_in(step, "SIGKILL", line, every=999.0).returncode == -signal.SIGKILL
    assert resumed(tmp_path / "broken") == wanted


@pytest.mark.slow
def test_killing_again_and_again_changes_nothing(data, tmp_path, no_report):
    wanted, out = unbroken(data, tmp_path / "whole"), tmp_path / "broken"
    stopped_in(3, "SIGKILL", words(data, out))
    for step in (4, 8, 9, 14):
        again = stopped_in(step, "SIGKILL", ["train", "--resume", str(out)])
        assert again.returncode == -signal.SIGKILL, again.stderr
    assert resumed(out) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_from_outside_stops_it_too(kind, data, tmp_path, no_report):
    changes = {"epochs": 60}
    wanted, out = unbroken(data, tmp_path / "whole", **changes), tmp_path / "broken"
    line = [sys.executable, "-m", "vitreous.cli", *words(data, out, **changes)]
    process = subprocess.Popen(
        line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert "epoch   1" in process.stdout.readline()
    process.send_signal(kind)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert f"vitreous train --resume {out}" in errors
    assert resumed(out) == wanted


@pytest.mark.slow
def test_an_epoch_of_mnist_reads_most_digits_and_verifies(tmp_path):
    out = tmp_path / "run"
    line = ["train", "--out", str(out), "--preset", "digits-small", "--set", "epochs=1"]
    run = python("-m", "vitreous.cli", *line)
    assert run.returncode == 0, run.stderr
    assert "floor          0.1135" in run.stdout
    assert outcome(out)["result"]["test_accuracy"] > 0.85
    verified = python("-m", "vitreous.cli", "verify", str(out))
    assert verified.returncode == 0, verified.stdout + verified.stderr
