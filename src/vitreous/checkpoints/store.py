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
from vitreous.checkpoints.card import write_card
from vitreous.checkpoints.files import write_bytes, write_json
from vitreous.checkpoints.hub import fetch, is_hub_name
from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError, ConfigError
from vitreous.frontends.image import ImageInput
from vitreous.models.classifier import Classifier, build

__all__ = ["CONFIG", "WEIGHTS", "described", "is_ours", "load", "read_tensors", "save"]

WEIGHTS, CONFIG = "model.safetensors", "config.json"
VERSION = 1


def save(model: Classifier, folder: str | Path, *, licence: str | None = None) -> None:
    """Write weights, config and a model card into a folder; each file is whole or absent.

    The card holds no results: those are a run's to write. A README.md that is not a card of ours
    is left alone. `licence` is one of the hub's identifiers, such as "apache-2.0".
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    config = described(model)
    write_json(folder / CONFIG, config)
    weights = {name: tensor.contiguous().cpu() for name, tensor in model.state_dict().items()}
    # One entry only: safetensors writes several in random order, and equal models hash equal.
    metadata = {CONFIG: json.dumps(config)}
    write_bytes(folder / WEIGHTS, safetensors.torch.save(weights, metadata=metadata))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    write_card(folder, config, parameters=parameters, licence=licence)


def described(model: Classifier) -> dict[str, Any]:
    """What travels beside a model's weights, as JSON values."""
    return {
        "library_name": "vitreous",
        "version": VERSION,
        "model": settings.to_dict(model.config),
        "input": model.image_input and settings.to_dict(model.image_input),
        "class_names": model.class_names,
    }


def load(place: str | Path, *, revision: str | None = None) -> Classifier:
    """The model in a run folder, weights file or hub repository, in eval mode.

    What is here wins: only text of the form "owner/name" that is no path is asked of the Hugging
    Face hub (extra `vitreous[hub]`), at a branch, tag or commit, once: then the cache answers, also
    offline. `model.image_input` says how a picture becomes its input. Raises CheckpointError for
    what is absent, damaged, or does not hold exactly the tensors that its config asks for, and for
    a `config.json` that is not the one inside its weights.
    """
    if is_hub_name(place):
        place = fetch(str(place), (CONFIG, WEIGHTS), revision)
    elif revision is not None:
        raise CheckpointError(f"{place} is not on the hub, and has no revision {revision!r}")
    path = Path(place)
    folder, path = (path, path / WEIGHTS) if path.is_dir() else (None, path)
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
    if folder is not None:
        check_agreement(folder / CONFIG, config)
    return model.eval()


def is_ours(place: Path) -> bool:
    """Whether a folder or file claims to be a checkpoint of ours, damaged or not."""
    try:
        if place.is_dir():
            if not (place / CONFIG).exists():
                return is_ours(place / WEIGHTS)
            beside = json.loads((place / CONFIG).read_text(encoding="utf-8"))
            return isinstance(beside, dict) and beside.get("library_name") == "vitreous"
        with safetensors.safe_open(place, framework="pt") as file:
            return CONFIG in (file.metadata() or {})
    except (OSError, ValueError, SafetensorError):
        return False


def check_agreement(path: Path, inside: Mapping[str, Any]) -> None:
    """Raise CheckpointError where the config beside weights is not the one that they hold."""
    if not path.exists():
        return
    try:
        beside = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(beside, dict):
        raise CheckpointError(f"{path}: a JSON object was expected")
    differ = differences(beside, inside)
    if differ:
        raise CheckpointError(
            f"{path}: it differs from the config inside {WEIGHTS} in {'; '.join(differ)}; "
            "copy the folder anew, or load the weights file itself, which knows its own config"
        )


def differences(beside: Any, inside: Any, name: str = "") -> list[str]:
    """Where two JSON values differ: the name, and both values."""
    if isinstance(beside, dict) and isinstance(inside, dict):
        names = sorted(beside.keys() | inside.keys())
        found = (differences(beside.get(n), inside.get(n), f"{name}.{n}".strip(".")) for n in names)
        return [difference for some in found for difference in some]
    if beside == inside:
        return []
    return [f"{name}: {json.dumps(beside)} beside, {json.dumps(inside)} inside"]


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
