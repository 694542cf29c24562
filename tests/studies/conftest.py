"""Cells of a study are real runs, but nobody looks at their pages."""

import pytest

from vitreous.studies.material import load_whole
from vitreous.training import run


@pytest.fixture(autouse=True)
def _plain_cells():
    """No page for each cell, which takes longer than the cell; and no data of an earlier test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "render_report", lambda out: None)
        load_whole.cache_clear()
        yield
