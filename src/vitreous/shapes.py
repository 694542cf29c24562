"""The alphabet of axes. One letter means one thing in every signature and every einops pattern.

b  batch            y x      pixel rows, columns         q k  query tokens, key tokens
c  channels         row col  patch rows, columns         h    heads
n  tokens           py px    pixel rows, columns         e    numbers per head (d = h · e)
d  width                     inside one patch            a    axes of a coordinate (1 or 2)
"""

from typing import TypeAlias

from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Angles", "Coords", "Grid", "Images", "Mask", "Patches", "Tokens", "Weights"]

Images: TypeAlias = Float[Tensor, "b c y x"]
Patches: TypeAlias = Float[Tensor, "b n patch"]
Tokens: TypeAlias = Float[Tensor, "b n d"]
Coords: TypeAlias = Float[Tensor, "n a"]
Angles: TypeAlias = Float[Tensor, "n pairs"]
Weights: TypeAlias = Float[Tensor, "b h q k"]
Mask: TypeAlias = Bool[Tensor, "#b #h #q k"]
"""True where a query may read a key."""

Grid: TypeAlias = tuple[int, int]
"""Rows and columns of patches: always two numbers, never the square root of one."""
