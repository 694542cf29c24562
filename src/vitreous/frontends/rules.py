"""What is printed on paper and is no writing: rules, squares, boxes and the cells of forms."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from vitreous.frontends.digit import Levels, Marked
from vitreous.frontends.pieces import EIGHT, Piece, named_pieces, typical_height

__all__ = ["drawn_frames", "is_side", "printed_rules"]

STEP = 0.0025
SLOPES = STEP * np.arange(-48, 49)
"""Rows per column: how far printed lines may fall or rise, in a picture held a little askew."""
STRIPES = 64
"""Parts of a picture whose rows are summed up to find its lines' slope."""
SQUARED, RULED = 3, 2
"""Lines each way that make squared paper, and lines that make ruled paper."""
ROOM = 2.6
"""A picture lower than this, in heights of ink, is a tight one, and may show print for its paper:
what is taken for paper there must be `SQUARED` lines that reach `ACROSS`."""
ACROSS = 0.95
"""The share of a picture that a line from side to side covers."""
SCRAP = 8
"""Pixels: what is no larger and beside a rule is a part of it."""
DARKER = 1.8
"""What is so many times as dark as a rule is a stroke on it."""


class Side(NamedTuple):
    """A page as flat rules are looked for on it; upright ones are flat on the transposed page."""

    ink: Levels
    marked: Marked
    slope: float
    """Rows by which printed lines fall per column."""

    @property
    def length(self) -> int:
        return self.marked.shape[1]

    def surely(self, tall: float) -> float:
        """How wide nothing but a rule is among ink of this height."""
        wide = max(0.35 * self.length, 2 * tall)
        if self.length >= 1.2 * len(self.marked):
            # From side to side, unless it can be the bar of a cut out 4 or 7.
            wide = min(wide, 0.9 * self.length)
        return wide


def printed_rules(ink: Levels, marked: Marked, faint: Marked) -> Marked:
    """Printed rules: long, thin, far longer than ink is high. Strokes that cross them are none.

    Squared or ruled paper is looked for in all that is a little dark; else, and on forms, rules are
    as dark as ink and lie level.
    """
    flat, upright = Side(ink, faint, tilt(faint)), Side(ink.T, faint.T, tilt(faint.T))
    tall = height_without_runs(sheared(faint, -flat.slope))
    tight = len(marked) <= ROOM * tall
    rules = paper_rules(flat, upright, tall, typical_height(named_pieces(marked)[1]), tight)
    if rules.any():
        return with_scraps(marked, rules)
    return form_rules(Side(ink, marked, 0.0), Side(ink.T, marked.T, 0.0))


def paper_rules(flat: Side, upright: Side, tall: float, usual: float, tight: bool) -> Marked:
    """The lines of squared or ruled paper, if it is some: short ones too, between strokes.

    Such paper ties what is written on it into one piece, so that the height of ink is taken from
    what is left without runs; whether paper is ruled, from the pieces.
    """
    if all(in_squares(side, tall, ACROSS if tight else 0.5) for side in (flat, upright)):
        rows, columns = (short_rules(side, tall) for side in (flat, upright))
        return rows | columns.T
    if tight:
        rows, lines = find_rules(flat, usual, wide=ACROSS * flat.length, gap=2 * tall)
    else:
        rows, lines = find_rules(flat, usual, wide=flat.surely(usual))
    is_ruled = lines >= (SQUARED if tight else RULED)
    return rows | short_rules(flat, tall) if is_ruled else np.zeros_like(rows)


def form_rules(flat: Side, upright: Side) -> Marked:
    """Rules of a form. An upright one is trusted only beside flat ones: alone it may be a 1."""
    tall = typical_height(named_pieces(flat.marked)[1])
    rows, lines = find_rules(flat, tall, wide=flat.surely(tall), broken=False)
    if not lines:
        return rows
    return rows | find_rules(upright, tall, wide=upright.surely(tall), broken=False)[0].T


