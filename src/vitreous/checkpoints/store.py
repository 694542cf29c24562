"""A model in a folder: `model.safetensors`, `config.json`, and a card that says what it is."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from vitreous import settings
from vitreous.checkpoints.files import write_bytes, write_json
from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError, ConfigError
from vitreous.frontends.image import ImageInput
from vitreous.models.classifier import Classifier, build

__all__ = ["CONFIG", "WEIGHTS", "load", "read_tensors", "save"]

WEIGHTS, CONFIG = "model.safetensors", "config.json"
VERSION = 1


def save(model: Classifier, folder: str | Path) -> None:
    """Write weights and config into a folder; each file is whole or absent."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "library_name": "vitreous",
        "version": VERSION,
        "model": settings.to_dict(model.config),
        "input": model.image_input and settings.to_dict(model.image_input),
        "class_names": model.class_names,
    }
    write_json(folder / CONFIG, config)
    weights = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    # One entry only: safetensors writes several in random order, and equal models hash equal.
    metadata = {CONFIG: json.dumps(config)}
    write_bytes(folder / WEIGHTS, safetensors.torch.save(weights, metadata=metadata))


def load(place: str | Path) -> Classifier:
    """The model in a run folder or weights file, in eval mode, with its config and class names.

    `model.image_input` says how a picture becomes its input. Raises CheckpointError for what is
    absent, damaged, or does not hold exactly the tensors that its config asks for.
    """
    path = Path(place)
    path = path / WEIGHTS if path.is_dir() else path
    tensors, metadata = read_tensors(path)
    config = read_config(path, metadata)
    try:
        with torch.device("meta"):
            model = build(settings.from_dict(ViTConfig, config["model"]))
        given = config["input"]
        model.image_input = None if given is None else settings.from_dict(ImageInput, given)
        model.class_names = list(config["class_names"])
    except (KeyError, TypeError, AttributeError, ConfigError) as error:
        raise CheckpointError(f"{path}: its config is not one of ours: {error}") from error
    if len(model.class_names) != model.config.classes:
        raise CheckpointError(
            f"{path}: {len(model.class_names)} class names for {model.config.classes} classes"
        )
    fill(model, tensors, path)
    return model.eval()


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors file; raises CheckpointError for anything else."""
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no such file; a run folder holds {WEIGHTS}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: not a whole safetensors file: {error}") from error


def read_config(path: Path, metadata: Mapping[str, str]) -> dict[str, Any]:
    """The config that travels inside a weights file; raises CheckpointError where there is none."""
    try:
        config = json.loads(metadata[CONFIG])
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{path}: it holds no vitreous config") from error
    if not isinstance(config, dict):
        raise CheckpointError(f"{path}: its config is no JSON object")
    if config.get("version") != VERSION:
        raise CheckpointError(
            f"{path}: written in version {config.get('version')}, and this reads {VERSION}"
        )
    return config


def fill(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Give a model its tensors; every one is accounted for, by name, shape and dtype."""
    wanted = model.state_dict()
    missing = sorted(wanted.keys() - tensors.keys())
    surplus = sorted(tensors.keys() - wanted.keys())
    if missing or surplus:
        raise CheckpointError(
            f"{path}: missing {missing or 'nothing'}, surplus {surplus or 'nothing'}"
        )
    for name, tensor in tensors.items():
        want = wanted[name]
        if tensor.shape != want.shape or tensor.dtype != want.dtype:
            raise CheckpointError(
                f"{path}: {name} is {tuple(tensor.shape)} {tensor.dtype}, "
                f"and the config asks for {tuple(want.shape)} {want.dtype}"
            )
    check_grids(model, tensors, path)
    model.load_state_dict(dict(tensors), assign=True)


def check_grids(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Equal token count is no equal grid: a table's own grid must be the config's."""
    for name, module in model.named_modules():
        source = getattr(module, "source", None)
        if source is not None and tuple(tensors[f"{name}.grid"].tolist()) != source:
            stored = tuple(tensors[f"{name}.grid"].tolist())
            raise CheckpointError(
                f"{path}: the position table is of grid {stored}, and the config's is {source}"
            )
