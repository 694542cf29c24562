"""Print what a run came to.

The recorded result is printed; the test set is not looked at. With --again it is scored once more,
which the run's test ledger and its report will show for ever.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from vitreous.cli.options import add_json, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous evaluate` understands."""
    verb.add_argument("run_folder", metavar="RUN", type=Path)
    verb.add_argument("--again", action="store_true", help="score the test set once more")
    verb.add_argument("--source", help="where the data are, if not where they were")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Print the result; returns the exit code."""
    from vitreous.protocol import ledger
    from vitreous.training.folder import LEDGER, read_result

    folder = arguments.run_folder
    result = read_result(folder)
    values = asdict(result)
    if arguments.again:
        from vitreous.cli.progress import busy
        from vitreous.training.verify import score_again

        with busy("scoring the test set again"):
            tested = score_again(folder, arguments.source, purpose="evaluate")
        values["scored_again"] = {"correct": tested.correct, "n": tested.n}
    values["test_set_looks"] = len(ledger.read(folder / LEDGER))
    if arguments.json:
        print_json({"run": str(folder), **values})
        return 0
    for name, value in values.items():
        print(f"{name:20} {value}")
    return 0
