"""Train a model and score it once on the test set.

Everything goes to one folder: weights, settings, the curve, the result, the test ledger and a
report. After Ctrl-C, or a power cut, `vitreous train --resume FOLDER` goes on as if it had not
stopped. With --from a run starts from trained weights, with a new head.
"""

import argparse
import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitreous.cli import train_reader
from vitreous.cli.options import (
    MODEL,
    Chosen,
    add_heads,
    add_json,
    add_settings,
    chosen_settings,
    print_json,
    warn,
)
from vitreous.errors import ConfigError

if TYPE_CHECKING:
    from vitreous.data.dataset import Dataset
    from vitreous.training.folder import Result
    from vitreous.training.job import Job

__all__ = ["add_arguments", "run"]

PRESET = "digits-fast"


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous train` understands."""
    verb.add_argument(
        "what",
        nargs="?",
        choices=("classifier", "reader"),
        default="classifier",
        help="classifier (default), or reader: reads numbers, and needs no data",
    )
    add_settings(verb, preset=PRESET)
    verb.add_argument(
        "--source",
        help="mnist, FILE.npz, a folder of idx files, a folder with one folder of images per "
        "class, or hf:OWNER/NAME@REVISION:FILE.npz (default: mnist)",
    )
    verb.add_argument("--skip-corrupt", action="store_true", help="leave unreadable images out")
    verb.add_argument(
        "--from",
        dest="weights",
        metavar="WEIGHTS",
        help="start from a run, a weights file or OWNER/NAME on the hub, with a new head",
    )
    verb.add_argument("--freeze", action="store_true", help="with --from: train the head alone")
    verb.add_argument(
        "--layer-decay",
        type=float,
        metavar="FACTOR",
        help="with --from: each layer below the head learns by this factor more slowly (0.75)",
    )
    add_heads(verb)
    verb.add_argument("--seed", type=int, help="of every random number of the run (default: 0)")
    verb.add_argument("--out", type=Path, help="run folder (default: runs/PRESET-seedN)")
    verb.add_argument("--resume", type=Path, metavar="RUN", help="go on with a stopped run")
    verb.add_argument(
        "--start-from", metavar="RUN", help="reader: train on from an earlier run's weights"
    )
    verb.add_argument(
        "--strings",
        choices=("rough", "hard", "legible"),
        help="reader: how hard (default: legible)",
    )
    verb.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    verb.add_argument("--threads", type=int, help="processor threads (default: one per core)")
    verb.add_argument("--dry-run", action="store_true", help="check everything, train nothing")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Train, or go on; returns the exit code."""
    from vitreous.cli.progress import listener
    from vitreous.training.folder import Result
    from vitreous.training.interrupt import interrupts_held
    from vitreous.training.run import run as train_run

    set_threads(arguments.threads)
    if arguments.what == "reader" or (
        arguments.resume and train_reader.holds_reader(arguments.resume)
    ):
        return train_reader.run(arguments)
    if arguments.start_from or arguments.strings:
        raise ConfigError("--start-from and --strings are for: vitreous train reader")
    job, out = resumed(arguments) if arguments.resume else started(arguments)
    if arguments.dry_run:
        show(arguments, {"job": job.describe(), "out": str(out), "steps": job.steps})
        return 0
    resume = arguments.resume is not None
    # `closing` saves where the loop is left, and lets it be known where that fails.
    with (
        interrupts_held() as interrupted,
        listener(job, json=arguments.json) as listen,
        contextlib.closing(train_run(job, out, resume=resume)) as events,
    ):
        for event in events:
            listen(event)
            if isinstance(event, Result):
                closing(event, out, json=arguments.json)
                return 0
            if interrupted():
                break
    warn(f"stopped, and saved; go on with: vitreous train --resume {out}")
    return 130


def set_threads(threads: int | None) -> None:
    """Give torch its share of the cores."""
    if threads is None:
        return
    if threads < 1:
        raise ConfigError(f"--threads {threads} must be at least 1")
    import torch

    torch.set_num_threads(threads)


def started(arguments: argparse.Namespace) -> tuple["Job", Path]:
    """A new run, from the command line."""
    from vitreous.cli.progress import bar
    from vitreous.data.sources import load_source
    from vitreous.training.job import Job, adopt_input, choose_device

    chosen = chosen_settings(arguments, preset=PRESET)
    source, seed = arguments.source or "mnist", arguments.seed or 0
    options = {"skip_corrupt": True} if arguments.skip_corrupt else {}
    with bar("reading images") as progress:
        dataset: Dataset = load_source(source, progress=progress, **options)
    if dataset.note:
        warn(f"{source}: {dataset.note}")
    if arguments.weights:
        return fine_tuned(arguments, chosen, dataset, seed)
    if arguments.freeze or arguments.layer_decay is not None:
        raise ConfigError(
            "--freeze and --layer-decay are about trained weights: add --from WEIGHTS"
        )
    config, adopted = chosen.config, adopt_input(chosen.config, dataset)
    if adopted != config and not chosen.names & {"image_size", "channels", "classes"}:
        warn(
            f"from the data: image_size={adopted.image_size} channels={adopted.channels} "
            f"classes={adopted.classes}"
        )
        config = adopted
    job = Job(config, chosen.recipe, dataset, seed, choose_device(arguments.device))
    name = f"{chosen.preset}-seed{seed}"
    return job, arguments.out or free_folder(Path("runs") / name)


def fine_tuned(
    arguments: argparse.Namespace, chosen: Chosen, dataset: "Dataset", seed: int
) -> tuple["Job", Path]:
    """A new run from trained weights, whose config is theirs."""
    from vitreous.training.job import Job, choose_device
    from vitreous.training.start import start_from

    if chosen.preset != PRESET or arguments.preset:
        raise ConfigError(f"--from brings its own model; leave out the preset {chosen.preset!r}")
    config, start = start_from(
        arguments.weights,
        dataset,
        freeze=arguments.freeze,
        layer_decay=arguments.layer_decay,
        heads=arguments.heads,
        **{name: getattr(chosen.config, name) for name in chosen.names & MODEL.keys()},
    )
    for note in start.notes:
        warn(f"{arguments.weights}: {note}")
    device = choose_device(arguments.device)
    job = Job(config, chosen.recipe, dataset, seed, device, start)
    name = f"{Path(arguments.weights).stem}-tuned-seed{seed}"
    return job, arguments.out or free_folder(Path("runs") / name)


def free_folder(folder: Path) -> Path:
    """The folder, or with a number behind it the first one that is free."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


def resumed(arguments: argparse.Namespace) -> tuple["Job", Path]:
    """The run that a folder holds, as it was started."""
    from vitreous.training.job import job_of

    own = ("preset", "recipe", "config", "changes", "source", "skip_corrupt", "seed", "out")
    own += ("weights", "freeze", "layer_decay", "heads")
    given = {name: getattr(arguments, name) for name in own}
    clash = [n for n, v in given.items() if v not in (None, []) and v is not False]
    if clash:
        raise ConfigError(f"--resume takes the run's own settings; leave out {', '.join(clash)}")
    return job_of(arguments.resume, device=arguments.device), arguments.resume


def closing(result: "Result", out: Path, *, json: bool) -> None:
    """The last lines: how good, beside the floor; how long; where everything is."""
    if json:
        print_json({"run": str(out), **asdict(result)})
        return
    print(
        f"\ntest accuracy  {result.test_accuracy:.4f} on {result.n:,} unseen images"
        f"\nfloor          {result.floor:.4f} (always guessing the most common class)"
        f"\nvalidation     {result.validation_accuracy:.4f} on {result.validation_n:,} images"
        f"\nweights kept   {result.kept}"
        f"\ntraining time  {result.train_seconds:.1f} s, {result.epochs} epochs"
        f"\nrun folder     {out}"
        f"\nreport         {out / 'report.html'}"
    )


def show(arguments: argparse.Namespace, values: dict[str, Any]) -> None:
    """What would be done."""
    if arguments.json:
        print_json(values)
        return
    job = values["job"]
    print(f"source {job['source']}: {job['split']['training']:,} images to train on")
    print(f"{values['steps']:,} steps to {values['out']}")
    for part in ("config", "recipe"):
        print(part, *(f"{name}={value}" for name, value in job[part].items()))
