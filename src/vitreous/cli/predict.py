"""Say what image files show, with a trained model.

Photographs and drawings of single digits are prepared as the training data were: light evened out,
polarity from the border, centred. A file that cannot be read never stops the rest; exit code 1
where there was one.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from vitreous.cli.options import add_json, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous predict` understands."""
    verb.add_argument("run_folder", metavar="RUN", type=Path, help="run folder or weights file")
    verb.add_argument("images", metavar="IMAGE", nargs="+")
    verb.add_argument("--top", type=int, default=3, help="how many classes to list (default: 3)")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Print one line a file; returns the exit code."""
    from vitreous.checkpoints.store import load
    from vitreous.training.predict import predict

    model = load(arguments.run_folder)
    failed = False
    for prediction in predict(model, arguments.images, top=max(arguments.top, 1)):
        failed |= prediction.error is not None
        if arguments.json:
            print_json({name: v for name, v in asdict(prediction).items() if v not in (None, ())})
        elif prediction.error:
            print(f"{prediction.file}: {prediction.error}", flush=True)
        else:
            others = ", ".join(f"{name} {chance:.1%}" for name, chance in prediction.top[1:])
            print(f"{prediction.file}: {prediction.label} ({prediction.probability:.1%}; {others})")
    return int(failed)
