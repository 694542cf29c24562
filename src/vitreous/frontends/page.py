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
from vitreous.frontends.sheet import without_desk

__all__ = ["Piece", "Written", "find_written"]

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
SMALLEST = 5
"""Pixels: nothing whose longer side is shorter was written with a pen."""
SPECKS = 80
"""If all pieces are smaller than this part of the image's side, they are specks."""
APART, CLEAR = 2.8, 0.06
"""Two heaps of levels are ink and paper if they are so many of the paper's deviations apart, and if
what lies between them is ink of this share at least: on blank paper it is none."""
SLOPES = np.linspace(-0.12, 0.12, 97)
"""Rows per column: how far printed lines may fall or rise, in a picture held a little askew."""
STRIPES = 64
"""Parts of a picture whose rows are summed up to find its lines' slope."""
SQUARED, RULED = 3, 2
"""Lines each way that make squared paper, and lines that make ruled paper."""
SCRAP = 8
"""Pixels: what is no larger and beside a rule is a part of it."""
DARKER = 1.8
"""What is so many times as dark as a rule is a stroke on it."""
EIGHT = np.ones((3, 3), bool)


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


def named_pieces(marked: Marked) -> tuple[NDArray[np.int32], list[Piece]]:
    """Numbered connected pieces, corners connecting, and the box of each."""
    labels = np.zeros(marked.shape, np.int32)
    ndimage.label(marked, EIGHT, output=labels)
    boxes: list[tuple[slice, slice]] = ndimage.find_objects(labels)
    return labels, [
        Piece(name, rows.start, columns.start, rows.stop, columns.stop)
        for name, (rows, columns) in enumerate(boxes, start=1)
    ]


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
    inked = np.zeros_like(marked)
    for piece in pieces:
        inside = [
            p
            for p in pieces
            if p.height >= 0.3 * piece.height
            and piece.top < p.top < p.bottom < piece.bottom
            and piece.left < p.left < p.right < piece.right
        ]
        if inside and is_frame(labels[piece.box] == piece.name):
            inked[piece.box] |= labels[piece.box] == piece.name
    return inked


def is_frame(piece: Marked) -> bool:
    """Whether a piece lies along the four sides of its box, thinly, and hardly anywhere else."""
    y, x = piece.shape
    band = max(3, round(0.08 * min(y, x)))
    sides = [piece[:band], piece[-band:], piece[:, :band].T, piece[:, -band:].T]
    along = all(side.any(axis=0).mean() > 0.9 for side in sides)
    return bool(along and piece[band:-band, band:-band].mean() < 0.03)


def printed_rules(ink: Levels, marked: Marked, faint: Marked) -> Marked:
    """Printed rules: long, thin, far longer than ink is high. Strokes that cross them are none.

    They are looked for in all that is a little dark. Where there are some, on squared or ruled
    paper, shorter ones are rules too: between strokes, and in corners. Such paper ties what is
    written on it into one piece, so that the height of ink is taken from what is left without runs.
    """
    flat = Side(ink, faint, tilt(faint))
    upright = Side(ink.T, faint.T, tilt(faint.T))
    tall = height_without_runs(sheared(faint, -flat.slope))
    squares = [
        find_rules(side, tall, wide=0.5 * side.length, gap=2 * tall) for side in (flat, upright)
    ]
    if min(lines for _, lines in squares) >= SQUARED:
        rows, columns = (short_rules(side, tall) for side in (flat, upright))
        return with_scraps(marked, rows | columns.T)
    usual = typical_height(named_pieces(marked)[1])
    rows, lines = find_rules(flat, usual, wide=flat.surely(usual), gap=0.0)
    if not lines:
        return rows
    # An upright rule is trusted only beside flat ones (a form): alone it may be a tall 1.
    columns, _ = find_rules(upright, usual, wide=upright.surely(usual), gap=0.0)
    rules = rows | columns.T
    if lines >= RULED:
        rules |= short_rules(flat, tall)
    return with_scraps(marked, rules)


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
    scores = []
    for slope in SLOPES:
        rows = (np.arange(y) + np.rint(slope * middles).astype(int)[:, None]) % y
        level = np.take_along_axis(stripes, rows, axis=1).sum(axis=0)
        scores.append(float((np.diff(level) ** 2).sum()))
    best = int(np.argmax(scores))
    return float(SLOPES[best]) if scores[best] > 1.2 * scores[len(SLOPES) // 2] else 0.0


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


def find_rules(side: Side, tall: float, *, wide: float, gap: float) -> tuple[Marked, int]:
    """The pixels of rules at least so wide among ink of this height, without strokes that cross
    them, and how many lines they are on. Strokes may part a rule by the gap.
    """
    marked, ink = sheared(side.marked, -side.slope), sheared(side.ink, -side.slope)
    nothing = np.zeros_like(side.marked), 0
    run = int(max(8, min(0.15 * side.length, 1.2 * tall)))
    if run >= side.length:
        return nothing
    long = in_most_of_runs(marked, run) & ~thicker(marked, max(4, int(0.12 * tall)))
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


def typical_height(pieces: list[Piece]) -> float:
    """The height that most ink has: the median over pieces that are not small beside the tallest.

    Pieces far wider than high (rules, dashes) do not count.
    """
    heights = [p.height for p in pieces if p.width < 4 * p.height and p.height >= SMALLEST]
    if not heights:
        return 0.0
    tall = [h for h in heights if h >= 0.4 * np.quantile(heights, 0.9)]
    return float(np.median(tall))
