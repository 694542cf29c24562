"""Write a trained model for other programs: one ONNX file for any batch.

The file is read back by ONNX Runtime at batches of 1, 3 and 7 and compared with the model itself
before it gets its name. Class names and how images are prepared stand in its metadata.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from vitreous.cli.options import add_heads, add_json, print_json
from vitreous.errors import ConfigError

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous export` understands."""
    verb.add_argument("weights", metavar="RUN", help="run folder, weights file or OWNER/NAME")
    verb.add_argument("--onnx", action="store_true", help="the format, so far the only one")
    verb.add_argument(
        "--out", type=Path, metavar="FILE", help="default: model.onnx in the run folder"
    )
    verb.add_argument(
        "--image-size",
        metavar="SIZE",
        help="another size than the model's: 32 or 32x48 (rows x columns)",
    )
    add_heads(verb)
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Write the file; returns the exit code."""
    from vitreous.cli.progress import busy
    from vitreous.export.onnx import export_onnx
    from vitreous.training.start import open_weights

    if not arguments.onnx:
        raise ConfigError("say which format: --onnx")
    size = None if arguments.image_size is None else read_size(arguments.image_size)
    model, place = open_weights(arguments.weights, heads=arguments.heads)
    out = arguments.out or default_file(arguments.weights, place)
    with busy("tracing, writing, reading back and comparing"):
        exported = export_onnx(model, out, image_size=size)
    if arguments.json:
        print_json(asdict(exported))
        return 0
    print(
        f"done           {exported.file}, {exported.bytes:,} bytes, {exported.nodes} nodes"
        f"\nimages         {' × '.join(map(str, exported.input))}"
        f"\nlogits         {' × '.join(map(str, exported.output))}"
        f"\ncompared       at batches {', '.join(map(str, exported.batches))}: logits differ from "
        f"the model's by {exported.largest_difference:.1e} at most"
    )
    return 0


def read_size(text: str) -> tuple[int, int]:
    """`32` or `32x48` as rows and columns; raises ConfigError for anything else."""
    sides = text.split("x")
    if len(sides) > 2 or not all(side.isdecimal() for side in sides):
        raise ConfigError(f"--image-size {text}: write it as 32 or 32x48 (rows x columns)")
    return int(sides[0]), int(sides[-1])


def default_file(weights: str, place: Path) -> Path:
    """In the run folder, beside a weights file, or here for what came from the hub."""
    if not Path(weights).exists():
        return Path(f"{weights.rpartition('/')[2]}.onnx")
    return place / "model.onnx" if place.is_dir() else place.with_suffix(".onnx")
