"""Connected pieces of ink."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from vitreous.frontends.digit import Marked

__all__ = ["EIGHT", "SMALLEST", "Piece", "named_pieces", "typical_height"]

EIGHT = np.ones((3, 3), bool)
"""A pixel's neighbours, corners too."""
SMALLEST = 5
"""Pixels: nothing whose longer side is shorter was written with a pen."""


class Piece(NamedTuple):
    """A connected piece of ink, in pixels of the working image; ends are not included."""

    name: int
    """Its number in the labels."""
    top: int
    left: int
    bottom: int
    right: int

    @property
    def height(self) -> int:
        return self.bottom - self.top

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def box(self) -> tuple[slice, slice]:
        return slice(self.top, self.bottom), slice(self.left, self.right)


def named_pieces(marked: Marked) -> tuple[NDArray[np.int32], list[Piece]]:
    """Numbered connected pieces, corners connecting, and the box of each."""
    labels = np.zeros(marked.shape, np.int32)
    ndimage.label(marked, EIGHT, output=labels)
    boxes: list[tuple[slice, slice]] = ndimage.find_objects(labels)
    return labels, [
        Piece(name, rows.start, columns.start, rows.stop, columns.stop)
        for name, (rows, columns) in enumerate(boxes, start=1)
    ]


def typical_height(pieces: list[Piece]) -> float:
    """The height that most ink has: the median over pieces that are not small beside the tallest.

    Pieces far wider than high (rules, dashes) do not count.
    """
    heights = [p.height for p in pieces if p.width < 4 * p.height and p.height >= SMALLEST]
    if not heights:
        return 0.0
    tall = [h for h in heights if h >= 0.4 * np.quantile(heights, 0.9)]
    return float(np.median(tall))
