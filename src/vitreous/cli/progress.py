"""What a person sees while a run goes on: a live line on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vitreous.cli.options import print_json
from vitreous.studies.lines import Line
from vitreous.studies.runner import Progress as StudyProgress
from vitreous.training.folder import Result
from vitreous.training.job import Job
from vitreous.training.loop import Step
from vitreous.training.state import Epoch

__all__ = ["bar", "busy", "cells_listener", "listener"]

Event: TypeAlias = Step | Epoch | Result
Listener: TypeAlias = Callable[[Event], None]


@contextmanager
def bar(text: str) -> Iterator[Callable[[int, int], None] | None]:
    """What to call with (done, of) to move a bar on the terminal's error stream; none elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task(text, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def busy(text: str) -> Iterator[None]:
    """A sign of life on the terminal's error stream while something takes seconds."""
    with Console(stderr=True).status(text):
        yield


@contextmanager
def listener(job: Job, *, json: bool) -> Iterator[Listener]:
    """What is to be told of each event of the run."""
    if json:
        yield tell_program
    elif Console().is_terminal:
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn(
                "{task.completed:,}/{task.total:,} steps · {task.fields[rate]:,.0f} images/s ·"
            ),
            TimeRemainingColumn(compact=True),
            transient=True,
        ) as progress:
            yield LiveLine(job, progress)
    else:
        yield tell_plainly


def tell_program(event: Event) -> None:
    """One JSON line for each epoch; the result is the caller's."""
    if isinstance(event, Epoch):
        print_json(asdict(event))


def tell_plainly(event: Event) -> None:
    """One plain line for each epoch."""
    if isinstance(event, Epoch):
        print(sentence(event), flush=True)


def sentence(epoch: Epoch) -> str:
    """An epoch in one line."""
    return (
        f"epoch {epoch.epoch:3}  loss {epoch.train_loss:.4f}  "
        f"validation loss {epoch.validation_loss:.4f} accuracy {epoch.validation_accuracy:.4f}  "
        f"{epoch.images_per_second:,.0f} images/s  {epoch.seconds:.1f} s"
    )


class LiveLine:
    """A line that moves with the steps; epochs stay above it."""

    def __init__(self, job: Job, progress: Progress) -> None:
        self.job, self.progress = job, progress
        self.task = progress.add_task("epoch 1", total=job.steps, rate=0.0)
        self.steps_per_epoch = job.steps_per_epoch
        self.started = False

    def __call__(self, event: Event) -> None:
        if isinstance(event, Epoch):
            self.progress.console.print(sentence(event), highlight=False)
        elif isinstance(event, Step):
            if not self.started:  # a run that goes on has steps behind it that took no time now
                self.progress.reset(self.task, completed=event.number)
                self.started = True
            epoch = event.number // self.steps_per_epoch + 1
            speed = self.progress.tasks[self.task].speed or 0.0
            self.progress.update(
                self.task,
                completed=event.number + 1,
                rate=speed * self.job.recipe.batch_size,
                description=f"epoch {epoch} · loss {event.loss:.4f}",
            )


CellEvent: TypeAlias = StudyProgress | Line


@contextmanager
def cells_listener(*, json: bool) -> Iterator[Callable[[CellEvent], None]]:
    """What is to be told of each event of a study."""
    console = Console(stderr=json)
    if not console.is_terminal:
        yield tell_program_of_cell if json else tell_cell_plainly
        return
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("cells", total=None)

        def listen(event: CellEvent) -> None:
            if isinstance(event, StudyProgress):
                if progress.tasks[task].total is None:  # cells of earlier took no time now
                    progress.reset(task, completed=event.done, total=event.total)
                running = " · ".join(event.running) or "no cell"
                progress.update(
                    task,
                    completed=event.done + event.parts,
                    total=event.total,
                    description=f"{event.done} of {event.total} cells · {running}",
                )
            elif json:
                tell_program_of_cell(event)
            else:
                progress.console.print(cell_sentence(event), highlight=False)

        yield listen


def tell_program_of_cell(event: CellEvent) -> None:
    """One JSON line for each cell that ended."""
    if isinstance(event, Line):
        known = ("cell", "arm", "seed", "measures", "seconds", "error")
        print_json({name: getattr(event, name) for name in known})


def tell_cell_plainly(event: CellEvent) -> None:
    """One plain line for each cell that ended."""
    if isinstance(event, Line):
        print(cell_sentence(event), flush=True)


def cell_sentence(line: Line) -> str:
    """A cell in one line."""
    if line.error:
        return f"{line.arm}, seed {line.seed}: FAILED: {line.error}"
    measures = "  ".join(f"{name} {value:.4f}" for name, value in line.measures.items())
    return f"{line.arm}, seed {line.seed}: {measures}  {line.seconds:.1f} s"
