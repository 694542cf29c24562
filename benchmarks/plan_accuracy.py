"""How near to the truth does `vitreous plan` come, in memory and in time?

    python benchmarks/plan_accuracy.py --write

Each case is trained for a few steps in a process of its own, by the functions that training runs
on: its memory is the rise of the peak resident size over the size after the imports. Planned and
measured seconds are compared within a round: the machine is calibrated anew in each, and the
verdict is the median over rounds. About 12 minutes on two idle cores.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from report import parser, publish, setting, spread, table

from vitreous.config import Recipe, ViTConfig, preset
from vitreous.cost.calibration import Calibration
from vitreous.cost.plan import Plan, plan
from vitreous.cost.time import predict
from vitreous.data.dataset import Dataset
from vitreous.models.classifier import image_input
from vitreous.protocol.splits import training_and_validation
from vitreous.training.job import Job
from vitreous.training.memory import hold_memory
from vitreous.training.run import fresh_state, labelled, steps_of_epoch
from vitreous.training.speed import calibrate


class Case(NamedTuple):
    """One model in training."""

    preset: str
    batch: int
    optimizer: str
    precision: str
    changes: dict[str, Any]


BOTH = ("float32", "bfloat16")
CASES = (
    *(Case("digits", 1024, "adamw", p, {"patch_size": 7}) for p in BOTH),
    *(Case("b16", 64, "adamw", p, {"image_size": 64, "depth": 4}) for p in BOTH),
    Case("textbook", 256, "muon", "float32", {"image_size": 64, "class_token": True, "depth": 4}),
    *(Case("digits", 256, "muon", p, {}) for p in BOTH),
    *(Case("digits-fast", 2560, "muon", p, {}) for p in BOTH),
    Case("s16", 32, "adamw", "bfloat16", {"image_size": 112}),
    Case("b16", 16, "muon", "float32", {"image_size": 112, "depth": 4}),
    *(Case("ti16", 16, "adamw", p, {}) for p in BOTH),
    Case("b16", 8, "adamw", "float32", {"depth": 3}),
    *(Case("s16", 4, "muon", p, {"image_size": 384, "depth": 6}) for p in BOTH),
    Case("ti16", 8, "adamw", "float32", {"image_size": 384, "depth": 6}),
)
STEPS = 3
"""In a process; the first is not timed."""


def config_of(case: Case) -> ViTConfig:
    return replace(preset(case.preset), **case.changes)


def recipe_of(case: Case) -> Recipe:
    return Recipe(
        batch_size=case.batch, epochs=1, optimizer=case.optimizer, precision=case.precision
    )


def job_of(case: Case) -> Job:
    """A run on noise of the right shape, long enough for the steps."""
    config = config_of(case)
    size = case.batch * (STEPS + 1) * 5 // 4
    noise = np.random.default_rng(0)
    shape = (config.channels, *config.image_shape)
    prepared = image_input(config)
    assert prepared is not None
    dataset = Dataset(
        name="noise",
        train_images=noise.integers(0, 256, (size, *shape), dtype=np.uint8),
        train_labels=np.arange(size) % 2,
        test_images=np.zeros((1, *shape), np.uint8),
        test_labels=np.zeros(1, np.int64),
        class_names=tuple(map(str, range(config.classes))),
        input=prepared,
    )
    return Job(config, recipe_of(case), dataset, 0, torch.device("cpu"))


def resident(name: str) -> int:
    """Bytes of this process, now (VmRSS) or at most (VmHWM)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name))


def train(case: Case) -> dict[str, Any]:
    """A few steps: the rise of the peak in bytes, and seconds of every step but the first."""
    before = resident("VmRSS")
    hold_memory()
    job = job_of(case)
    state = fresh_state(job)
    training, _ = training_and_validation(job.dataset.train_labels)
    seconds, started = [], time.perf_counter()
    for _ in zip(range(STEPS), steps_of_epoch(job, state, labelled(job, training)), strict=False):
        seconds.append(time.perf_counter() - started)
        started = time.perf_counter()
    return {"rise": resident("VmHWM") - before, "seconds": seconds[1:]}


