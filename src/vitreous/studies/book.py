"""A study's results on the disk while it runs: nothing is mixed, and nothing is lost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitreous import settings
from vitreous.errors import RunError
from vitreous.studies.lines import LINES, Header, Line, header_of, read_lines, write_lines
from vitreous.studies.material import load_material
from vitreous.studies.scores import RandomScores
from vitreous.studies.study import Cell, Study
from vitreous.studies.version import code_version
from vitreous.training.job import Job, choose_device

__all__ = ["Book", "brought_up_to_date", "open_book"]


class Book:
    """The lines of a study; each is on the disk when `add` returns."""

    def __init__(self, out: Path, header: Header, lines: Sequence[Line]) -> None:
        self.out, self.header = out, header
        self.lines = {line.cell: line for line in lines}

    @property
    def finished(self) -> set[str]:
        """Names of the cells that need not run again."""
        return {name for name, line in self.lines.items() if not line.error}

    def add(self, line: Line) -> None:
        """Keep one more cell, in place of an earlier failure."""
        self.lines[line.cell] = line
        self.write()

    def write(self) -> None:
        """All of it, atomically."""
        write_lines(self.out, self.header, list(self.lines.values()))


def open_book(study: Study, cells: Sequence[Cell], out: Path) -> Book:
    """The results so far, with this study's heading; raises RunError where they are of another.

    Raises ConfigError or DataError where a cell's settings and data do not fit together.
    """
    header, lines = header_of(study, code_version(type(study.base).__name__)), []
    hashes = data_of(cells)
    before = read_lines(out)
    if before is not None:
        lines = brought_up_to_date(before[1], cells)
        refuse_other_results(before[0], lines, header, cells, hashes, out)
    book = Book(out, header, lines)
    book.write()
    return book


def data_of(cells: Sequence[Cell]) -> Mapping[str, dict[str, str]]:
    """Hashes of the data of every cell, by its name; each arm's data are read once."""
    found: dict[Any, dict[str, str]] = {}
    for cell in cells:
        if cell.parts not in found:
            found[cell.parts] = hashes_of(cell)
    return {cell.name: found[cell.parts] for cell in cells}


def hashes_of(cell: Cell) -> dict[str, str]:
    """Hashes of a cell's data, which its settings must fit; none where nothing is learned."""
    if isinstance(cell.parts[0], RandomScores):
        return {}
    config, recipe, material = cell.parts
    data = load_material(material, config.image_shape)
    Job(config, recipe, data, cell.seed, choose_device("cpu"))
    return data.hashes


def brought_up_to_date(lines: Sequence[Line], cells: Sequence[Cell]) -> list[Line]:
    """The lines, with settings that are newer than they are: those were at their defaults."""
    planned = {(cell.arm, cell.seed): cell for cell in cells}
    found = []
    for line in lines:
        cell = planned.get((line.arm, line.seed))
        if cell is not None and defaults(cell) | line.settings == cell.settings:
            line = replace(line, cell=cell.name, settings=cell.settings)
        found.append(line)
    return found


def defaults(cell: Cell) -> dict[str, Any]:
    """Every setting of a cell's kind at its default."""
    kinds = {type(part)() for part in cell.parts}
    return {name: value for part in kinds for name, value in settings.to_dict(part).items()}


def refuse_other_results(
    old: Header,
    lines: Sequence[Line],
    new: Header,
    cells: Sequence[Cell],
    hashes: Mapping[str, dict[str, str]],
    out: Path,
) -> None:
    """Raise RunError where results were made by other code, other settings or other data."""
    planned = {(cell.arm, cell.seed): cell for cell in cells}
    reason = ""
    if lines and old.code != new.code:
        reason = f"made by other code (version {old.code}, now {new.code})"
    for line in lines:
        cell = planned.get((line.arm, line.seed))
        if reason or cell is None:
            continue
        if cell.name != line.cell:
            reason = f"of other settings ({line.arm}: {differences(line.settings, cell.settings)})"
        elif not line.error and line.data_sha256 != hashes[cell.name]:
            reason = f"of other data ({line.arm}, seed {line.seed})"
    if reason:
        raise RunError(
            f"{out / LINES}: the {len(lines)} cells there are {reason}; they are not mixed with "
            "new ones. Nothing was changed: use --fresh to put them aside, or another --out"
        )


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which settings are not what they were."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    return ", ".join(f"{name} was {then.get(name)}, is {now.get(name)}" for name in names)
