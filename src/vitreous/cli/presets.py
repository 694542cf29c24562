"""List the named models, or one in full."""

import argparse
from dataclasses import asdict

from vitreous.cli.options import add_json, print_json
from vitreous.config import PRESETS, RECIPES, preset
from vitreous.cost.parameters import count_parameters

__all__ = ["add_arguments", "run"]


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous presets` understands."""
    verb.add_argument("name", nargs="?", help="show every setting of this one")
    add_json(verb)


def run(arguments: argparse.Namespace) -> int:
    """Print the presets; returns the exit code."""
    names = [arguments.name] if arguments.name else list(PRESETS)
    for name in names:
        config = preset(name)
        values = {"name": name, "parameters": count_parameters(config), "tokens": config.tokens}
        if arguments.json:
            print_json({**values, **asdict(config)})
            continue
        print(
            f"{name:13}{values['parameters']:>12,} parameters {config.tokens:>4} tokens  "
            f"width {config.width}, depth {config.depth}, heads {config.heads}"
        )
        if arguments.name:
            print(*(f"  {key} = {value}" for key, value in asdict(config).items()), sep="\n")
    if not arguments.json and not arguments.name:
        print(f"recipes: {', '.join(RECIPES)}")
    return 0
