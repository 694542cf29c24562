"""The largest batch that a memory holds."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from vitreous.config import Recipe, ViTConfig
from vitreous.cost import memory

__all__ = ["Fits", "fits"]


class Fits(NamedTuple):
    """The most images at once; 0 where not even one fits."""

    limit: int
    """Bytes."""
    training: int
    inference: int


def fits(config: ViTConfig, recipe: Recipe, limit: int) -> Fits:
    """The largest batches for training and for inference in so many bytes."""
    return Fits(
        limit,
        training=largest(
            lambda batch: memory.training(config, replace(recipe, batch_size=batch)).total, limit
        ),
        inference=largest(lambda batch: memory.inference(config, batch), limit),
    )


def largest(size: Callable[[int], int], limit: int) -> int:
    """The greatest batch whose size, which grows with it, is within the limit.

    >>> largest(lambda batch: 10 + 3 * batch, 40), largest(lambda batch: 50, 40)
    (10, 0)
    """
    low, high = 0, 1
    while size(high) <= limit:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) <= limit else (low, middle)
    return low
