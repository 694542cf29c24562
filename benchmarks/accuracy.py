"""How accurate is a model under a recipe, over several seeds?

Every seed is trained whole and scored once on the test set. With --write, each seed is appended to
a file of JSON lines as it ends, and a later call goes on after the last of them: a name stands for
one series of one model and one recipe.

    python benchmarks/accuracy.py --preset digits-fast --recipe fast --seeds 0 1 2 --write fast

A seed of digits-fast takes about a minute on two cores.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import torch
from report import RESULTS, parser, publish, setting, table, today

import vitreous
from vitreous import settings
from vitreous.cli.options import add_settings, chosen_settings
from vitreous.config import Recipe, ViTConfig

Line = dict[str, Any]


def lines_file(name: str | None) -> Path | None:
    """Where the series of this name is, or would begin today; none where nothing is kept."""
    if name is None:
        return None
    begun = sorted(RESULTS.glob(f"accuracy-{name}-????-??-??.jsonl"))
    return begun[-1] if begun else RESULTS / f"accuracy-{name}-{today()}.jsonl"


def finished(path: Path | None, config: ViTConfig, recipe: Recipe) -> dict[int, Line]:
    """The seeds that ended before, which must be of this model and recipe.

    A setting that a line does not name is newer than it, and was at its default.
    """
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    before = [
        (settings.from_dict(ViTConfig, line["config"]), settings.from_dict(Recipe, line["recipe"]))
        for line in lines
    ]
    if any(pair != (config, recipe) for pair in before):
        raise SystemExit(f"{path} is a series of other settings; take another name, or remove it")
    return {line["seed"]: line for line in lines}


def train(config: ViTConfig, recipe: Recipe, seed: int) -> Line:
    """One seed, from data to a score."""
    with TemporaryDirectory() as out:
        result = vitreous.train(
            config, "mnist", recipe=recipe, seed=seed, out=Path(out) / "run", device="cpu"
        )
    return asdict(result)


def append(path: Path | None, line: Line) -> None:
    """Keep one seed at once, so that an interruption costs no more than the next."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def series(
    config: ViTConfig, recipe: Recipe, seeds: Sequence[int], path: Path | None
) -> list[Line]:
    """Every seed: read where it ended before, trained where not."""
    described = {"config": settings.to_dict(config), "recipe": settings.to_dict(recipe)}
    done = finished(path, config, recipe)
    for seed in seeds:
        if seed not in done:
            done[seed] = {**train(config, recipe, seed), **described}
            append(path, done[seed])
        print(f"seed {seed}: {percent(done[seed]['test_accuracy'])}", flush=True)
    return [done[seed] for seed in seeds]


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f} %"


def row(line: Line) -> list[object]:
    """One seed, as a line of the table."""
    return [
        line["seed"],
        percent(line["test_accuracy"]),
        percent(line["validation_accuracy"]),
        f"{line['train_seconds']:.0f}",
        line["epochs"],
    ]


def summary(lines: list[Line]) -> str:
    """Mean, spread and n, with the size of the model."""
    tests = [line["test_accuracy"] for line in lines]
    deviation = f"{100 * stdev(tests):.3f} points" if len(tests) > 1 else "unknown"
    seconds = mean(line["train_seconds"] for line in lines)
    return (
        f"Test accuracy **{percent(mean(tests), 3)}**, sample standard deviation {deviation}, "
        f"n = {len(lines)} seeds of {lines[0]['n']:,} images; {lines[0]['parameters']:,} "
        f"parameters; {seconds:.0f} s of training on average.\n"
    )


def options() -> argparse.ArgumentParser:
    """The model, the recipe, the seeds, and the name under which the series is kept."""
    verb = parser(__doc__, write=False)
    add_settings(verb, preset="digits-fast")
    verb.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    verb.add_argument("--write", metavar="NAME", help="keep the series in results/")
    return verb


def main() -> None:
    chosen = options().parse_args()
    torch.set_num_threads(chosen.threads)
    _, config, recipe, *_ = chosen_settings(chosen, preset="digits-fast")
    lines = series(config, recipe, chosen.seeds, lines_file(chosen.write))
    header = ["seed", "test accuracy", "validation accuracy", "train seconds", "epochs"]
    parts = ["# Accuracy\n", summary(lines), setting(), table(header, map(row, lines))]
    publish(f"accuracy-{chosen.write}", "\n".join(parts), write=chosen.write is not None)


if __name__ == "__main__":
    main()
