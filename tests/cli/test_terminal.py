"""What a person sees on a terminal."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

from tests.cli.runs import environment, words
from tests.training.small import make_job
from vitreous.cli.progress import LiveLine, busy, sentence, tell_plainly
from vitreous.training.loop import Step
from vitreous.training.state import Epoch

EPOCH = Epoch(2, 10, 0.51, 0.4321, 0.8765, 12.34, 5678.9)
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")


def on_a_terminal(line: list[str], *, errors: int | None = None, **more: str) -> tuple[int, str]:
    """Exit code and output of a command whose output, and errors unless they go elsewhere, are a
    terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "vitreous.cli", *line],
        env=environment(TERM="xterm-256color", **more),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs if errors is None else errors,
    )
    os.close(theirs)
    read = b""
    while True:
        try:
            some = os.read(ours, 4096)
        except OSError:  # the other side has closed
            break
        if not some:
            break
        read += some
    os.close(ours)
    return process.wait(), read.decode()


def test_a_terminal_shows_a_live_line_and_no_colour_where_none_is_wanted(data, tmp_path):
    code, told = on_a_terminal(words(data, tmp_path / "run", epochs=6), NO_COLOR="1")
    assert code == 0
    assert "\x1b[" in told
    assert re.search(r"epoch \d · loss \d\.\d{4}", told)
    assert "/30 steps" in told
    assert "images/s" in told
    assert told.count("validation loss") == 6
    assert "test accuracy" in told
    assert not COLOUR.search(told)


@pytest.mark.slow
def test_a_terminal_that_may_has_colours(data, tmp_path):
    code, told = on_a_terminal(words(data, tmp_path / "run", epochs=6))
    assert code == 0
    assert COLOUR.search(told)


@pytest.mark.slow
def test_json_on_a_terminal_is_json_all_the_same(data, tmp_path):
    code, told = on_a_terminal(
        [*words(data, tmp_path / "run"), "--json"], errors=subprocess.DEVNULL
    )
    assert code == 0
    assert [sorted(json.loads(line))[0] for line in told.splitlines()] == ["epoch"] * 3 + [
        "correct"
    ]


def live(tmp_path: Path) -> tuple[LiveLine, Progress]:
    console = Console(file=(tmp_path / "told").open("w"), force_terminal=True, width=100)
    progress = Progress(TextColumn("{task.description}"), console=console, auto_refresh=False)
    return LiveLine(make_job(), progress), progress


def test_the_live_line_of_a_resumed_run_starts_where_the_run_is(tmp_path):
    line, progress = live(tmp_path)
    line(Step(7, 0.5, 4))
    (task,) = progress.tasks
    assert (task.completed, task.total) == (8, 15)
    assert task.description == "epoch 2 · loss 0.5000"
    steps_told = sum(sample.completed for sample in task._progress)
    assert steps_told == 1, "the steps before the stop are no speed of this process"
    progress.console.file.close()


def test_an_epochs_line_says_loss_accuracy_speed_and_time(capsys):
    tell_plainly(Step(1, 0.5, 4))
    tell_plainly(EPOCH)
    assert capsys.readouterr().out == sentence(EPOCH) + "\n"
    for part in ("epoch   2", "0.5100", "0.4321", "0.8765", "5,679 images/s", "12.3 s"):
        assert part in sentence(EPOCH)


def test_a_sign_of_life_is_no_part_of_the_output(capsys):
    with busy("thinking"):
        pass
    assert capsys.readouterr().out == ""
