"""Say what a model will cost, before it is built.

Tokens, parameters, multiply-adds and FLOPs of one image (FLOPs are 2 × multiply-adds), and the
memory that training or answering takes for a batch, on paper: nothing is built and torch is not
loaded.
"""

import argparse
import csv
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vitreous.cli.options import add_settings, chosen_settings, print_json
from vitreous.cost import calibration, windowed
from vitreous.cost.calibration import Calibration
from vitreous.cost.explain import explain
from vitreous.cost.fits import Fits, fits
from vitreous.cost.sizes import in_bytes, in_count, in_seconds, parse_bytes
from vitreous.cost.sweep import Row, parse_axis, plain, sweep
from vitreous.cost.time import Times, predict
from vitreous.cost.windowed import WINDOWED
from vitreous.errors import ConfigError

__all__ = ["add_arguments", "run"]

PRESET = "digits-fast"
SOURCE = ("machine", "threads", "torch", "measured")
SHORT = ("image_size", "patch_size", "batch_size")


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous plan` understands."""
    add_settings(verb, preset=PRESET)
    verb.add_argument("--image-size", metavar="N", help="pixels, or [rows,columns]")
    verb.add_argument("--patch-size", metavar="N", help="pixels, or [rows,columns]")
    verb.add_argument(
        "--batch", metavar="N", dest="batch_size", help="images at once (default: the recipe's)"
    )
    purpose = verb.add_mutually_exclusive_group()
    purpose.add_argument("--train", action="store_true", help="memory of training (the default)")
    purpose.add_argument("--inference", action="store_true", help="memory of answering, in float32")
    verb.add_argument(
        "--sweep",
        metavar="KEY=VALUE,...",
        nargs="+",
        default=[],
        help="a plan for each combination of these settings' values",
    )
    verb.add_argument(
        "--windowed",
        metavar="NAME",
        help=f"price windowed attention, which is not built here: {', '.join(WINDOWED)}",
    )
    verb.add_argument("--fits", metavar="SIZE", help="the largest batch in so much, as 24GB")
    verb.add_argument(
        "--time",
        metavar="FILE",
        type=Path,
        nargs="?",
        const=calibration.calibration_file(),
        help="seconds on the machine that FILE measured (default: this one, once measured)",
    )
    verb.add_argument("--figure", metavar="FILE", type=Path, help="draw it: FILE.png or FILE.svg")
    form = verb.add_mutually_exclusive_group()
    form.add_argument("--explain", action="store_true", help="formulas with the numbers filled in")
    form.add_argument("--csv", action="store_true", help="print a table for spreadsheets")
    form.add_argument("--json", action="store_true", help="print JSON Lines instead of prose")


@dataclass(frozen=True)
class Answer:
    """One row, with what else was asked of it."""

    row: Row
    fits: Fits | None = None
    times: Times | None = None
    speeds: Calibration | None = None
    """Where the times come from."""

    def to_dict(self) -> dict[str, Any]:
        """Everything for programs: the settings that were swept, then the plan."""
        if self.row.plan is None:
            return {**self.row.values, "error": self.row.refused}
        more: dict[str, Any] = {} if self.fits is None else {"fits": self.fits._asdict()}
        if self.times and self.speeds:
            source = {name: getattr(self.speeds, name) for name in SOURCE}
            more["seconds"] = {**self.times._asdict(), **source}
        return {**self.row.values, **self.row.plan.to_dict(), **more}


def run(arguments: argparse.Namespace) -> int:
    """Print the plans; returns the exit code: 1 where none could be made."""
    if arguments.windowed:
        return price_windowed(arguments)
    shortcuts = [f"{n}={v}" for n in SHORT if (v := getattr(arguments, n)) is not None]
    arguments.changes = [*arguments.changes, *shortcuts]
    chosen = chosen_settings(arguments, preset=PRESET)
    axes = dict(map(parse_axis, arguments.sweep))
    limit = parse_bytes(arguments.fits) if arguments.fits else None
    if arguments.explain and axes:
        raise ConfigError("--explain writes one plan on the board; leave out --sweep")
    rows = sweep(chosen.config, chosen.recipe, axes, train=not arguments.inference)
    speeds = calibration.read(arguments.time) if arguments.time else None
    answers = [answer(row, limit, speeds) for row in rows]
    show(answers, arguments, chosen.preset)
    plans = {a.row.name or chosen.preset: a.row.plan for a in answers if a.row.plan}
    if arguments.figure and plans:
        from vitreous.cost.picture import draw

        draw(list(plans.values()), list(plans), arguments.figure)
    return int(not plans)


def price_windowed(arguments: argparse.Namespace) -> int:
    """Print what a model would cost that cannot be built here; returns the exit code."""
    only = ("verb", "windowed", "json")
    clash = [name for name, given in vars(arguments).items() if given and name not in only]
    if clash:
        raise ConfigError(f"--windowed takes --json and nothing else; leave out {clash[0]}")
    name = arguments.windowed
    shape = windowed.windowed(name)
    parts, parameters = windowed.forward(shape), windowed.count_parameters(shape)
    if arguments.json:
        print_json(
            {
                "name": name,
                "built_here": False,
                "tokens": [stage.tokens for stage in shape.stages],
                "parameters": parameters,
                "multiply_adds": parts.total,
                "flops": parts.flops,
                "attention_share": parts.attention_share,
                "multiply_adds_by_part": asdict(parts),
            }
        )
        return 0
    print(f"{name} is priced only: windowed attention cannot be built or trained here")
    stages = " → ".join(f"{stage.tokens:,}×{stage.width}" for stage in shape.stages)
    rows = {
        "tokens × width": f"{stages}, in windows of {shape.window}×{shape.window}",
        "parameters": f"{parameters:,}",
        "multiply-adds": f"{in_count(parts.total)} an image",
        "flops": f"{in_count(parts.flops)} an image: 2 × multiply-adds",
        "attention's share": f"{parts.attention_share:.1%} (its products)",
    }
    print(*(f"  {what:22} {value}" for what, value in rows.items()), sep="\n")
    return 0


def answer(row: Row, limit: int | None, speeds: Calibration | None) -> Answer:
    """The row, with the batch that fits and the seconds that it takes, where these were asked."""
    if row.plan is None:
        return Answer(row)
    config, recipe = row.plan.config, row.plan.recipe
    return Answer(
        row,
        fits=None if limit is None else fits(config, recipe, limit),
        times=None if speeds is None else predict(config, recipe, speeds),
        speeds=speeds,
    )


def show(answers: list[Answer], arguments: argparse.Namespace, preset: str) -> None:
    """Print in the form that was asked for."""
    if arguments.json:
        told = [each.to_dict() for each in answers]
        print_json(told if arguments.sweep else told[0])
    elif arguments.csv:
        print_csv([flat(each) for each in answers])
    elif arguments.sweep:
        print(preset)
        print_table([cells(each) for each in answers])
    else:
        print_whole(answers[0], preset, explained=arguments.explain)


def print_whole(answer: Answer, preset: str, *, explained: bool) -> None:
    """One plan, in full."""
    plan = answer.row.plan
    if plan is None:
        return
    print(explain(plan) if explained else f"{preset}: {plan}")
    if answer.fits:
        limit, training, inference = answer.fits
        print(f"\nlargest batch in {in_bytes(limit)}")
        for purpose, batch in (("training", training), ("inference", inference)):
            print(f"  {purpose:22} {batch:,}{'' if batch else ': not even one image'}")
    if answer.times and answer.speeds:
        print(f"\ntime on {answer.speeds.source}")
        print(f"  {'training step':22} {in_seconds(answer.times.step)} for {plan.batch} images")
        print(f"  {'answer':22} {in_seconds(answer.times.image)} an image, float32")


def print_table(rows: list[dict[str, str]]) -> None:
    """Rows under their names, numbers to the right; a sentence takes the rest of its row."""
    names = list(dict.fromkeys(name for row in rows for name in row if name != "error"))
    widths = {n: max(len(n), *(len(row.get(n, "")) for row in rows)) for n in names}
    print("  ".join(f"{name:>{widths[name]}}" for name in names))
    for row in rows:
        there = [f"{row[name]:>{widths[name]}}" for name in names if name in row]
        print("  ".join([*there, *([row["error"]] if "error" in row else [])]))


def cells(answer: Answer) -> dict[str, str]:
    """One row of a table for people."""
    values = {name: plain(value) for name, value in answer.row.values.items()}
    plan = answer.row.plan
    if plan is None:
        return {**values, "error": answer.row.refused or ""}
    figures = {
        "tokens": f"{plan.tokens:,}",
        "parameters": f"{plan.parameters:,}",
        "multiply-adds": in_count(plan.multiply_adds),
        "flops": in_count(plan.flops),
        "attention": f"{plan.attention_share:.1%}",
        "memory": in_bytes(plan.memory.total),
    }
    if answer.fits:
        figures["training batch"] = f"{answer.fits.training:,}"
        figures["inference batch"] = f"{answer.fits.inference:,}"
    if answer.times:
        figures["step"] = in_seconds(answer.times.step)
        figures["answer"] = f"{in_seconds(answer.times.image)} an image"
    return values | figures


def flat(answer: Answer) -> dict[str, Any]:
    """One row for a spreadsheet: nested names are joined with a dot."""
    values = {name: plain(value) for name, value in answer.row.values.items()}
    plan = answer.row.plan
    if plan is None:
        return {**values, "error": answer.row.refused}
    given = answer.to_dict()
    names = ("tokens", "parameters", "multiply_adds", "flops", "attention_share", "batch")
    nested = {
        "multiply_adds": "multiply_adds_by_part",
        "memory": "memory",
        "fits": "fits",
        "seconds": "seconds",
    }
    parts = {
        f"{short}.{name}": value
        for short, long in nested.items()
        for name, value in given.get(long, {}).items()
    }
    return values | {name: given[name] for name in names} | parts


def print_csv(rows: list[dict[str, Any]]) -> None:
    """Comma-separated, with the names in the first line."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
