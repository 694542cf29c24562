"""Each planted fault is caught: a check that cannot fail is a defect."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import FAULTS, Fault

ROOT = Path(__file__).parents[1]
CHECKED = "--jaxtyping-packages=vitreous,beartype.beartype"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{Path(fault.file).stem}-{fault.name}")
def test_every_fault_has_one_place(fault: Fault):
    assert (ROOT / fault.file).read_text().count(fault.find) == 1
    assert fault.find != fault.replace


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{Path(fault.file).stem}-{fault.name}")
def test_a_planted_fault_is_caught(fault: Fault, tmp_path: Path):
    copy = tmp_path / "project"
    for part in ("src", "tests", "conftest.py", "pyproject.toml", "README.md"):
        place = ROOT / part
        if place.is_dir():
            shutil.copytree(place, copy / part, copy_function=os.link, ignore=ignored)
        else:
            (copy / part).parent.mkdir(exist_ok=True)
            os.link(place, copy / part)
    broken = (copy / fault.file).read_text().replace(fault.find, fault.replace)
    (copy / fault.file).unlink()  # the copy shares its bytes with the project until here
    (copy / fault.file).write_text(broken)
    options = ["-q", "-x", "-p", "no:cacheprovider", "-o", f"addopts={CHECKED}"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, fault.caught_by],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1, f"not caught by {fault.caught_by}:\n{run.stdout}{run.stderr}"


def ignored(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or name.endswith(".egg-info")]