def apart(index: int, threads: int) -> dict[str, Any]:
    """One case in a process of its own."""
    line = [sys.executable, __file__, "--case", str(index), "--threads", str(threads)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Round(NamedTuple):
    """One calibration, and what every case came to beside it."""

    speeds: Calibration
    found: dict[int, dict[str, Any]]


def one_round(cases: list[int], threads: int) -> Round:
    """Calibrate, then every case in a random order."""
    speeds = calibrate()
    order = random.sample(cases, len(cases))
    return Round(speeds, {index: apart(index, threads) for index in order})


def row(index: int, rounds: list[Round]) -> list[object]:
    """One case: what it is, then planned, measured and their ratio, for memory and for time."""
    case = CASES[index]
    planned = plan(config_of(case), recipe=recipe_of(case))
    memory, times = ratios(index, planned, rounds)
    rises = [r.found[index]["rise"] / 1e6 for r in rounds]
    steps = [median(r.found[index]["seconds"]) for r in rounds]
    foreseen = [predict(planned.config, planned.recipe, r.speeds).step for r in rounds]
    changed = " ".join(f"{name}={value}" for name, value in case.changes.items())
    return [
        f"{case.preset} {changed}".strip(),
        planned.tokens,
        f"{case.precision}, {case.optimizer}",
        case.batch,
        f"{planned.memory.total / 1e6:,.0f}",
        spread(rises),
        f"{median(memory):.2f}",
        f"{median(foreseen):.2f}",
        spread(steps, 2),
        spread(times, 2),
    ]


def ratios(index: int, planned: Plan, rounds: list[Round]) -> tuple[list[float], list[float]]:
    """Planned over measured, a round each: of memory, and of a step's time."""
    memory, times = [], []
    for speeds, found in rounds:
        memory.append(planned.memory.total / found[index]["rise"])
        foreseen = predict(planned.config, planned.recipe, speeds).step
        times.append(foreseen / median(found[index]["seconds"]))
    return memory, times


def verdict(cases: list[int], rounds: list[Round]) -> str:
    """How many cases are within the limits that were set beforehand."""
    both = [ratios(i, plan(config_of(CASES[i]), recipe=recipe_of(CASES[i])), rounds) for i in cases]
    memory = [abs(median(those) - 1) for those, _ in both]
    times = [abs(median(those) - 1) for _, those in both]
    return (
        f"Planned over measured, n = {len(rounds)} rounds, medians. Memory within 10 %: "
        f"{sum(m <= 0.1 for m in memory)} of {len(cases)}, farthest {max(memory):.0%}. Seconds of "
        f"a step within 25 %: {sum(t <= 0.25 for t in times)} of {len(cases)}, farthest "
        f"{max(times):.0%}.\n"
    )


HEADER = [
    "model",
    "tokens",
    "recipe",
    "batch",
    "planned, MB",
    "measured, MB (min–max)",
    "ratio",
    "planned, s",
    "measured, s (min–max)",
    "ratio (min–max)",
]


def options() -> argparse.ArgumentParser:
    """How many rounds, of which cases."""
    verb = parser(__doc__)
    verb.add_argument("--rounds", type=int, default=5)
    verb.add_argument("--cases", type=int, nargs="+", default=list(range(len(CASES))))
    verb.add_argument("--case", type=int, help="train this one here, and print what it came to")
    return verb


def main() -> None:
    chosen = options().parse_args()
    torch.set_num_threads(chosen.threads)
    if chosen.case is not None:
        print(json.dumps(train(CASES[chosen.case])))
        return
    rounds = []
    for number in range(1, chosen.rounds + 1):
        rounds.append(one_round(chosen.cases, chosen.threads))
        print(f"round {number}/{chosen.rounds}", file=sys.stderr, flush=True)
    parts = [
        "# What a plan says, and what happens\n",
        setting(),
        verdict(chosen.cases, rounds),
        table(HEADER, [row(index, rounds) for index in chosen.cases]),
    ]
    publish("plan_accuracy", "\n".join(parts), write=chosen.write)


if __name__ == "__main__":
    main()
