"""read another library's weights, account for every tensor, and write them as another's"""

import argparse
from pathlib import Path

from vitreous.cli.options import add_json, image_size, print_json
from vitreous.errors import CheckpointError

__all__ = ["add_arguments", "add_source", "loaded", "run"]

FORMATS = ("vitreous", "timm", "hugging-face", "torchvision")


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What is read, and what is written."""
    add_source(verb)
    verb.add_argument("--to", choices=FORMATS, help="write it so; without, only the account")
    verb.add_argument("--out", type=Path, metavar="FOLDER", help="default: SOURCE-FORMAT")
    verb.add_argument(
        "--image-size", type=image_size, help="stretch positions to images of this size"
    )
    verb.add_argument("--channels", type=int, help="1 or 3: colour to grey, or grey to colour")
    add_json(verb)


def add_source(verb: argparse.ArgumentParser) -> None:
    """A source, and what its file may not say."""
    verb.add_argument("source", metavar="SOURCE", help="a weights file or a folder with one")
    verb.add_argument("--heads", type=int, help="attention heads, where the file does not say")
    verb.add_argument(
        "--source-size", type=image_size, help="pixels of the images its positions are for"
    )
    verb.add_argument(
        "--check", type=Path, metavar="NPZ", help="images x and the library's own outputs"
    )


def run(arguments: argparse.Namespace) -> int:
    """Read, account, write."""
    model, report = loaded(arguments, image_size=arguments.image_size, channels=arguments.channels)
    notes = []
    if arguments.to is not None:
        out = arguments.out or Path(f"{Path(arguments.source).stem}-{arguments.to}")
        if out.exists() and any(out.iterdir()):
            raise CheckpointError(f"{out}: there is something in it; give another --out")
        notes = [*written(model, out, arguments.to), f"written to {out}"]
    if arguments.json:
        print_json(report.to_dict() | {"written": notes})
    else:
        print(report, *(f"  {note}" for note in notes), sep="\n")
    return 0


def loaded(arguments: argparse.Namespace, **changes):
    """The model and the account of what `add_source` asked for."""
    from vitreous.interop.load import load_weights

    return load_weights(
        arguments.source,
        arguments.heads,
        source_size=arguments.source_size,
        check=arguments.check,
        **changes,
    )


def written(model, out: Path, library: str) -> list[str]:
    """Write a model in one of the formats; what its files cannot say."""
    if library == "vitreous":
        from vitreous.checkpoints.store import save

        save(model, out)
        return []
    from vitreous.interop.write import write_weights

    return write_weights(model, out, library)
