"""Real processes: each with its share, and none left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.studies.small_study import lines_of, make_study
from vitreous.errors import ConfigError
from vitreous.studies.cell import BEGUN, ERROR, OUTCOME, write_task
from vitreous.studies.launch import LocalProcesses
from vitreous.studies.runner import CELLS, run_cells
from vitreous.studies.scores import RandomScores

HOW = {"threads": 1, "device": "cpu"}
# Whether a process is left over, only the list of all processes tells; CI's machine has it.
needs_proc = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")


def tasks(folder: Path, count: int) -> list[Path]:
    """Folders with a task that takes no time."""
    folders = [folder / f"{number}" for number in range(count)]
    for seed, one in enumerate(folders):
        write_task(one, (RandomScores(head_dim=2, tokens=4, draws=2),), seed, HOW)
    return folders


def test_processes_do_every_cell_one_after_the_other(tmp_path: Path):
    folders = tasks(tmp_path, 5)
    ended = [one for one in LocalProcesses(2).launch(folders) if one is not None]
    assert sorted(ended) == folders
    for folder in folders:
        outcome = json.loads((folder / OUTCOME).read_text())
        assert outcome["threads"] == 1
        assert set(outcome["measures"]) == {"largest_weight", "entropy", "gradient_norm"}


def test_each_process_has_its_share_of_the_cores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert [LocalProcesses(n).how["threads"] for n in (1, 2, 3, 8, 20)] == [8, 4, 2, 1, 1]
    assert LocalProcesses().workers == 8
    with pytest.raises(ConfigError, match="workers=0 must be at least 1"):
        LocalProcesses(0)


@needs_proc
def test_a_process_that_dies_costs_its_cell_only(tmp_path: Path):
    folders = tasks(tmp_path, 3)
    (folders[0] / "task.json").write_text('{"parts": [], "threads": 1, "device": "cpu", "seed": 0}')
    hung = folders[1]
    (hung / "task.json").unlink()
    os.mkfifo(hung / "task.json")  # its reader waits for ever
    events: Iterator[Path | None] = LocalProcesses(1).launch(folders)
    ended = []
    for one in events:
        if one is not None:
            ended.append(one)
        elif (hung / BEGUN).exists() and folders[0] in ended and hung not in ended:
            victim = children("vitreous.studies.cell")
            assert len(victim) == 1
            os.kill(victim[0], signal.SIGKILL)
    assert ended == folders
    assert (folders[0] / ERROR).exists()
    assert "died with exit code -9" in (hung / ERROR).read_text()
    assert (folders[2] / OUTCOME).exists()


def children(name: str) -> list[int]:
    """Processes of ours that run this module."""
    found = []
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            parent = (status.parent / "stat").read_text().rsplit(")", 1)[1].split()[1]
            if name in status.read_text() and parent == str(os.getpid()):
                found.append(int(status.parent.name))
    return found


@needs_proc
def test_closing_stops_every_process(tmp_path: Path):
    folders = tasks(tmp_path, 2)
    for folder in folders:
        (folder / "task.json").unlink()
        os.mkfifo(folder / "task.json")
    events = LocalProcesses(2).launch(folders)
    next(events)
    assert len(children("vitreous.studies.cell")) == 2
    events.close()
    assert children("vitreous.studies.cell") == []


SCRIPT = """
import sys
from pathlib import Path
from tests.studies.small_study import make_study
from vitreous.studies.runner import run_study
folder = Path(sys.argv[1])
study = make_study(folder, recipe="fast", arms={"none": {"positions": "none"}}, seeds=(0,))
from dataclasses import replace
from tests.training.small import RECIPE
study = replace(study, recipe=replace(RECIPE, epochs=300))
run_study(study, folder / "out", workers=1)
"""


@pytest.mark.slow
@needs_proc
def test_a_killed_study_leaves_no_process_and_goes_on_inside_the_cell(tmp_path: Path):
    """kill -9 of the study: its worker saves the cell and ends; the next study goes on in it."""
    study = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)])
    history = wait_for(lambda: list((tmp_path / "out" / CELLS).glob("*/*/run/history.json")))
    study.send_signal(signal.SIGKILL)
    study.wait()
    run = history[0].parent
    wait_for(lambda: not running_in(tmp_path))
    before = len(json.loads(history[0].read_text()))
    assert 0 < before < 300
    assert (run / "resume.safetensors").exists()
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], check=True)
    found = lines_of(tmp_path / "out")
    assert len(found) == 3
    assert all(len(line.curves["train_loss"]) == 300 for line in found.values())


def wait_for(what):
    """Wait until something is so; ten minutes are in vain."""
    for _ in range(6_000):
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError("it never came to that")


def running_in(folder: Path) -> list[Path]:
    """Processes that hold a file of this folder open, or work on it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            for handle in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if str(handle.readlink()).startswith(str(folder)):
                        found.append(process)
    return found


@pytest.mark.slow
def test_real_processes_come_to_the_lines_of_this_one(tmp_path: Path):
    from tests.studies.small_study import run_whole

    study = make_study(tmp_path, seeds=(0,))
    list(run_cells(study, tmp_path / "processes", LocalProcesses(2)))
    run_whole(study, tmp_path / "here")
    there, here = lines_of(tmp_path / "processes"), lines_of(tmp_path / "here")
    assert {key: line.measures for key, line in there.items()} == {
        key: line.measures for key, line in here.items()
    }
