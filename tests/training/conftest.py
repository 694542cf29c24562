import pytest

from vitreous.training import run, verify


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes longer than training does here."""
    monkeypatch.setattr(run, "render_report", lambda out: out)
    monkeypatch.setattr(verify, "render_report", lambda out: out)
