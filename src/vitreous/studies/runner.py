"""Run the cells of a study that have not been run, and keep each as it ends."""

import contextlib
import shutil
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import filelock

from vitreous.checkpoints.files import require_room
from vitreous.config import Recipe
from vitreous.errors import RunError
from vitreous.studies.book import Book, open_book
from vitreous.studies.cell import BEGUN, ERROR, OUTCOME, write_task
from vitreous.studies.launch import Launcher, LocalProcesses
from vitreous.studies.lines import Line, put_aside
from vitreous.studies.report import render
from vitreous.studies.study import Cell, Study
from vitreous.studies.summary import Summary
from vitreous.training.folder import HISTORY, read_json, read_list

__all__ = ["Progress", "run_cells", "run_study"]

CELLS, LOCK = ".cells", ".lock"
ROOM = 20_000_000
"""Bytes that must be free: the snapshots of two digit models, and the report."""


@dataclass(frozen=True)
class Progress:
    """How far a study is."""

    done: int
    """Cells that have ended well, now or before."""
    total: int
    parts: float
    """Of cells that run now, how much is done, summed."""
    running: tuple[str, ...]
    """What runs now, in words."""


Event: TypeAlias = Progress | Line


def run_study(
    study: Study,
    out: str | Path,
    *,
    workers: int | None = None,
    launcher: Launcher | None = None,
    fresh: bool = False,
) -> Summary:
    """Run what is left of a study, write its lines and report to the folder `out`, and sum it up.

    Raises ConfigError, DataError or RunError before the first cell where settings, data or folder
    will not do: among others where `out` holds results of other settings, code or data, which
    `fresh=True` puts aside, or where another process is at work. A cell that fails is in the report
    and does not stop the rest.
    """
    launcher = launcher or LocalProcesses(workers)
    with contextlib.closing(run_cells(study, Path(out), launcher, fresh=fresh)) as events:
        for _event in events:
            pass
    return render(Path(out))


def run_cells(
    study: Study, out: Path, launcher: Launcher, *, fresh: bool = False
) -> Generator[Event, None, None]:
    """`run_study` without its end, as a generator: each cell's line, and progress in between.

    Closing it stops every process where it is; the next call goes on there.
    """
    require_room(out, ROOM)
    with sole_owner(out):
        if fresh:
            put_aside(out)
            shutil.rmtree(out / CELLS, ignore_errors=True)
        cells = list(study.cells)
        book = open_book(study, cells, out)
        place = out / CELLS / book.header.code  # other code must not go on inside a cell
        todo = {place / cell.name: cell for cell in cells if cell.name not in book.finished}
        yield from run_all(todo, launcher, book, len(cells))
        if not any(line.error for line in book.lines.values()):
            shutil.rmtree(out / CELLS, ignore_errors=True)


@contextlib.contextmanager
def sole_owner(out: Path) -> Iterator[None]:
    """Keep others out of a study's folder; raises RunError where one is at work there."""
    lock = filelock.FileLock(out / LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        raise RunError(f"{out}: another process runs a study here; nothing was changed") from error
    try:
        yield
    finally:
        lock.release()


def run_all(
    todo: Mapping[Path, Cell], launcher: Launcher, book: Book, total: int
) -> Generator[Event, None, None]:
    """Launch each cell, and keep what comes back."""
    ended_before = [folder for folder in todo if (folder / OUTCOME).exists()]
    for folder in ended_before:
        yield keep(todo[folder], folder, book)
    left = {folder: cell for folder, cell in todo.items() if folder not in ended_before}
    for folder, cell in left.items():
        write_task(folder, cell.parts, cell.seed, launcher.how)
    with contextlib.closing(launcher.launch(list(left))) as ended:
        for folder in ended:
            if folder is not None:
                yield keep(left[folder], folder, book)
            yield progress(left, book, total)


def keep(cell: Cell, folder: Path, book: Book) -> Line:
    """Put what a cell came to into the book, and take its folder away if all went well."""
    line = line_of(cell, folder)
    book.add(line)
    if line.error:
        (folder / BEGUN).unlink(missing_ok=True)
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return line


def line_of(cell: Cell, folder: Path) -> Line:
    """What a folder's process came to."""
    about = {"cell": cell.name, "arm": cell.arm, "seed": cell.seed, "settings": cell.settings}
    if (folder / OUTCOME).exists():
        return Line(**about, **read_json(folder / OUTCOME))
    return Line(**about, error=(folder / ERROR).read_text(errors="replace")[-2000:])


def progress(todo: Mapping[Path, Cell], book: Book, total: int) -> Progress:
    """Where things are now, from what the processes leave in their folders."""
    running = {folder: cell for folder, cell in todo.items() if (folder / BEGUN).exists()}
    epochs = {folder: epochs_done(folder) for folder in running}
    limits = {folder: epochs_planned(cell) for folder, cell in running.items()}
    return Progress(
        done=len(book.finished),
        total=total,
        parts=sum((epochs[folder] / limits[folder] for folder in running), 0.0),
        running=tuple(
            f"{cell.arm}, seed {cell.seed}: epoch {epochs[folder]} of {limits[folder]}"
            for folder, cell in running.items()
        ),
    )


def epochs_done(folder: Path) -> int:
    """Epochs behind a cell that runs."""
    path = folder / "run" / HISTORY
    return len(read_list(path)) if path.exists() else 0


def epochs_planned(cell: Cell) -> int:
    """Epochs that a cell has at most."""
    return next((part.epochs for part in cell.parts if isinstance(part, Recipe)), 1)
