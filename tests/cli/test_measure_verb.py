import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from vitreous.cli.__main__ import main
from vitreous.cost.calibration import NAMES, read
from vitreous.training import speed


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors so small, and turns so few, that nothing is learned of the machine."""
    monkeypatch.setattr(speed, "MANY", 1 << 15)
    monkeypatch.setattr(speed, "WIDTHS", (8, 16))
    monkeypatch.setattr(speed, "TOKENS", (3, 5))
    monkeypatch.setattr(speed, "BUDGET", 0.0)
    monkeypatch.setattr(speed, "MAPS", ((1, 2, 8), (3, 4, 8)))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "vitreous" / "machine.json"


def test_every_kind_of_work_is_measured_and_the_callers_random_numbers_stay(brief):
    torch.manual_seed(7)
    before, told = torch.random.get_rng_state(), []
    found = speed.calibrate(lambda done, of: told.append((done, of)))
    assert set(found.curves) == set(NAMES)
    for curve in found.curves.values():
        sizes, seconds = zip(*curve, strict=True)
        assert list(sizes) == sorted(set(sizes))
        assert all(0 < second < math.inf for second in seconds)
    assert told == [(done, len(told)) for done in range(len(told))]
    assert torch.equal(torch.random.get_rng_state(), before)


def test_a_measured_machine_tells_seconds_and_says_where_from(brief, cache, capsys):
    assert main(["measure"]) == 0
    told = capsys.readouterr().out
    assert f"written to {cache}" in told
    assert "matrix products in bfloat16" in told
    found = read()
    assert main(["plan", "--preset", "digits", "--time"]) == 0
    told = capsys.readouterr().out
    assert f"time on {found.machine}, {found.threads} threads, torch {found.torch}" in told
    assert found.measured in told
    assert "training step" in told
    assert main(["plan", "--preset", "digits", "--time", "--json"]) == 0
    seconds = json.loads(capsys.readouterr().out)["seconds"]
    assert seconds["step"] > 0
    assert seconds["image"] > 0
    assert seconds["measured"] == found.measured
    assert main(["plan", "--time", "--sweep", "depth=1,2", "--csv"]) == 0
    assert "seconds.step" in capsys.readouterr().out


def test_telling_seconds_does_not_load_torch(brief, cache):
    assert main(["measure"]) == 0
    script = """
import sys
from vitreous.cli.__main__ import main
assert main(["plan", "--time"]) == 0
assert not set(sys.modules) & {"torch", "numpy"}
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_json_is_the_file_with_its_place(brief, tmp_path, capsys):
    assert main(["measure", "--out", str(tmp_path / "x" / "m.json"), "--json"]) == 0
    given = json.loads(capsys.readouterr().out)
    file = Path(given.pop("file"))
    assert json.loads(file.read_text()) == given
    assert main(["plan", "--time", str(file)]) == 0
    assert given["measured"] in capsys.readouterr().out


def test_without_a_measurement_it_is_said_what_to_run(cache, capsys):
    assert main(["plan", "--time"]) == 1
    assert "run: vitreous measure" in capsys.readouterr().err
    cache.parent.mkdir()
    cache.write_text("{")
    assert main(["plan", "--time"]) == 1
    assert "no whole calibration" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--threads", "0"], ["--out", "/dev/null/machine.json"]])
def test_what_cannot_be_measured_or_written_is_refused_before_measuring(words, monkeypatch, capsys):
    monkeypatch.setattr(speed, "calibrate", lambda _: pytest.fail("measured"))
    assert main(["measure", *words]) == 1
    assert capsys.readouterr().err.startswith("vitreous measure: ")


def test_the_two_precisions_are_measured_apart():
    trials = [speed.linear(precision, 16) for precision in speed.DTYPES]
    assert [trial.given.dtype for trial in trials] == [torch.float32, torch.bfloat16]
    assert len({trial.name for trial in trials}) == 2
