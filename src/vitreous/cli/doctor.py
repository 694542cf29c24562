"""say how a weights file was read, and what each convention is worth on it"""

import argparse
from dataclasses import asdict

from vitreous.cli.convert import add_source, loaded
from vitreous.cli.options import add_json, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """A source, and how to print."""
    add_source(verb)
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Load, then change one convention at a time."""
    from vitreous.cli.progress import busy
    from vitreous.interop.doctor import counterfactuals, probe_images

    model, report = loaded(arguments)
    with busy("changing one convention after another"):
        found = sorted(counterfactuals(model, probe_images(model)), key=lambda other: -other.moves)
    if arguments.json:
        others = [asdict(other) for other in found]
        print_json(report.to_dict() | {"counterfactuals": others})
        return 0
    print(report)
    print("with the other choice, outputs would move by this much of their largest value:")
    for other in found:
        print(f"  {other.moves:8.1e}  {other.convention}: {other.instead}, not {other.used}")
    return 0
