"""What can be said of each head in one number: how far it looks, and how widely."""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from vitreous.config import Pair
from vitreous.inspection.layout import Layout
from vitreous.nn.positions import grid_coords
from vitreous.shapes import Weights

__all__ = ["attention_distance", "attention_entropy", "entropy_sentence", "head_sentence"]

WIDE, NARROW = 0.9, 0.5
"""Shares of the largest possible entropy from which, or up to which, a head is called so."""


def attention_distance(weights: Weights, layout: Layout, patch_shape: Pair) -> Float[Tensor, " h"]:
    """Mean distance, in pixels, between a patch and the patches that it reads, by head.

    What prefix tokens read, and what patches read of them, has no distance and is left out. Raises
    ShapeError for maps of another layout. Source: ViT, section 4.5 (arXiv 2010.11929).
    """
    layout.fill(weights.shape[3])
    layout.fill(weights.shape[2])
    inner = weights[:, :, layout.prefix :, layout.prefix :]
    inner = inner / inner.sum(dim=-1, keepdim=True).clamp_min(1e-30)
    places = grid_coords(*layout.grid, device=weights.device) * weights.new_tensor(patch_shape)
    apart = torch.cdist(places, places, compute_mode="donot_use_mm_for_euclid_dist")
    return (inner * apart).sum(dim=-1).mean(dim=(0, 2))


def attention_entropy(weights: Weights) -> Float[Tensor, " h"]:
    """Mean entropy of a query's reading, in nats, by head; at most the logarithm of the tokens."""
    return torch.special.entr(weights).sum(dim=-1).mean(dim=(0, 2))


def entropy_sentence(entropies: Mapping[str, Float[Tensor, " h"]], tokens: int) -> str:
    """What the entropies of all heads say, in plain words, with the numbers."""
    every = {
        (name, head): value
        for name, heads in entropies.items()
        for head, value in enumerate(heads.tolist())
    }
    most = math.log(tokens)
    broad = sum(value >= WIDE * most for value in every.values())
    sharp = sum(value <= NARROW * most for value in every.values())
    low, high = min(every, key=lambda at: every[at]), max(every, key=lambda at: every[at])
    return (
        f"Of {len(every)} heads, {broad} read nearly all {tokens} tokens alike (entropy at least "
        f"{WIDE:.0%} of the largest possible, {most:.2f} nats) and {sharp} read few (at most "
        f"{NARROW:.0%}). The sharpest, {called(low)}, reads as from "
        f"{math.exp(every[low]):.1f} tokens ({every[low]:.2f} nats); the broadest, "
        f"{called(high)}, as from {math.exp(every[high]):.1f} ({every[high]:.2f} nats)."
    )


def called(at: tuple[str, int]) -> str:
    """A head's name in a sentence."""
    return f"head {at[1]} of {at[0]}"


def head_sentence(entropy: float, tokens: int) -> str:
    """What one head's entropy says."""
    share = entropy / math.log(tokens) if tokens > 1 else 1.0
    kind = (
        "reads nearly all tokens alike" if share >= WIDE else "reads some tokens more than others"
    )
    kind = "reads few tokens" if share <= NARROW else kind
    return f"{kind}: as from {math.exp(entropy):.1f} of {tokens}"
