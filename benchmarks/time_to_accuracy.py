"""How long until the published accuracy, against the published run's whole length?

The published run reached 98.28 % after 68 epochs of 749 steps. Its length here is the median time
of a step of the same model under the same recipe (batch 64, float32, all data handling included),
measured before and after ours, times its number of steps. Ours is the preset `digits-fast` under
the recipe `fast`: seconds of training and validation until an epoch ends at that accuracy on the
validation images.

    python benchmarks/time_to_accuracy.py --seeds 0 1 2 --write

About 6 minutes on two cores.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from report import parser, publish, setting, spread, table

import vitreous
from vitreous.config import Recipe
from vitreous.training.job import Job, make_job
from vitreous.training.loop import Step
from vitreous.training.run import run
from vitreous.training.state import Epoch

PUBLISHED_ACCURACY = 0.9828
PUBLISHED_STEPS = 749 * 68


def job(preset: str, recipe: str | Recipe, seed: int) -> Job:
    """A run on the bundled digits."""
    return make_job(vitreous.preset(preset), "mnist", recipe=recipe, seed=seed, device="cpu")


def published_steps(steps: int) -> list[float]:
    """Seconds of each step of the published run, after a few that are not counted."""
    with TemporaryDirectory() as out:
        seconds = list(seconds_of_steps(job("digits", "published", 0), Path(out), steps + 5))
    return seconds[5:]


def seconds_of_steps(job: Job, out: Path, steps: int) -> Iterator[float]:
    """From the end of one step to the end of the next."""
    short = replace(job, recipe=replace(job.recipe, max_steps=steps))
    before = time.perf_counter()
    for event in run(short, out):
        if not isinstance(event, Step):
            return
        yield time.perf_counter() - before
        before = time.perf_counter()


def first_good_epoch(preset: str, recipe: str, seed: int) -> Epoch | None:
    """The first epoch that ends at the published accuracy."""
    with TemporaryDirectory() as out:
        for event in run(job(preset, recipe, seed), Path(out)):
            if isinstance(event, Epoch) and event.validation_accuracy >= PUBLISHED_ACCURACY:
                return event
    return None


def row(seed: int, epoch: Epoch | None, length: float) -> list[object]:
    """One seed, as a line of the table."""
    if epoch is None:
        return [seed, "not reached", "", "", ""]
    accuracy = f"{100 * epoch.validation_accuracy:.2f} %"
    ratio = f"{length / epoch.seconds:.0f}×"
    return [seed, f"{epoch.seconds:.1f}", epoch.epoch, accuracy, ratio]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--preset", default="digits-fast")
    options.add_argument("--recipe", default="fast")
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--steps", type=int, default=40, help="of the published run, twice")
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    before = published_steps(chosen.steps)
    good = {s: first_good_epoch(chosen.preset, chosen.recipe, s) for s in chosen.seeds}
    after = published_steps(chosen.steps)
    length = median(before + after) * PUBLISHED_STEPS
    header = ["seed", "seconds", "epochs", "validation accuracy", "published / ours"]
    reached = [epoch.seconds for epoch in good.values() if epoch]
    parts = [
        "# Seconds to the published accuracy\n",
        setting(),
        f"The published run: {length:,.0f} s = {PUBLISHED_STEPS:,} steps of "
        f"{1e3 * median(before + after):.0f} ms ({1e3 * median(before):.0f} before, "
        f"{1e3 * median(after):.0f} after; n = {len(before + after)}).\n",
        f"Ours: preset {chosen.preset}, recipe {chosen.recipe}; "
        + (f"seconds {spread(reached, 1)}, " if reached else "")
        + f"n = {len(good)}, of which {len(reached)} reached {100 * PUBLISHED_ACCURACY:.2f} %.\n",
        table(header, [row(seed, epoch, length) for seed, epoch in good.items()]),
    ]
    publish("time_to_accuracy", "\n".join(parts), write=chosen.write)


if __name__ == "__main__":
    main()
