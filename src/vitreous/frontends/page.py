"""The ink of a whole page: what was written, apart from light, paper, rules, desk and specks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from vitreous.frontends.decode import Decoded
from vitreous.frontends.digit import (
    CELLS,
    DARKEST_PAPER,
    FAINTEST,
    NOISES,
    Levels,
    Marked,
    against_paper,
    smaller,
)
from vitreous.frontends.pieces import EIGHT, SMALLEST, Piece, named_pieces, typical_height
from vitreous.frontends.rules import drawn_frames, is_side, printed_rules
from vitreous.frontends.sheet import without_desk

__all__ = ["Written", "find_written"]

PAPER_SIDE = 500
"""The paper's brightness is found on an image of at most this side."""
CELL = 12
"""Pixels: light is followed over cells of at least this side, so that it never follows strokes."""
PAGE_SIDE = 1600
"""What is written is found on an image of at most this side: 50 lines of 32 pixels."""

INK = 0.35
"""Of strong ink's strength: what is written."""
FAINT_INK = 0.2
"""Of strong ink's strength: what is written where it touches surer ink."""
SPECKS = 80
"""If all pieces are smaller than this part of the image's side, they are specks."""
APART, CLEAR = 2.8, 0.06
"""Two heaps of levels are ink and paper if they are so many of the paper's deviations apart, and if
what lies between them is ink of this share at least: on blank paper it is none."""


class Written(NamedTuple):
    """What is written on a page."""

    ink: Levels
    """(y, x), float32: the share of the paper's light that is missing; rules and desk are 0."""
    labels: NDArray[np.int32]
    """(y, x): the number of the piece that a pixel belongs to; 0 is none."""
    pieces: list[Piece]
    scale: float
    """Pixels of the upright image per pixel of these."""
    size: tuple[int, int]
    """Width and height of the upright image."""


def find_written(decoded: Decoded) -> Written:
    """The pieces of ink on a page, dark on light or light on dark; none on blank paper."""
    grey = grey_of(decoded)
    light = smaller(grey, PAGE_SIDE)
    ink = page_ink(grey, light)
    marked, faint = touching_sure_ink(ink)
    frames = drawn_frames(marked)
    removed = frames | printed_rules(ink, marked & ~frames, faint & ~frames)
    marked &= ~removed
    labels, pieces = named_pieces(marked)
    desk = [
        p
        for p in pieces
        if is_desk(p, labels) or is_pole(p, pieces, len(ink)) or is_side(p, removed)
    ]
    kept = [p for p in pieces if p not in desk and max(p.height, p.width) >= SMALLEST]
    if desk:
        removed = removed | np.isin(labels, [p.name for p in desk])
    if removed.any():
        ink = np.where(ndimage.binary_dilation(removed, EIGHT), 0, ink)
    if all_specks(kept, light.shape):
        kept = []
    scale = grey.width / light.shape[1]
    return Written(ink.astype(np.float32), labels, kept, scale, grey.size)


def grey_of(decoded: Decoded) -> Image.Image:
    """Brightness as the eye sees it; a desk around the paper is painted over."""
    return without_desk(Image.fromarray(decoded).convert("L"))


def page_ink(grey: Image.Image, light: Levels) -> Levels:
    """The share of the paper's light that is missing, the paper found at a quicker size."""
    coarse = smaller(grey, PAPER_SIDE)
    most = max(3, min(coarse.shape) // CELL)
    seen, paper = against_paper(coarse, tuple(min(cells, most) for cells in CELLS))
    if seen is not coarse:
        light = 255 - light
    if paper.shape != light.shape:
        stretched = Image.fromarray(paper.astype(np.float32)).resize(light.shape[::-1])
        paper = np.asarray(stretched)
    return (paper - light) / np.maximum(paper, DARKEST_PAPER)


def touching_sure_ink(ink: Levels) -> tuple[Marked, Marked]:
    """Pixels of some ink in pieces that hold sure ink, and all that is a little dark; nowhere if
    all is noise.

    The paper's print and grain are finer than strokes, so that what is looked at is smoothed.
    """
    smooth = ndimage.gaussian_filter(ink, min(1.0, min(ink.shape) / 60))
    floor = ink_floor(smooth)
    candidates = smooth[smooth > floor]
    if not candidates.size:
        return np.zeros(ink.shape, bool), np.zeros(ink.shape, bool)
    strong = min(float(np.quantile(candidates, 0.9)), 1.0)
    sure = smooth > max(INK * strong, floor)
    some = max(FAINT_INK * strong, 0.8 * floor)
    marked = ndimage.binary_propagation(sure, EIGHT, smooth > some)
    return np.asarray(marked, bool), smooth > some / 2


def ink_floor(ink: Levels) -> float:
    """What is weaker than this is paper.

    Where ink and paper are two clear heaps of levels, between them; else above the noise, which is
    taken from the quieter part of the levels.
    """
    noise = 3.1 * float(np.quantile(np.abs(ink), 0.25))
    between = otsu(ink)
    strong, weak = ink[ink > between], ink[ink <= between]
    clear = strong.size and weak.size and strong.mean() - weak.mean() > APART * weak.std()
    if clear and between > CLEAR and strong.size < 0.4 * ink.size:
        return max(FAINTEST, min(NOISES * noise, between))
    return max(FAINTEST, NOISES * noise)


def otsu(ink: Levels) -> float:
    """The level that parts the levels into two heaps with the least spread. Source: Otsu 1979."""
    counts, edges = np.histogram(np.clip(ink, -0.2, 1), 128, (-0.2, 1))
    middles = (edges[1:] + edges[:-1]) / 2
    below, sums = np.cumsum(counts), np.cumsum(counts * middles)
    above = below[-1] - below
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = sums / below - (sums[-1] - sums) / above
        spread = np.nan_to_num(below * above * apart * apart)
    return float(edges[1:][spread.argmax()])


def all_specks(pieces: list[Piece], shape: tuple[int, ...]) -> bool:
    """Whether even the largest piece is too small to have been written."""
    largest = max((max(p.height, p.width) for p in pieces), default=0)
    return largest < max(SMALLEST, max(shape) / SPECKS)


def is_desk(piece: Piece, labels: NDArray[np.int32]) -> bool:
    """A shadow, a desk or the edge of the paper: along a side, and thin along it or very thick."""
    y, x = labels.shape
    sides = [
        (piece.top == 0, labels[0], piece.height / y),
        (piece.bottom == y, labels[-1], piece.height / y),
        (piece.left == 0, labels[:, 0], piece.width / x),
        (piece.right == x, labels[:, -1], piece.width / x),
    ]
    for touches, side, depth in sides:
        if touches and (side == piece.name).mean() > 1 / 3:
            inside = labels[piece.top : piece.bottom, piece.left : piece.right] == piece.name
            depths = ndimage.distance_transform_cdt(np.pad(inside, 1, mode="edge"))
            thick = float(np.max(np.asarray(depths)))
            if depth < 0.12 or 2 * thick > min(y, x) / 4:
                return True
    return False


def is_pole(piece: Piece, pieces: list[Piece], rows: int) -> bool:
    """The margin of a page or the side of a box: upright, thin, and far higher than the digits."""
    if piece.height < 8 * piece.width:
        return False
    others = [p for p in pieces if p.height < 8 * p.width]
    typical = typical_height(others)
    if piece.top <= 1 and piece.bottom >= rows - 1:
        return 2 * typical < piece.height and 0.02 * rows < typical
    digits = [p for p in others if p.height >= 0.15 * piece.height]
    return len(digits) > 1 and 2 * typical < piece.height
