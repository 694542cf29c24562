"""Attention over random tokens: what dividing by the root of the width is there for."""

from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from vitreous import settings
from vitreous.errors import ConfigError
from vitreous.nn.attention import attention_weights
from vitreous.protocol.seeds import stream

__all__ = ["RandomScores", "gradient_of_scores", "measure_scores"]

Rows: TypeAlias = Float[Tensor, "*b q k"]


@dataclass(frozen=True, kw_only=True)
class RandomScores:
    """Queries and keys of independent numbers with mean 0 and variance 1. Nothing is trained."""

    head_dim: int = 512
    tokens: int = 64
    scaled: bool = True
    """Whether scores are divided by the root of `head_dim`."""
    draws: int = 64
    """Independent sequences that the measures are means over."""

    def __post_init__(self) -> None:
        settings.check(self)
        if min(self.head_dim, self.tokens, self.draws) < 1:
            raise ConfigError("head_dim, tokens and draws must be at least 1")


def measure_scores(scores: RandomScores, seed: int) -> dict[str, float]:
    """How sharp attention is, and how much gradient the scores get through it.

    `largest_weight` and `entropy` (nats) are means over rows. `gradient_norm` is that of the
    gradient with respect to one row's scores, of the row's product with random unit-variance
    numbers: the softmax's Jacobian, seen from the scores' side. Source: Vaswani et al., section
    3.2.1, footnote 4 (arXiv 1706.03762).
    """
    generator = torch.Generator().manual_seed(stream(seed, "scores"))
    shape = (scores.draws, 1, scores.tokens, scores.head_dim)
    q, k = (torch.randn(shape, generator=generator) for _ in range(2))
    if not scores.scaled:
        q = q * scores.head_dim**0.5  # undoes the division in the definition
    weights = attention_weights(q, k)
    gradient = gradient_of_scores(weights, torch.randn(weights.shape, generator=generator))
    return {
        "largest_weight": weights.amax(dim=-1).mean().item(),
        "entropy": torch.special.entr(weights).sum(dim=-1).mean().item(),
        "gradient_norm": gradient.norm(dim=-1).mean().item(),
    }


def gradient_of_scores(weights: Rows, pull: Rows) -> Rows:
    """The gradient of each row's `weights · pull` with respect to the scores it is a softmax of."""
    return weights * (pull - (weights * pull).sum(dim=-1, keepdim=True))
