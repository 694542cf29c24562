"""Work in a small number format, keep the weights in float32."""

from copy import deepcopy
from typing import Generic, TypeVar

import torch
from torch import nn

__all__ = ["Working"]

Model = TypeVar("Model", bound=nn.Module)


class Working(Generic[Model]):
    """A model's working copy in another dtype: it computes gradients, the master takes the step.

    In float32 the working copy is the master itself and nothing is copied. Source: mixed precision
    with master weights (arXiv 1710.03740, section 3.1).
    """

    def __init__(self, master: Model, dtype: torch.dtype) -> None:
        self.master = master
        self.model = master if dtype == torch.float32 else deepcopy(master).to(dtype)
        self.pairs = list(zip(master.parameters(), self.model.parameters(), strict=True))

    @property
    def is_copy(self) -> bool:
        """Whether there are two sets of weights."""
        return self.model is not self.master

    def hand_over_gradients(self) -> None:
        """Move the working copy's gradients to the master."""
        if not self.is_copy:
            return
        for master, working in self.pairs:
            master.grad = None if working.grad is None else working.grad.to(master.dtype)
            working.grad = None

    @torch.no_grad()
    def take_weights(self) -> None:
        """Copy the master's weights into the working copy."""
        if self.is_copy:
            for master, working in self.pairs:
                working.copy_(master)
