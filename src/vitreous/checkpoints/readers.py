"""A reader in a file: weights as float16, its config and how it was made, in one safetensors."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from vitreous import settings
from vitreous.checkpoints.files import write_bytes, write_json
from vitreous.checkpoints.store import CONFIG, WEIGHTS, fill, read_config, read_tensors
from vitreous.errors import CheckpointError, ConfigError
from vitreous.models.reader import Reader, ReaderConfig, build_reader

__all__ = ["load_reader", "save_reader"]

VERSION = 1


def save_reader(model: Reader, folder: str | Path, *, facts: Mapping[str, Any]) -> None:
    """Write `model.safetensors` and `config.json` into a folder; each is whole or absent.

    Weights are stored as float16, which moves no answer and halves the file. `facts` say how the
    model was made, and come along.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "library_name": "vitreous",
        "version": VERSION,
        "kind": "reader",
        "model": settings.to_dict(model.config),
        "temperature": model.temperature,
        "threshold": model.threshold,
        "facts": dict(facts),
    }
    write_json(folder / CONFIG, config)
    weights = {name: t.half().contiguous().cpu() for name, t in model.state_dict().items()}
    metadata = {CONFIG: json.dumps(config)}
    write_bytes(folder / WEIGHTS, safetensors.torch.save(weights, metadata=metadata))


def load_reader(place: str | Path) -> Reader:
    """The reader in a run folder or weights file, in float32 and eval mode.

    Raises CheckpointError for what is absent, damaged, or no reader.
    """
    path = Path(place)
    path = path / WEIGHTS if path.is_dir() else path
    tensors, metadata = read_tensors(path)
    config = read_config(path, metadata)
    if config.get("kind") != "reader":
        raise CheckpointError(f"{path}: holds another model than a reader of numbers")
    try:
        with torch.device("meta"):
            model = build_reader(settings.from_dict(ReaderConfig, config["model"]))
        model.temperature = float(config["temperature"])
        model.threshold = float(config["threshold"])
    except (KeyError, TypeError, ValueError, ConfigError) as error:
        raise CheckpointError(f"{path}: its config is not a reader's: {error}") from error
    fill(model, {name: tensor.float() for name, tensor in tensors.items()}, path)
    return model.eval()
