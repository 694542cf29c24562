"""Options that several verbs share."""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from vitreous import config as configs
from vitreous import settings
from vitreous.config import PRESETS, RECIPES, Recipe, ViTConfig
from vitreous.errors import ConfigError

__all__ = [
    "add_heads",
    "add_json",
    "add_settings",
    "chosen_settings",
    "image_size",
    "print_json",
]

MODEL, RECIPE = settings.setting_types(ViTConfig), settings.setting_types(Recipe)


def add_json(verb: argparse.ArgumentParser) -> None:
    """`--json`, for programs."""
    verb.add_argument("--json", action="store_true", help="print JSON Lines instead of prose")


def add_heads(verb: argparse.ArgumentParser) -> None:
    """`--heads`, for weights of other libraries."""
    verb.add_argument("--heads", type=int, help="attention heads, where the weights do not say")


def image_size(text: str) -> int | tuple[int, int]:
    """Pixels of a side, or ROWSxCOLUMNS.

    >>> image_size("224"), image_size("160x320")
    (224, (160, 320))
    """
    sides = [int(side) for side in text.lower().replace("×", "x").split("x")]
    if len(sides) > 2 or min(sides) < 1:
        raise ValueError(text)
    return sides[0] if len(sides) == 1 else (sides[0], sides[1])


def print_json(values: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
    """One object, or a list of them, on one line; NaN is refused, as JSON has no word for it."""
    print(json.dumps(values, allow_nan=False), flush=True)


def add_settings(verb: argparse.ArgumentParser, *, preset: str) -> None:
    """`--preset`, `--recipe`, `--config` and `--set`, each overriding the ones before it."""
    verb.add_argument(
        "--preset", metavar="NAME", help=f"the model: {', '.join(PRESETS)} (default: {preset})"
    )
    verb.add_argument(
        "--recipe", metavar="NAME", help=f"the training: {', '.join(RECIPES)} (default: fast)"
    )
    verb.add_argument(
        "--config",
        metavar="FILE.toml",
        type=Path,
        help="settings from a file: preset, recipe, and any setting of either",
    )
    verb.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="changes",
        help="change one setting of the model or the recipe; may be given more than once",
    )


class Chosen(NamedTuple):
    """What the user chose, on the line or in a file."""

    preset: str
    config: ViTConfig
    recipe: Recipe
    names: frozenset[str]
    """Of the settings that were changed, whatever to."""


def chosen_settings(arguments: argparse.Namespace, *, preset: str) -> Chosen:
    """The model and the recipe, with every change; raises ConfigError."""
    chosen = read_toml(arguments.config) if arguments.config else {}
    preset = str(arguments.preset or chosen.get("preset", preset))
    model = configs.preset(preset)
    recipe = configs.recipe(str(arguments.recipe or chosen.get("recipe", "fast")))
    chosen = {name: v for name, v in chosen.items() if name not in ("preset", "recipe")}
    chosen |= dict(map(parse_change, arguments.changes))
    refuse_unknown(chosen)
    try:
        return Chosen(
            preset,
            replace(model, **{name: v for name, v in chosen.items() if name in MODEL}),
            replace(recipe, **{name: v for name, v in chosen.items() if name in RECIPE}),
            frozenset(chosen),
        )
    except TypeError as error:
        raise ConfigError(str(error)) from error


def read_toml(path: Path) -> dict[str, Any]:
    """The settings of a file; raises ConfigError, with the place, for one that is no TOML."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: not readable as TOML: {error}") from error
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


def parse_change(change: str) -> tuple[str, Any]:
    """`key=value`, typed by the setting that it names."""
    name, equals, text = change.partition("=")
    if not equals:
        raise ConfigError(f"--set {change}: write it as key=value")
    refuse_unknown([name])
    return name, settings.parse(text, (MODEL | RECIPE)[name], name)


def refuse_unknown(names: Iterable[str]) -> None:
    """Raise ConfigError for the first name that is no setting, with the nearest that is."""
    for name in names:
        settings.named("setting", name, MODEL | RECIPE)


def warn(text: str) -> None:
    """A sentence for the person, out of the way of programs."""
    print(text, file=sys.stderr, flush=True)
