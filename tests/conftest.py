"""What the tests of runs and of the command line share."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.small import CONFIG, RECIPE, digits, write_npz
from vitreous.training import run, verify
from vitreous.training.run import train


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training does here."""
    monkeypatch.setattr(run, "render_report", lambda out: out)
    monkeypatch.setattr(verify, "render_report", lambda out: out)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty images to train on, five to select on, ten to test on."""
    return write_npz(digits(), tmp_path_factory.mktemp("data") / "data.npz")


@pytest.fixture(scope="session")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended; tests that change it copy it."""
    out = tmp_path_factory.mktemp("trained") / "run"
    train(CONFIG, data, recipe=replace(RECIPE, epochs=4), out=out)
    return out
