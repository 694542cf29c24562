"""Studies whose cells take a fraction of a second, and a launcher without processes."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from tests.training.small import CONFIG, RECIPE, digits, write_npz
from vitreous.studies.cell import BEGUN, perform
from vitreous.studies.lines import Line, read_lines
from vitreous.studies.material import Material
from vitreous.studies.runner import run_cells
from vitreous.studies.study import Study

__all__ = ["InThisProcess", "lines_of", "make_study", "run_whole"]


def make_study(folder: Path, **changes: Any) -> Study:
    """Positions on and off on a few noise images, three epochs, two seeds."""
    source = folder / "data.npz"
    if not source.exists():
        write_npz(digits(), source)
    settings: dict[str, Any] = {
        "name": "small",
        "question": "Do <positions> matter & how?",
        "base": CONFIG,
        "base_name": "learned",
        "arms": {"none": {"positions": "none"}, "faster": {"learning_rate": 0.05}},
        "seeds": (0, 1),
        "recipe": RECIPE,
        "material": Material(source=str(source)),
    }
    return Study(**settings | changes)


class InThisProcess:
    """Performs one cell after the other, here; stops after so many."""

    def __init__(self, most: int | None = None) -> None:
        self.how = {"threads": 1, "device": "cpu"}
        self.most = most
        self.launched: list[Path] = []

    def launch(self, folders: Sequence[Path]) -> Generator[Path | None, None, None]:
        for folder in folders[: self.most]:
            self.launched.append(folder)
            (folder / BEGUN).touch()
            yield None
            perform(folder)
            yield folder


def run_whole(study: Study, out: Path, launcher: InThisProcess | None = None, **how: Any):
    """Every event of a study that is run in this process."""
    return list(run_cells(study, out, launcher or InThisProcess(), **how))


def lines_of(out: Path) -> dict[tuple[str, int], Line]:
    """The lines of a folder, by arm and seed."""
    found = read_lines(out)
    assert found is not None
    return {(line.arm, line.seed): line for line in found[1]}
