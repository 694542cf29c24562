"""Say what a model's features are worth, without training it.

A linear probe and nearest neighbours read the features; penalty and k are chosen on the validation
images. The test images are answered once, which the folder's test ledger records.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from vitreous.cli.options import add_heads, add_json, print_json, warn

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous probe` understands."""
    verb.add_argument("weights", metavar="WEIGHTS", help="run, weights file or OWNER/NAME")
    verb.add_argument("--source", default="mnist", help="as for train (default: mnist)")
    verb.add_argument("--out", type=Path, help="folder (default: runs/probe-NAME)")
    verb.add_argument("--device", default="auto", help="auto, cpu, cuda or mps (default: auto)")
    add_heads(verb)
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Probe, and print what came of it; returns the exit code."""
    from vitreous.cli.progress import bar
    from vitreous.protocol import ledger
    from vitreous.training.folder import LEDGER
    from vitreous.training.probe import probe

    out = arguments.out or Path("runs") / f"probe-{Path(arguments.weights).stem}"
    with bar("encoding images") as progress:
        probed = probe(
            arguments.weights,
            arguments.source,
            out=out,
            heads=arguments.heads,
            device=arguments.device,
            progress=progress,
        )
    for note in probed.notes:
        warn(f"{arguments.weights}: {note}")
    looks = len(ledger.read(out / LEDGER)) // 2
    if arguments.json:
        print_json({"out": str(out), "test_set_looks": looks, **asdict(probed)})
        return 0
    for name, answer, what in (
        ("linear probe", probed.linear, f"penalty {probed.linear.chosen:g}"),
        ("k-NN", probed.knn, f"k = {probed.knn.chosen:g}"),
    ):
        print(
            f"{name:13}  test {answer.test_accuracy:.4f}, {answer.correct:,} of {probed.n:,}; "
            f"validation {answer.validation_accuracy:.4f} on {probed.validation_n:,}; {what}"
        )
    print(f"floor          {probed.floor:.4f} (always guessing the most common class)")
    print(f"features       {probed.width} numbers of {probed.training_n:,} training images")
    print(f"looks          {looks} at this test set in {out}")
    return 0
