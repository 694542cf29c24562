"""Random changes of training images; serving never comes here."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from vitreous.shapes import Images

__all__ = ["affine", "affine_matrices"]


def affine(
    images: Images,
    generator: torch.Generator,
    *,
    rotate: float,
    shift: float,
    scale: float,
    shear: float,
) -> Images:
    """Turn, move, resize and slant each image by its own random amount; what is uncovered is 0.

    `rotate` in degrees, the others as fractions; each is the largest change, drawn evenly.
    """
    matrices = affine_matrices(
        len(images), generator, rotate=rotate, shift=shift, scale=scale, shear=shear
    )
    y, x = images.shape[2:]
    # Matrices act on a square of side 2; a wide image must be turned as a wide image.
    matrices = matrices * torch.tensor([[1.0, y / x, 1.0], [x / y, 1.0, 1.0]])
    grid = F.affine_grid(matrices.to(images.device), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid.to(images.dtype), align_corners=False)


def affine_matrices(
    count: int,
    generator: torch.Generator,
    *,
    rotate: float,
    shift: float,
    scale: float,
    shear: float,
) -> Float[Tensor, "count 2 3"]:
    """Random matrices from output to input places: turn · slant / size, then the move."""
    draw = torch.rand(5, count, generator=generator) * 2 - 1
    turn, slant = torch.deg2rad(draw[0] * rotate), draw[1] * shear
    size = 1 + draw[2] * scale
    cos, sin = turn.cos() / size, turn.sin() / size
    rows = [
        cos,
        cos * slant - sin,
        draw[3] * 2 * shift,
        sin,
        sin * slant + cos,
        draw[4] * 2 * shift,
    ]
    return torch.stack(rows, dim=1).view(count, 2, 3)
