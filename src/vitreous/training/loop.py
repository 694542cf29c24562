"""The training loop. It is a generator: watch it with `for`, stop it with `break`."""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from torch import Tensor, nn
from torch.optim import Optimizer

from vitreous.training.precision import Working

__all__ = ["Batch", "Step", "fit"]


class Batch(NamedTuple):
    """What one step sees."""

    number: int
    """Which step of the whole run this is, from 0."""
    images: Tensor
    labels: Tensor


class Step(NamedTuple):
    """What one step did."""

    number: int
    loss: float
    """Mean over the batch's images."""
    images: int


def fit(
    working: Working,
    objective: Callable[[nn.Module, Batch], Tensor],
    batches: Iterable[Batch],
    optimizers: list[Optimizer],
    *,
    rate: Callable[[int], float],
    clip: float | None = None,
) -> Iterator[Step]:
    """Take one optimizer step per batch and report each. Ends when the batches do.

    `rate` is the factor on each group's `peak` rate at a step.
    """
    parameters = list(working.master.parameters())
    for batch in batches:
        working.model.train()
        loss = objective(working.model, batch)
        loss.backward()
        working.hand_over_gradients()
        if clip is not None:
            nn.utils.clip_grad_norm_(parameters, clip)
        factor = rate(batch.number)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * factor
            optimizer.step()
            optimizer.zero_grad()
        working.take_weights()
        yield Step(batch.number, loss.item(), len(batch.labels))
