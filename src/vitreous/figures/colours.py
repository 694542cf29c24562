"""Numbers to colours: one way for sizes, one for signs, one to lay either over a picture."""

import numpy as np
from numpy.typing import NDArray

from vitreous.figures.style import BLUE, INK, ORANGE

__all__ = ["Numbers", "Pixels", "diverging", "laid_over", "sequential"]

Pixels = NDArray[np.uint8]
"""(c, y, x), one or three channels."""
Numbers = NDArray[np.floating]

PAPER = "#f7f7f4"


def rgb(colour: str) -> Numbers:
    """`#rrggbb` as three numbers of 0..255.

    >>> rgb("#ff8000").tolist()
    [255.0, 128.0, 0.0]
    """
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=float)


def along(stops: dict[float, str], values: Numbers) -> Pixels:
    """Colours between stops, in straight lines: (y, x) -> (3, y, x)."""
    places = list(stops)
    channels = zip(*(rgb(colour) for colour in stops.values()), strict=True)
    return np.stack([np.interp(values, places, c) for c in channels]).round().astype(np.uint8)


def sequential(values: Numbers) -> Pixels:
    """Sizes 0..1 (y, x): paper, blue, ink."""
    return along({0.0: PAPER, 0.55: BLUE, 1.0: INK}, values)


def diverging(values: Numbers) -> Pixels:
    """Signed numbers −1..1 (y, x): blue below zero, paper at zero, orange above."""
    return along({-1.0: BLUE, 0.0: PAPER, 1.0: ORANGE}, values)


def laid_over(pixels: Pixels, values: Numbers) -> Pixels:
    """A grey picture, tinted orange where values of −1..1 (y, x) are above zero, blue below."""
    grey = np.broadcast_to(pixels.mean(axis=0), (3, *values.shape))
    tint = np.where(values > 0, rgb(ORANGE)[:, None, None], rgb(BLUE)[:, None, None])
    share = 0.8 * np.abs(values)
    return (grey * (1 - share) + tint * share).round().astype(np.uint8)
