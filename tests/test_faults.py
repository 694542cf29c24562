"""Each planted fault is caught: a check that cannot fail is a defect."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults import FAULTS, Fault

ROOT = Path(__file__).parents[1]
CHECKED = "--jaxtyping-packages=vitreous,beartype.beartype"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{Path(fault.file).stem}-{fault.name}")
def test_every_fault_has_one_place(fault: Fault):
    assert (ROOT / fault.file).read_text().count(fault.find) == 1
    assert fault.find != fault.replace


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One copy for all faults, so that Python compiles only what a fault changes."""
    copy = tmp_path_factory.mktemp("faults") / "project"
    for part in ("src", "tests", "conftest.py", "pyproject.toml", "README.md"):
        place = ROOT / part
        if place.is_dir():
            shutil.copytree(place, copy / part, copy_function=os.link, ignore=ignored)
        else:
            (copy / part).parent.mkdir(exist_ok=True)
            os.link(place, copy / part)
    return copy


@contextmanager
def planted(fault: Fault, project: Path) -> Iterator[None]:
    """Inside, the copy has the fault."""
    broken = (project / fault.file).read_text().replace(fault.find, fault.replace)
    (project / fault.file).unlink()  # the copy shares its bytes with the project until here
    (project / fault.file).write_text(broken)
    try:
        yield
    finally:
        (project / fault.file).unlink()
        os.link(ROOT / fault.file, project / fault.file)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{Path(fault.file).stem}-{fault.name}")
def test_a_planted_fault_is_caught(fault: Fault, project: Path):
    options = ["-q", "-x", "-p", "no:cacheprovider", "-o", f"addopts={CHECKED}"]
    settings = {"PYTHONPATH": str(project / "src"), "OMP_NUM_THREADS": "1"}
    environment = os.environ | settings
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with planted(fault, project):
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *options, fault.caught_by],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
        )
    assert run.returncode == 1, f"not caught by {fault.caught_by}:\n{run.stdout}{run.stderr}"


def ignored(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or name.endswith(".egg-info")]
