"""What a person sees while a run goes on: a live line on a terminal, plain lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vitreous.cli.options import print_json
from vitreous.training.folder import Result
from vitreous.training.job import Job
from vitreous.training.loop import Step
from vitreous.training.state import Epoch

__all__ = ["listener"]

Event: TypeAlias = Step | Epoch | Result
Listener: TypeAlias = Callable[[Event], None]


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
        self.epoch = 1
        self.task = progress.add_task("epoch 1", total=job.steps, rate=0.0)

    def __call__(self, event: Event) -> None:
        if isinstance(event, Epoch):
            self.epoch = event.epoch + 1
            self.progress.console.print(sentence(event), highlight=False)
        elif isinstance(event, Step):
            speed = self.progress.tasks[self.task].speed or 0.0
            self.progress.update(
                self.task,
                completed=event.number + 1,
                rate=speed * self.job.recipe.batch_size,
                description=f"epoch {self.epoch} · loss {event.loss:.4f}",
            )
