"""Check that a run's recorded numbers still stand.

Data hashes, split and parameter count are made anew, the test set is scored again (which goes to
the run's test ledger), and each is compared to the last bit. Exit code 1 where one differs.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from vitreous.cli.options import add_json, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous verify` understands."""
    verb.add_argument("run_folder", metavar="RUN", type=Path)
    verb.add_argument("--source", help="where the data are, if not where they were")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Print every check; returns the exit code."""
    from vitreous.cli.progress import busy
    from vitreous.training.verify import verify

    with busy("building everything again"):
        checks = verify(arguments.run_folder, arguments.source)
    for check in checks:
        if arguments.json:
            print_json({**asdict(check), "holds": check.holds})
        elif check.holds:
            print(f"holds    {check.what}: {check.now}")
        else:
            print(f"DIFFERS  {check.what}: recorded {check.recorded}, now {check.now}")
    failed = sum(not check.holds for check in checks)
    if not arguments.json:
        print(f"{len(checks) - failed} of {len(checks)} hold: {arguments.run_folder}")
    return int(failed > 0)
