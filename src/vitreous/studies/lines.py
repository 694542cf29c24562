"""The raw results of a study: one JSON line that says what it is, then one for each cell."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vitreous.checkpoints.files import write_bytes
from vitreous.errors import RunError
from vitreous.studies.study import Study
from vitreous.training.folder import now

__all__ = ["LINES", "Header", "Line", "put_aside", "read_lines", "write_lines"]

LINES = "lines.jsonl"


@dataclass(frozen=True)
class Header:
    """What a study asks, as it stands above its cells."""

    study: str
    question: str
    base: str
    null: str
    arms: dict[str, dict[str, Any]]
    contrasts: dict[str, str]
    """Each arm that is compared with another, and with which."""
    measure: str
    """What arms are compared by."""
    along: str
    series: dict[str, dict[str, float]]
    note: str
    code: str
    """Version of the code that made every cell below."""


@dataclass(frozen=True)
class Line:
    """One cell: what it was, and what it came to or why it failed."""

    cell: str
    arm: str
    seed: int
    settings: dict[str, Any]
    measures: dict[str, float] = field(default_factory=dict)
    curves: dict[str, list[float]] = field(default_factory=dict)
    n: int = 0
    """Test images."""
    wrong: str = ""
    """Which of them were read wrongly, packed."""
    data_sha256: dict[str, str] = field(default_factory=dict)
    train_seconds: float = 0.0
    seconds: float = 0.0
    threads: int = 0
    machine: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    started: str = ""
    error: str = ""
    """Why there are no measures."""


def header_of(study: Study, code: str) -> Header:
    """The first line of a study's results."""
    arms = [study.base_name, *study.arms]
    return Header(
        study=study.name,
        question=study.question,
        base=study.base_name,
        null=study.null_name,
        arms=json.loads(json.dumps({arm: dict(study.arms.get(arm, {})) for arm in arms})),
        contrasts=study.contrasts,
        measure=study.measure,
        along=study.along,
        series={name: dict(places) for name, places in study.series.items()},
        note=study.note,
        code=code,
    )


def write_lines(folder: Path, header: Header, lines: list[Line]) -> None:
    """Write all of it atomically; raises RunError where that fails, and nothing is lost."""
    text = "".join(json.dumps(asdict(row), allow_nan=False) + "\n" for row in (header, *lines))
    write_bytes(folder / LINES, text.encode())


def read_lines(folder: Path) -> tuple[Header, list[Line]] | None:
    """The header and the cells so far; none where nothing was begun. Raises RunError."""
    path = folder / LINES
    if not path.exists():
        return None
    rows = path.read_text(encoding="utf-8").splitlines()
    if not rows:
        raise RunError(f"{path} is empty: not the results of a study")
    found: list[Any] = []
    for number, row in enumerate(rows, start=1):
        kind = Line if found else Header
        try:
            found.append(kind(**json.loads(row)))
        except (ValueError, TypeError) as error:
            raise RunError(f"{path}, line {number}: not a result of a study: {error}") from error
    return found[0], found[1:]


def put_aside(folder: Path) -> Path | None:
    """Rename the results that are there, so that others can begin; says what they are called."""
    path = folder / LINES
    if not path.exists():
        return None
    aside = path.with_name(f"lines-until-{now().replace(':', '-')}.jsonl")
    return path.rename(aside)
