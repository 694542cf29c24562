"""Layers of a model, and rates that grow from its first to its last."""

from collections.abc import Mapping

from torch import nn
from torch.optim import Optimizer

__all__ = ["decay_by_layer", "layer_of", "rate_factor"]

HEAD = "head"
LATE = ("encoder.norm.", "pool.", "project.", HEAD)
"""What comes after the last block; everything that is neither here nor a block comes before."""


def layer_of(name: str, depth: int) -> int:
    """0 for what makes tokens, then 1 for the first block, and depth + 1 for all behind the last.

    >>> [layer_of(name, 2) for name in ("cls_token", "encoder.blocks.0.mlp.fc1.bias", "head.bias")]
    [0, 1, 3]
    """
    if name.startswith("encoder.blocks."):
        return int(name.split(".")[2]) + 1
    return depth + 1 if name.startswith(LATE) else 0


def rate_factor(layer: int, depth: int, decay: float) -> float:
    """decay^(depth + 1 - layer): the head learns at the full rate, each layer below by one less.

    Source: BEiT (arXiv 2106.08254), as used for MAE (arXiv 2111.06377).
    """
    return decay ** (depth + 1 - layer)


def decay_by_layer(model: nn.Module, optimizers: list[Optimizer], decay: float) -> None:
    """Split every group of fresh optimizers by layer, and lower each layer's rate."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    depth = len(list(model.get_submodule("encoder.blocks").children()))
    for optimizer in optimizers:
        groups = optimizer.param_groups
        optimizer.param_groups = [
            part for group in groups for part in split(group, names, depth, decay)
        ]


def split(group: dict, names: Mapping[int, str], depth: int, decay: float) -> list[dict]:
    """One group as one for each layer in it, first layers first."""
    layers: dict[int, list] = {}
    for parameter in group["params"]:
        layers.setdefault(layer_of(names[id(parameter)], depth), []).append(parameter)
    return [
        group
        | {"params": layers[layer]}
        | {key: group[key] * rate_factor(layer, depth, decay) for key in ("lr", "peak")}
        for layer in sorted(layers)
    ]
