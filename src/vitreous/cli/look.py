"""See what a model does with image files: one page that works without network, and PNGs.

The image cut into its patches, whom each token reads by layer and head, rollout and relevance with
what they are worth beside chance, and the answer. A file that cannot be read never stops the rest;
exit code 1 where there was one.
"""

import argparse
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vitreous.cli.options import add_json, print_json

if TYPE_CHECKING:
    from vitreous.inspection.look import Look
    from vitreous.models.classifier import Classifier

__all__ = ["add_arguments", "open_model", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous look` understands."""
    verb.add_argument(
        "model", metavar="RUN|WEIGHTS", type=Path, help="run folder, or weights of any library"
    )
    verb.add_argument("images", metavar="IMAGE", nargs="+")
    verb.add_argument(
        "--out", metavar="FOLDER", type=Path, default=Path("look"), help="default: look"
    )
    verb.add_argument(
        "--layers", metavar="N", nargs="+", type=int, help="show these only; -1 is the last"
    )
    verb.add_argument("--heads", metavar="N", nargs="+", type=int, help="show these only")
    verb.add_argument(
        "--quick", action="store_true", help="do not hold the maps against chance, which takes time"
    )
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Write the page; returns the exit code."""
    from vitreous.cli.progress import bar
    from vitreous.inspection.look import effort_for, look_at

    model = open_model(arguments.model)
    effort = None if arguments.quick else effort_for(model)
    looks: list[Look] = []
    try:
        for name in arguments.images:
            with bar(name) as tell:
                chosen = {"layers": arguments.layers, "heads": arguments.heads}
                look = look_at(model, name, **chosen, effort=effort, tell=tell)
            looks.append(look)
            show(look, json=arguments.json)
    finally:  # also when Ctrl-C comes: what has been seen is kept
        if looks:
            tell_where(write(arguments, model, looks), json=arguments.json)
    return int(any(look.error is not None for look in looks))


def write(arguments: argparse.Namespace, model: "Classifier", looks: "list[Look]") -> Path:
    """Write the page of these looks."""
    from vitreous.inspection.page import write_looks

    return write_looks(
        arguments.out,
        model,
        looks,
        title=f"Looking through {arguments.model.resolve().name}",
        command=shlex.join(["vitreous", *sys.argv[1:]]),
        heads=arguments.heads,
    )


def tell_where(path: Path, *, json: bool) -> None:
    """Say where the page is."""
    if json:
        print_json({"page": str(path)})
    else:
        print(path)


def open_model(place: Path) -> "Classifier":
    """The model of one of our folders or files, or of another library's; raises CheckpointError."""
    from vitreous.checkpoints.store import CONFIG, WEIGHTS, load, read_tensors

    path = place / WEIGHTS if place.is_dir() else place
    ours = path.suffix == ".safetensors" and CONFIG in read_tensors(path)[1]
    if ours or not place.exists():
        return load(place)
    try:
        from vitreous.interop.load import load_weights  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:  # what reads other libraries' weights is not installed
        return load(place)
    return load_weights(place)[0]


def show(look: "Look", *, json: bool) -> None:
    """One image in a few lines."""
    if json:
        verdicts = {
            method: {"better_than_chance": found.better, "gain": found.gain, "says": found.sentence}
            for method, found in look.verdicts.items()
        }
        known = {"error": look.error} if look.error else {"top": look.answers, "maps": verdicts}
        print_json({"file": look.name, **known})
        return
    if look.error:
        print(f"{look.name}: {look.error}", flush=True)
        return
    answers = ", ".join(f"{name} {chance:.1%}" for name, chance in look.answers[:3])
    print(f"{look.name}: {answers or 'no classes'}")
    for method, found in look.verdicts.items():
        print(f"  {method}: {found.sentence}", flush=True)
