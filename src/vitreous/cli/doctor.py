"""say how a weights file was read, and what each convention is worth on it"""

import argparse
import json
from dataclasses import asdict

from vitreous.cli.convert import add_source, loaded

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """A source, and how to print."""
    add_source(verb)
    verb.add_argument("--json", action="store_true", help="print the account as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Load, then change one convention at a time."""
    from vitreous.interop.doctor import counterfactuals, probe_images

    model, report = loaded(arguments)
    found = sorted(counterfactuals(model, probe_images(model)), key=lambda other: -other.moves)
    if arguments.json:
        others = [asdict(other) for other in found]
        print(json.dumps(report.to_dict() | {"counterfactuals": others}, indent=2))
        return 0
    print(report)
    print("with the other choice, outputs would move by this much of their largest value:")
    for other in found:
        print(f"  {other.moves:8.1e}  {other.convention}: {other.instead}, not {other.used}")
    return 0
