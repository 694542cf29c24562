"""The part of a block that thinks about one token at a time."""

from collections.abc import Callable, Mapping
from functools import partial

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.shapes import Tokens

__all__ = ["ACTIVATIONS", "Mlp", "SwiGLU", "quick_gelu"]


def quick_gelu(x: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """x · sigmoid(1.702 x): the sigmoid form of GELU, as CLIP was trained with."""
    return x * (1.702 * x).sigmoid()


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "quick_gelu": quick_gelu,
}


class Mlp(nn.Module):
    """Linear, activation, Linear. Source: ViT, equation 3 (arXiv 2010.11929)."""

    def __init__(
        self, width: int, hidden: int, *, activation: str = "gelu", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, hidden)
        self.activation = ACTIVATIONS[activation]
        self.dropout = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tokens) -> Tokens:
        return self.dropout(self.fc2(self.dropout(self.activation(self.fc1(x)))))


class SwiGLU(nn.Module):
    """A hidden layer gated by another: fc2(silu(gate) · value).

    `fc1` holds gate, then value. Source: Shazeer (arXiv 2002.05202).
    """

    def __init__(self, width: int, hidden: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, 2 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden, width)

    def forward(self, x: Tokens) -> Tokens:
        gate, value = self.fc1(x).chunk(2, dim=-1)
        return self.dropout(self.fc2(self.dropout(F.silu(gate) * value)))
