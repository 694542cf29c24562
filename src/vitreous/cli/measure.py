"""Measure how fast this machine is, once, so that `vitreous plan --time` can say how long.

Takes about half a minute; let nothing else run. What was measured goes to a file in the user's
cache, with the machine, its threads, torch's version and the day.
"""

import argparse
from pathlib import Path

from vitreous.cli.options import add_json, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous measure` understands."""
    verb.add_argument("--out", type=Path, metavar="FILE", help="where to, if not to the cache")
    verb.add_argument("--threads", type=int, help="processor threads (default: one per core)")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Measure and write; returns the exit code."""
    from vitreous.checkpoints.files import require_room, write_json
    from vitreous.cli.progress import bar
    from vitreous.cli.train import set_threads
    from vitreous.cost.calibration import calibration_file
    from vitreous.training.speed import calibrate

    set_threads(arguments.threads)
    path = arguments.out or calibration_file()
    require_room(path.parent, 100_000)
    with bar("measuring") as progress:
        found = calibrate(progress)
    write_json(path, found.to_dict())
    if arguments.json:
        print_json({"file": str(path), **found.to_dict()})
        return 0
    print(found.source)
    for precision in ("float32", "bfloat16"):
        rates = ", ".join(
            f"{1e-9 / seconds:,.0f} at width {width:g}"
            for width, seconds in found.curves[f"linear.forward.{precision}"]
        )
        print(f"matrix products in {precision}, G multiply-adds a second: {rates}")
    print(f"written to {path}; vitreous plan --time reads it")
    return 0
