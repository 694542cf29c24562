"""What every test and every docstring example finds."""

import os
from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def repeatable():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def names_for_docstrings(doctest_namespace):
    doctest_namespace["torch"] = torch


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of data outside the project; tests that need it are skipped without it."""
    here = Path(__file__).parent
    folder = Path(os.environ.get("VITREOUS_DATA", here.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no development data at {folder}; set VITREOUS_DATA to where they are")
    return folder
