"""Strips of different widths as batches of one width."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from vitreous.frontends.lines import HEIGHT
from vitreous.shapes import Images

__all__ = ["Padded", "pad"]


class Padded(NamedTuple):
    """Lines as a model takes them."""

    images: Float[Tensor, "b 1 y x"]
    """0 is paper, 1 full ink; what is behind a line's end is 0."""
    widths: Int[Tensor, " b"]
    """Columns of each line."""


def pad(strips: Sequence[NDArray[np.uint8]]) -> Padded:
    """Strips (32, width) side by side in a batch, each width a multiple of 4, as float32."""
    widths = [strip.shape[1] for strip in strips]
    widest = max(widths, default=4)
    images: Images = torch.zeros(len(strips), 1, HEIGHT, widest)
    for row, strip in enumerate(strips):
        images[row, 0, :, : strip.shape[1]] = torch.from_numpy(strip) / 255
    return Padded(images, torch.tensor(widths, dtype=torch.long))
