"""Attention maps, quantised, for the script of a page: small, and exact to half a percent."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitreous.config import Pair
from vitreous.figures.colours import Numbers
from vitreous.inspection.layout import Layout
from vitreous.shapes import Weights

__all__ = ["BUDGET", "payload", "quantised", "trimmed"]

BUDGET = 3_000_000
"""Numbers of one image that a page holds at most."""

Named = Mapping[str, Numbers]


def quantised(weights: Numbers) -> tuple[bytes, bytes]:
    """Each weight as a byte, a share of its row's largest, which is a 16-bit share of one.

    (maps, q, k) -> bytes of every weight, and of every row's largest.
    """
    tops = weights.max(axis=-1, keepdims=True)
    parts = np.rint(255 * weights / np.maximum(tops, 1e-12)).astype(np.uint8)
    return parts.tobytes(), np.rint(65535 * tops).clip(0, 65535).astype("<u2").tobytes()


def trimmed(maps: Mapping[str, Weights], budget: int = BUDGET) -> tuple[dict[str, Tensor], str]:
    """The maps that a page has room for, (h, q, k) each, and the sentence on what is left out.

    The mean of the heads comes first. Heads go before layers, and layers evenly.
    """
    one = {name: weights[0] for name, weights in maps.items()}
    with_mean = {name: with_the_mean(heads) for name, heads in one.items()}
    if sum(heads.numel() for heads in with_mean.values()) <= budget:
        return with_mean, ""
    means = {name: heads.mean(dim=0, keepdim=True) for name, heads in one.items()}
    room = max(1, budget // max(heads.numel() for heads in means.values()))
    names = list(means)
    places = np.linspace(0, len(names) - 1, min(room, len(names))).round().astype(int)
    kept = {names[place]: means[names[place]] for place in sorted({*places.tolist()})}
    return kept, (
        f"Only the mean of the heads of {len(kept)} of {len(means)} layers is here, to keep the "
        "page small; --layers and --heads choose what is shown."
    )


def with_the_mean(heads: Tensor) -> Tensor:
    """The mean of several heads before them; one head is its own mean."""
    return heads if len(heads) == 1 else torch.cat([heads.mean(dim=0, keepdim=True), heads])


def payload(
    maps: Mapping[str, Tensor], heads: list[int], layout: Layout, image_shape: Pair, patch: Pair
) -> str:
    """Everything that the script needs of one image, as JSON that may stand in a script element.

    `heads` are the numbers of the heads that the maps hold after their mean.
    """
    weights, tops = quantised(np.concatenate([heads.numpy() for heads in maps.values()]))
    names, groups = labels(maps, heads)
    about: dict[str, Any] = {
        "grid": layout.grid,
        "labels": layout.labels,
        "patch": [side / whole for side, whole in zip(patch, image_shape, strict=True)],
        "maps": [long for long, _ in names],
        "short": [short for _, short in names],
        "groups": groups,
        "weights": base64.b64encode(weights).decode(),
        "tops": base64.b64encode(tops).decode(),
    }
    return json.dumps(about, separators=(",", ":")).replace("<", "\\u003c")


def labels(
    maps: Mapping[str, Tensor], heads: list[int]
) -> tuple[list[tuple[str, str]], list[tuple[str, list[int]]]]:
    """A long and a short name of every map, and which of them are shown together."""
    names: list[tuple[str, str]] = []
    means: list[int] = []
    groups: list[tuple[str, list[int]]] = []
    for layer, weights in maps.items():
        start, several = len(names), len(weights) > 1
        means.append(start)
        numbers = heads if several or len(heads) == 1 else []
        if several or not numbers:
            names.append((f"the mean head of {layer}", layer.removesuffix(".attn")))
        names += [(f"head {number} of {layer}", f"head {number}") for number in numbers]
        groups.append((f"every head of {layer}", list(range(start, len(names)))))
    several = len(names) > len(means)
    kind = "the mean head" if several or len(heads) != 1 else f"head {heads[0]}"
    overview = (f"{kind} of every layer", means)
    return names, [overview, *groups] if several else [overview]