def in_squares(side: Side, tall: float, share: float) -> bool:
    """Whether as many lines as squared paper has go through this share of the picture."""
    return find_rules(side, tall, wide=share * side.length, gap=2 * tall)[1] >= SQUARED


def short_rules(side: Side, tall: float) -> Marked:
    """Rules where it is known that there are some."""
    return find_rules(side, tall, wide=1.2 * tall, gap=2 * tall)[0]


def with_scraps(marked: Marked, rules: Marked) -> Marked:
    """Rules, and what is left of them where they cross or leave the picture: small, and beside."""
    labels, pieces = named_pieces(marked & ~rules)
    beside = np.unique(labels[np.asarray(ndimage.binary_dilation(rules, EIGHT), bool)])
    small = [p.name for p in pieces if is_scrap(p, *marked.shape)]
    return rules | np.isin(labels, np.intersect1d(small, beside[beside > 0]))


def is_scrap(piece: Piece, rows: int, columns: int) -> bool:
    """Whether a piece beside a rule is a part of it: tiny, or thin and at the picture's border."""
    at_border = min(piece.top, piece.left, rows - piece.bottom, columns - piece.right) <= 1
    longer, shorter = max(piece.height, piece.width), min(piece.height, piece.width)
    return longer <= SCRAP or (at_border and shorter <= SCRAP / 2)


