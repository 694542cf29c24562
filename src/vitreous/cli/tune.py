"""Search a recipe's settings for accuracy on the validation images.

The test set is never seen. Every trial is kept when it ends; the same command goes on after Ctrl-C,
and with more --trials it searches further. Needs Optuna: pip install 'vitreous[tune]'.
"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from vitreous.cli.options import add_json, add_settings, chosen_settings, print_json, warn
from vitreous.errors import ConfigError

if TYPE_CHECKING:
    from vitreous.studies.tune import Range, Trial

__all__ = ["add_arguments", "run"]

PRESET = "digits-fast"


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous tune` understands."""
    add_settings(verb, preset=PRESET)
    verb.add_argument(
        "--over",
        metavar="KEY=RANGE",
        action="append",
        default=[],
        help="what to search: learning_rate=1e-4..1e-2 or batch_size=64,128; may be given more "
        "than once (default: learning_rate, matrix_rate, weight_decay and warmup)",
    )
    verb.add_argument("--trials", type=int, default=20, help="in all, earlier ones too")
    verb.add_argument("--out", type=Path, default=Path("runs/tune"), help="where trials are kept")
    verb.add_argument("--source", default="mnist", help="as for train (default: mnist)")
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Search, and say what was best; returns the exit code."""
    from vitreous.cli.progress import bar
    from vitreous.studies.tune import best_of, tune
    from vitreous.training.job import make_job

    if arguments.trials < 1:
        raise ConfigError(f"--trials {arguments.trials} must be at least 1")
    chosen = chosen_settings(arguments, preset=PRESET)
    job = make_job(
        chosen.config,
        arguments.source,
        recipe=chosen.recipe,
        seed=arguments.seed,
        device=arguments.device,
    )
    space = space_of(arguments.over)
    try:
        with bar("trials") as progress:
            for trial in tune(job, arguments.out, space, trials=arguments.trials):
                tell(trial, json=arguments.json)
                if progress:
                    progress(trial.number + 1, arguments.trials)
    except KeyboardInterrupt:
        warn("stopped; the trials that have ended are kept, and the same command goes on")
        return 130
    best = best_of(arguments.out)
    if best is None:
        warn("no trial has finished")
        return 1
    if arguments.json:
        print_json({"best": asdict(best)})
    else:
        settings = " ".join(f"--set {name}={value}" for name, value in best.changes.items())
        print(f"best: {best.validation_accuracy:.4f} on validation with {settings}")
    return 0


def space_of(words: list[str]) -> "dict[str, Range]":
    """The ranges that were typed, or the usual ones."""
    from vitreous.studies.tune import SPACE, read_space

    if not words:
        return dict(SPACE)
    pairs = [word.partition("=") for word in words]
    bare = [name for name, equals, _ in pairs if not equals]
    if bare:
        raise ConfigError(f"--over {bare[0]}: write it as key=LOW..HIGH or key=a,b,c")
    return read_space({name: text for name, _, text in pairs})


def tell(trial: "Trial", *, json: bool) -> None:
    """One line for each trial."""
    if json:
        print_json(asdict(trial))
        return
    accuracy = "" if trial.validation_accuracy is None else f" {trial.validation_accuracy:.4f}"
    chosen = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in trial.changes.items()
    )
    print(f"trial {trial.number:3}: {trial.state}{accuracy}  {chosen}", flush=True)
