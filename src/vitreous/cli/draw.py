"""Draw an architecture from its settings alone, as an SVG.

Sequence lengths and widths stand on every arrow, parameters and FLOPs (2 × multiply-adds, of one
image) on every part. Nothing is built and torch is not loaded.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from vitreous import config as configs
from vitreous import settings
from vitreous.cli.options import parse_change
from vitreous.config import PRESETS, ViTConfig
from vitreous.errors import CheckpointError, ConfigError

__all__ = ["add_arguments", "run"]

CONFIG = "config.json"


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous draw` understands."""
    verb.add_argument(
        "model", metavar="PRESET|RUN", help=f"{', '.join(PRESETS)}; or the folder of a run"
    )
    verb.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="changes",
        help="change one setting of the model; may be given more than once",
    )
    verb.add_argument(
        "--out", metavar="FILE.svg", type=Path, help="default: the model's name, here"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the drawing; returns the exit code."""
    from vitreous.checkpoints.files import write_bytes
    from vitreous.inspection.diagram import draw

    config = changed(config_of(arguments.model), arguments.changes)
    path = arguments.out or Path(f"{Path(arguments.model).resolve().name}.svg")
    if path.suffix != ".svg":
        raise ConfigError(f"{path}: a drawing ends in .svg")
    write_bytes(path, draw(config).svg.encode())
    print(path)
    return 0


def config_of(name: str) -> ViTConfig:
    """The config of a preset or of a run folder; raises ConfigError or CheckpointError."""
    path = Path(name)
    if name in PRESETS or not path.exists():
        return configs.preset(name)
    path = path / CONFIG if path.is_dir() else path
    try:
        return settings.from_dict(ViTConfig, json.loads(path.read_text(encoding="utf-8"))["model"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path}: no config of ours ({error}); give a preset or a run's folder"
        ) from error


def changed(config: ViTConfig, changes: list[str]) -> ViTConfig:
    """The config with every change; raises ConfigError for one that is not the model's."""
    values = dict(map(parse_change, changes))
    known = settings.setting_types(ViTConfig)
    for name in values:
        settings.named("setting of a model", name, known)
    return replace(config, **values)