def tilt(marked: Marked) -> float:
    """Rows by which printed lines fall per column: with that undone, rows differ the most.

    0 unless another slope, of those up to 7 degrees, makes rows differ clearly more.
    """
    y, x = marked.shape
    count = min(STRIPES, x)
    stripes = np.add.reduceat(marked, np.arange(count) * x // count, axis=1, dtype=np.float64).T
    middles = (np.arange(count) + 0.5) * x / count - x / 2

    def unequal(slope: float) -> float:
        rows = (np.arange(y) + np.rint(slope * middles).astype(int)[:, None]) % y
        return float((np.diff(np.take_along_axis(stripes, rows, axis=1).sum(axis=0)) ** 2).sum())

    coarse = max(SLOPES[::6], key=unequal)
    best = max(SLOPES[abs(SLOPES - coarse) < 6.5 * STEP], key=unequal)
    return float(best) if unequal(best) > 1.2 * unequal(0.0) else 0.0


def sheared(image: NDArray, slope: float) -> NDArray:
    """Each column moved down by so many rows per column, around the middle one; 0 comes in."""
    if slope == 0:
        return image
    y, x = image.shape
    rows = np.arange(y)[:, None] - np.rint(slope * (np.arange(x) - x // 2)).astype(int)
    inside = (rows >= 0) & (rows < y)
    moved = np.take_along_axis(image, rows.clip(0, y - 1), axis=0)
    return np.where(inside, moved, np.zeros((), image.dtype))


def height_without_runs(marked: Marked) -> float:
    """The height that most ink has in what is left without long thin runs, flat and upright.

    Each piece counts by the size of its box: bits of lines are many, and small.
    """
    length, thin = max(8, int(0.15 * min(marked.shape))), max(4, int(0.012 * max(marked.shape)))
    runs = in_runs(marked, length, axis=1) & ~thicker(marked, thin)
    runs |= in_runs(marked, length, axis=0) & ~thicker(marked.T, thin).T
    pieces = sorted(named_pieces(marked & ~runs)[1], key=lambda p: p.height)
    sizes = np.cumsum([p.height * p.width for p in pieces])
    return float(pieces[np.searchsorted(sizes, sizes[-1] / 2)].height) if pieces else 0.0


def find_rules(
    side: Side, tall: float, *, wide: float, gap: float = 0.0, broken: bool = True
) -> tuple[Marked, int]:
    """The pixels of rules at least so wide among ink of this height, without strokes that cross
    them, and how many lines they are on.

    Strokes may part a rule by the gap; where it may be broken, it may lack pixels too.
    """
    marked, ink = sheared(side.marked, -side.slope), sheared(side.ink, -side.slope)
    nothing = np.zeros_like(side.marked), 0
    run = int(max(8, min(0.15 * side.length, 1.2 * tall)))
    if run >= side.length:
        return nothing
    runs = in_most_of_runs(marked, run) if broken else in_runs(marked, run, axis=1)
    long = runs & ~thicker(marked, max(4, int(0.12 * tall)))
    # Strokes that stand on a rule part it; it counts as one all the same.
    gap = max(run, int(gap))
    whole = ~in_runs(~np.pad(long, ((0, 0), (gap, gap))), gap, axis=1)[:, gap:-gap]
    labels, rules = named_pieces(whole)
    lasting = [rule.name for rule in rules if rule.width >= wide]
    if not lasting:
        return nothing
    labels = np.where(long & np.isin(labels, lasting), labels, 0)
    level = np.zeros(len(rules) + 1, np.float32)
    level[lasting] = ndimage.median(ndimage.maximum_filter1d(ink, 3, axis=0), labels, lasting)
    return sheared((labels > 0) & (ink < DARKER * level[labels]), side.slope), len(lasting)


def in_most_of_runs(marked: Marked, length: int) -> Marked:
    """The marked pixels in flat runs of so many, a few of which may be missing or a row off."""
    near = ndimage.maximum_filter1d(marked, 3, axis=0)
    share = ndimage.uniform_filter1d(near.astype(np.float32), length, axis=1, mode="constant")
    return marked & np.asarray(ndimage.maximum_filter1d(share > 0.85, length, axis=1), bool)


def thicker(marked: Marked, thickness: int) -> Marked:
    """Pixels in columns of more than so many marked pixels: a stroke that crosses."""
    return in_runs(marked, thickness + 1, axis=0)


def in_runs(marked: Marked, length: int, *, axis: int) -> Marked:
    """The marked pixels that lie in a run of so many along an axis, or of one more if that is even.

    An opening; behind the border nothing is marked.
    """
    size = length | 1
    least = ndimage.minimum_filter1d(marked.astype(np.uint8), size, axis, mode="constant")
    return np.asarray(ndimage.maximum_filter1d(least, size, axis, mode="constant"), bool)


def is_side(piece: Piece, rules: Marked) -> bool:
    """The side of a printed cell: thin, upright, from rule to rule; rules end in the picture."""
    if piece.height < 6 * piece.width:
        return False
    at = np.flatnonzero(rules.any(axis=0))
    if not len(at) or (at[0] <= 2 and at[-1] >= rules.shape[1] - 3):
        return False
    near = max(4, 2 * piece.width)
    columns = slice(max(0, piece.left - near), piece.right + near)
    ends = [rules[max(0, row - near) : row + near, columns] for row in (piece.top, piece.bottom)]
    return all(bool(end.any()) for end in ends)


def drawn_frames(marked: Marked) -> Marked:
    """Boxes around something: a piece along all four sides of a rectangle, with ink inside."""
    labels, pieces = named_pieces(marked)
    frames = np.zeros_like(marked)
    for piece in pieces:
        if min(piece.height, piece.width) > 2 * SCRAP:
            inked = labels[piece.box] == piece.name
            if is_frame(inked) and any(is_inside(other, piece) for other in pieces):
                frames[piece.box] |= inked
    return frames


def is_inside(piece: Piece, frame: Piece) -> bool:
    """Whether a piece lies within a frame and is large enough to be what the frame is around."""
    return (
        piece.height >= 0.3 * frame.height
        and frame.top < piece.top < piece.bottom < frame.bottom
        and frame.left < piece.left < piece.right < frame.right
    )


def is_frame(piece: Marked) -> bool:
    """Whether a piece lies along the four sides of its box, thinly, and hardly anywhere else."""
    y, x = piece.shape
    band = max(3, round(0.08 * min(y, x)))
    sides = [piece[:band], piece[-band:], piece[:, :band].T, piece[:, -band:].T]
    along = all(side.any(axis=0).mean() > 0.9 for side in sides)
    return bool(along and piece[band:-band, band:-band].mean() < 0.03)
