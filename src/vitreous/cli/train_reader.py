"""`vitreous train reader`: the reader of numbers, from made-up strings alone.

Without settings it makes the weights of the package, in two runs in one folder; called again, it
goes on where it was stopped. With settings it is one run.
"""

import argparse
import contextlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from vitreous import settings
from vitreous.cli.options import print_json, warn
from vitreous.config import Recipe
from vitreous.errors import ConfigError

if TYPE_CHECKING:
    from vitreous.training.reader import ReaderJob
    from vitreous.training.state import Epoch

__all__ = ["holds_reader", "run"]

OTHERS = ("preset", "recipe", "config", "source", "skip_corrupt")
"""Options of `vitreous train` that mean nothing to a reader."""
OWN = ("changes", "seed", "strings", "start_from")
"""Options that make a run another than those of the package's weights."""


def holds_reader(folder: Path) -> bool:
    """Whether a run folder is a reader's."""
    from vitreous.errors import RunError
    from vitreous.training.folder import RUN, read_json

    try:
        return read_json(folder / RUN).get("kind") == "reader"
    except RunError:
        return False


def run(arguments: argparse.Namespace) -> int:
    """Train, or go on; returns the exit code."""
    from vitreous.training.reader import resumed_job, stages

    refuse_others(arguments)
    if arguments.resume:
        return train([(resumed_job(arguments.resume), arguments.resume)], arguments, resume=True)
    chosen = any(getattr(arguments, name) not in (None, []) for name in OWN)
    if not chosen:
        out = arguments.out or Path("runs") / "reader"
        return train(stages(out), arguments, resume=True)
    job = started(arguments)
    out = arguments.out or Path("runs") / f"reader-seed{job.seed}"
    return train([(job, out)], arguments, resume=False)


def train(
    runs: list[tuple["ReaderJob", Path]], arguments: argparse.Namespace, *, resume: bool
) -> int:
    """Train one run after the other; with `resume`, those that a folder holds go on or are done."""
    if arguments.dry_run:
        for job, out in runs:
            print_json({"job": job.describe(), "out": str(out), "steps": job.steps})
        return 0
    for job, out in runs:
        if len(runs) > 1 and has_ended(out):
            continue
        begun = resume and (len(runs) == 1 or (out / "run.json").exists())
        if not train_one(job, out, arguments, resume=begun):
            warn(f"stopped, and saved; go on with: vitreous train {again(runs, out)}")
            return 130
    last = runs[-1][1]
    if arguments.json:
        print_json({"run": str(last)})
    else:
        print(f"run folder  {last}\ntry it with: vitreous read --model {last} IMAGE")
    return 0


def has_ended(out: Path) -> bool:
    """Whether a run of the folder has come to its weights."""
    from vitreous.training.folder import SNAPSHOT

    return (out / "model.safetensors").exists() and not (out / SNAPSHOT).exists()


def again(runs: list[tuple["ReaderJob", Path]], out: Path) -> str:
    """The words with which a stopped run, or row of runs, goes on."""
    return f"--resume {out}" if len(runs) == 1 else f"reader --out {out.parent}"


def train_one(job: "ReaderJob", out: Path, arguments: argparse.Namespace, *, resume: bool) -> bool:
    """One run; False where it was stopped."""
    from vitreous.cli.progress import bar
    from vitreous.training.interrupt import interrupts_held
    from vitreous.training.reader import run_reader
    from vitreous.training.state import Epoch

    with (
        interrupts_held() as interrupted,
        bar(f"training {out.name}") as progress,
        contextlib.closing(run_reader(job, out, resume=resume)) as events,
    ):
        for event in events:
            if isinstance(event, Epoch):
                tell(event, job, json=arguments.json)
            elif progress:
                progress(event.number + 1, job.steps)
            if interrupted():
                return False
    return True


def refuse_others(arguments: argparse.Namespace) -> None:
    """Raise ConfigError for what a reader does not know."""
    given = [name for name in OTHERS if getattr(arguments, name)]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ConfigError(f"a reader is trained on made-up strings and takes no {names}")
    given = [name for name in (*OWN, "out") if getattr(arguments, name) not in (None, [])]
    if arguments.resume and given:
        raise ConfigError("--resume takes the run's own settings; leave the others out")


def started(arguments: argparse.Namespace) -> "ReaderJob":
    """A new job, from the command line."""
    from vitreous.models.reader import ReaderConfig
    from vitreous.training.reader import RECIPE, ReaderJob

    model, recipe = settings.setting_types(ReaderConfig), settings.setting_types(Recipe)
    chosen = {}
    for change in arguments.changes:
        name, equals, text = change.partition("=")
        if not equals:
            raise ConfigError(f"--set {change}: write it as key=value")
        settings.named("setting", name, model | recipe)
        chosen[name] = settings.parse(text, (model | recipe)[name], name)
    return ReaderJob(
        config=ReaderConfig(**{name: value for name, value in chosen.items() if name in model}),
        recipe=replace(RECIPE, **{name: v for name, v in chosen.items() if name in recipe}),
        seed=arguments.seed or 0,
        strings=arguments.strings or "legible",
        start=arguments.start_from,
    )


def tell(epoch: "Epoch", job: "ReaderJob", *, json: bool) -> None:
    """One line for each look at the validation strings."""
    if json:
        print_json(asdict(epoch))
        return
    print(
        f"step {epoch.steps:5} of {job.steps}  loss {epoch.train_loss:.4f}  validation strings "
        f"right {epoch.validation_accuracy:.4f}  {epoch.images_per_second:,.0f} strings/s  "
        f"{epoch.seconds:.0f} s",
        flush=True,
    )
