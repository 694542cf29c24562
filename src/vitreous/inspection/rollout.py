"""Attention rollout: how far each token can be traced back to the tokens at the entry."""

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from vitreous.errors import ConfigError, ShapeError
from vitreous.inspection.record import Maps

__all__ = ["FUSIONS", "rollout"]

FUSIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda weights: weights.mean(dim=1),
    "max": lambda weights: weights.amax(dim=1),
    "min": lambda weights: weights.amin(dim=1),
}


def rollout(
    maps: Mapping[str, Tensor] | Sequence[Tensor], *, heads: str = "mean"
) -> Float[Tensor, "*b q k"]:
    """The product over layers of (A + I) / 2, rows normalised, the first layer rightmost.

    `maps` are those of `record_attention`, or the tensors alone, in order: (b, h, q, k), or (b, q,
    k) or (q, k) where heads are fused already. Heads are fused by "mean", "max" or "min". Row q of
    the result says how much of each token at the entry is in token q; rows sum to one. Raises
    ConfigError for no maps, ShapeError for maps in which query rows are missing.
    Source: Abnar and Zuidema, section 3 (arXiv 2005.00928).

    >>> one, two = torch.tensor([[0.9, 0.1], [0.4, 0.6]]), torch.tensor([[0.5, 0.5], [0.2, 0.8]])
    >>> rollout([one, two])
    tensor([[0.7625, 0.2375],
            [0.2750, 0.7250]])
    """
    layers = list(maps.values() if isinstance(maps, Mapping) else maps)
    check_whole(maps, len(layers))
    if heads not in FUSIONS:
        raise ConfigError(f"heads={heads!r} must be one of {', '.join(FUSIONS)}")
    fused = [FUSIONS[heads](w) if w.ndim == 4 else w for w in layers]
    whole = torch.eye(fused[0].shape[-1], device=fused[0].device)
    for number, weights in enumerate(fused):
        check_rows(weights, number, last=number == len(layers) - 1)
        whole = with_residual(weights) @ whole
    return whole


def check_whole(maps: Mapping[str, Tensor] | Sequence[Tensor], count: int) -> None:
    """Raise for maps that rollout cannot multiply: none, chosen rows, or a pool's query."""
    if not count:
        raise ConfigError("there is no attention to roll out: no layer was recorded")
    if isinstance(maps, Maps) and maps.queries is not None:
        raise ShapeError("rollout needs every query row: record without queries=")
    pools = (
        [name for name in maps if str(name).startswith("pool")] if isinstance(maps, Mapping) else []
    )
    if pools:
        raise ShapeError(f"{pools[0]} reads with a query that is no token: leave it out of layers=")


def check_rows(weights: Tensor, number: int, *, last: bool) -> None:
    """Every layer but the last needs the rows of all its tokens."""
    queries, keys = weights.shape[-2:]
    if queries > keys or (queries < keys and not last):
        raise ShapeError(
            f"layer {number} has {queries} query rows for {keys} tokens: rollout needs them all; "
            "record without queries= and in eval mode"
        )


def with_residual(weights: Float[Tensor, "*b q k"]) -> Float[Tensor, "*b q k"]:
    """(A + I) / 2, each row then divided by its sum."""
    # A last layer that made only the first rows has the first rows of the identity.
    whole = (weights + torch.eye(*weights.shape[-2:], device=weights.device)) / 2
    return whole / whole.sum(dim=-1, keepdim=True)
