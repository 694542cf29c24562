"""A trained model's tensors, made to fit a config of other images and other classes."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.models.classifier import Classifier, build
from vitreous.nn.positions import Learned, LearnedAxes, resize_table
from vitreous.shapes import Grid

__all__ = ["refit"]

HEAD = "head"
Tensors = dict[str, Tensor]


def refit(model: Classifier, config: ViTConfig) -> tuple[Tensors, list[str]]:
    """Every tensor of the model but its head's, as a model of the config wants them; and what was
    done.

    Positions are stretched by the model's own convention; from colour to grey the weights of a
    pixel are summed over its channels. Raises CheckpointError, with names and shapes, where the
    config asks for anything else.
    """
    with torch.device("meta"):
        target = build(config)
    tensors = {name: tensor for name, tensor in model.state_dict().items() if not is_head(name)}
    notes = [f"the head of {model.config.classes} classes is dropped, and a new one begins"]
    notes += fit_channels(tensors, model, config)
    notes += fit_positions(tensors, model, target)
    check(tensors, target.state_dict())
    return tensors, notes


def is_head(name: str) -> bool:
    """Whether a tensor belongs to a classifier's head."""
    return name.startswith(HEAD)


def fit_channels(tensors: Tensors, model: Classifier, config: ViTConfig) -> list[str]:
    """Sum the first weights over colours for grey images, or spread them evenly the other way."""
    have, want = model.config.channels, config.channels
    if have == want:
        return []
    if 1 not in (have, want):
        raise CheckpointError(
            f"the weights read {have} channels and the data have {want}: only from or to one "
            "channel (grey) is there one way to do it"
        )
    name = first_weights(tensors)
    flat = tensors[name]
    split = flat.reshape(flat.shape[0], have, -1)
    fitted = split.sum(1, keepdim=True) if want == 1 else split.expand(-1, want, -1) / want
    shape = (-1, want, *flat.shape[2:]) if flat.ndim == 4 else (len(flat), -1)
    tensors[name] = fitted.reshape(shape)
    how = "summed over" if want == 1 else "shared out evenly to"
    return [f"{name} is {how} {max(have, want)} channels: {have} became {want}"]


def first_weights(tensors: Mapping[str, Tensor]) -> str:
    """The tensor that meets the pixels: of a convolution stem's first layer, or of the patches."""
    names = ("patch_embed.convolutions.0.weight", "patch_embed.proj.weight")
    return next(name for name in names if name in tensors)


def fit_positions(tensors: Tensors, model: Classifier, target: nn.Module) -> list[str]:
    """Stretch learned positions to the target's grid."""
    ours, wanted = model.pos_embed, target.get_submodule("pos_embed")
    if not isinstance(wanted, Learned | LearnedAxes) or type(ours) is not type(wanted):
        return []
    old, new = ours.source, wanted.source
    if old == new:
        return []
    tensors["pos_embed.grid"] = torch.tensor(new)
    for name, (source, grid) in tables(wanted, old, new).items():
        table = tensors[f"pos_embed.{name}"]
        tensors[f"pos_embed.{name}"] = resize_table(table, source, grid, wanted.resize)
    return [f"positions are stretched from a grid of {old} to {new} by {wanted.resize}"]


def tables(positions: nn.Module, old: Grid, new: Grid) -> dict[str, tuple[Grid, Grid]]:
    """The tables of learned positions, with the grid that each has and is to have."""
    if isinstance(positions, Learned):
        return {"table": (old, new)}
    return {"rows": ((old[0], 1), (new[0], 1)), "columns": ((1, old[1]), (1, new[1]))}


def check(tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Raise CheckpointError where anything but the head is missing, surplus or of another shape."""
    body = {name for name in wanted if not is_head(name)}
    missing, surplus = sorted(body - tensors.keys()), sorted(tensors.keys() - body)
    if missing or surplus:
        raise CheckpointError(
            "these settings ask for another model than the weights hold: "
            f"missing {missing or 'nothing'}, surplus {surplus or 'nothing'}"
        )
    for name in sorted(body):
        have, want = tuple(tensors[name].shape), tuple(wanted[name].shape)
        if have != want:
            raise CheckpointError(
                f"these settings ask for another model than the weights hold: {name} is {have} "
                f"there, and {want} is asked for"
            )
