"""`study`, `report` and `tune`, typed as a user would."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.runs import environment
from tests.cli.test_terminal import on_a_terminal
from tests.training.small import digits, write_npz
from vitreous.cli.__main__ import main
from vitreous.studies.lines import LINES

FILE = '''"""What does dividing do?"""

import vitreous

STUDY = vitreous.Study(
    name="dividing",
    question="What does dividing do?",
    base=vitreous.RandomScores(head_dim=16, tokens=8, draws=2),
    arms={"plain": {"scaled": False}},
    seeds=(0, 1),
)
'''
SLOW = """
import vitreous

STUDY = vitreous.Study(
    name="slow",
    question="How long?",
    base=vitreous.ViTConfig(
        image_size=8, patch_size=4, width=8, depth=1, heads=2, classes=3, norm="post"
    ),
    arms={"none": {"positions": "none"}},
    seeds=(0,),
    recipe=vitreous.Recipe(optimizer="adamw", batch_size=4, epochs=100_000, precision="float32"),
    material=vitreous.Material(source="data.npz"),
)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one study, and here."""
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "dividing.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answers(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_study_is_run_reported_and_listed(place: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["study", "--list", "--json"]) == 0
    (listed,) = answers(capsys)
    assert listed == {
        "name": "dividing",
        "question": "What does dividing do?",
        "cells": 6,
        "finished": 0,
    }
    assert main(["study", "dividing", "--workers", "1", "--json"]) == 0
    *cells, summary = answers(capsys)
    assert [cell["arm"] for cell in cells] == ["base", "plain", "base again"] * 2
    assert summary["contrasts"][0]["mean_difference"] < 0
    out = place / "studies" / "results" / "dividing"
    assert {path.name for path in out.glob("*.*")} >= {
        LINES,
        "report.md",
        "report.html",
        "seeds.png",
    }

    (out / "report.html").unlink()
    for name in ("dividing", "studies/dividing.py", str(out)):
        assert main(["report", name, "--json"]) == 0
        assert answers(capsys) == [summary]
    assert (out / "report.html").exists()

    assert main(["study", "studies/dividing.py"]) == 0, "nothing is left to run"
    assert "report.html" in capsys.readouterr().out
    assert main(["study", "--list"]) == 0
    assert "6 of   6 cells  What does dividing do?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["study", "dividin"], "no study is called 'dividin'; did you mean 'dividing'?"),
        (["study", "other.py"], "other.py: there is no such file"),
        (["study"], "which study? name one, or use --list"),
        (["study", "dividing", "--seeds", "0"], "study 'dividing' has no seeds"),
        (["study", "dividing", "--workers", "0"], "workers=0 must be at least 1"),
        (["report", "dividin"], "no study is called 'dividin'; did you mean 'dividing'?"),
        (["report", "dividing"], "no cell of a study has ended there yet"),
        (["tune", "--trials", "0"], "--trials 0 must be at least 1"),
        (["tune", "--over", "learning_rate"], "write it as key=LOW..HIGH or key=a,b,c"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    place: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
):
    assert main(words) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("STUDY = 3", "it has no STUDY = vitreous.Study(...)"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError"),
        (
            FILE.replace('"scaled"', '"scald"'),
            "no setting is called 'scald'; did you mean 'scaled'",
        ),
        (FILE.replace("(0, 1)", "(0, 0)"), "seed 0 is given twice"),
    ],
)
def test_a_file_that_is_no_study_says_so(
    place: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
):
    (place / "wrong.py").write_text(text)
    assert main(["study", "wrong.py"]) == 1
    assert sentence in capsys.readouterr().err


def test_without_a_folder_of_studies_the_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    assert main(["study", "positions"]) == 1
    assert "there is no folder studies" in capsys.readouterr().err


def test_a_search_is_typed_and_gone_on_with(place: Path, capsys: pytest.CaptureFixture[str]):
    write_npz(digits(), place / "data.npz")
    changes = {
        "image_size": 8, "patch_size": 4, "stem": "linear", "width": 8, "depth": 1, "heads": 2,
        "classes": 3, "optimizer": "adamw", "batch_size": 4, "epochs": 2, "precision": "float32",
    }  # fmt: skip
    settings = [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
    words = ["tune", "--source", "data.npz", "--device", "cpu", "--json", *settings]
    words += ["--over", "learning_rate=1e-3..1e-1", "--out", "search"]
    assert main([*words, "--trials", "1"]) == 0
    first = answers(capsys)
    assert [set(line) & {"number", "best"} for line in first] == [{"number"}, {"best"}]
    assert main([*words, "--trials", "2"]) == 0
    assert answers(capsys)[0]["number"] == 1


@pytest.mark.slow
def test_a_terminal_shows_which_cells_run(place: Path):
    code, told = on_a_terminal(["study", "dividing", "--workers", "1"])
    assert code == 0
    assert re.search(r"\d of 6 cells · plain, seed \d: epoch 0 of 1", told)
    assert told.count("largest_weight") == 6
    assert "report.html" in told


@pytest.mark.slow
def test_ctrl_c_stops_a_study_and_the_same_command_goes_on(place: Path):
    write_npz(digits(), place / "data.npz")
    (place / "studies" / "slow.py").write_text(SLOW)
    line = [sys.executable, "-m", "vitreous.cli", "study", "slow", "--workers", "1"]
    running = subprocess.Popen(line, env=environment(), stderr=subprocess.PIPE, text=True)
    folder = place / "studies" / "results" / "slow" / ".cells"
    while not list(folder.glob("*/*/run/history.json")):
        assert running.poll() is None, "it ended before its first epoch"
        time.sleep(0.1)
    running.send_signal(signal.SIGINT)
    _, told = running.communicate()
    assert running.returncode == 130
    assert "stopped, and saved; the same command goes on" in told
    (run,) = folder.glob("*/*/run")
    before = len(json.loads((run / "history.json").read_text()))
    again = subprocess.Popen(line, env=environment())
    while len(json.loads((run / "history.json").read_text())) < before + 2:
        assert again.poll() is None, "it ended too early"
        time.sleep(0.1)
    os.kill(again.pid, signal.SIGTERM)
    again.wait()
    epochs = [epoch["epoch"] for epoch in json.loads((run / "history.json").read_text())]
    assert epochs == list(range(1, len(epochs) + 1)), "it went on, and did not begin again"
