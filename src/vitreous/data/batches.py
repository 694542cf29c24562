"""Batches of one epoch, from images that are already in memory."""

from collections.abc import Iterator

import torch
from torch import Tensor

from vitreous.errors import ConfigError
from vitreous.protocol.seeds import stream

__all__ = ["batch_indices", "steps_per_epoch"]


def steps_per_epoch(images: int, batch_size: int, *, leave_out_last: bool) -> int:
    """Batches in an epoch, the smaller last one included; `leave_out_last` drops the last one.

    Raises ConfigError where nothing would be left.
    """
    steps = -(-images // batch_size) - leave_out_last
    if steps < 1:
        raise ConfigError(
            f"{images} training images at batch_size={batch_size} leave no step in an epoch; "
            f"use batch_size={max(images // 2, 1)} or less"
        )
    return steps


def batch_indices(
    images: int, batch_size: int, *, steps: int, seed: int, epoch: int, start: int = 0
) -> Iterator[Tensor]:
    """Which images each batch of an epoch holds, from batch `start` on.

    Every epoch is a fresh permutation that depends on seed and epoch alone, so an epoch can be
    taken up in its middle.
    """
    generator = torch.Generator().manual_seed(stream(seed, "shuffle", epoch))
    order = torch.randperm(images, generator=generator)
    return iter(order.split(batch_size)[start:steps])
