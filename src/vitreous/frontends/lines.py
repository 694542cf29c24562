"""Pieces of ink as lines of writing, in reading order, each made the strip that a reader reads."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from vitreous.frontends.digit import Levels, Marked
from vitreous.frontends.page import Written
from vitreous.frontends.pieces import Piece

__all__ = ["BODY", "HEIGHT", "MARGIN", "WIDEST", "Strip", "find_lines", "make_strip", "prepare_ink"]

HEIGHT, BODY, MARGIN = 32, 24, 4
"""Pixels: a strip's height, the writing's height in it, and the ground around it."""
WIDEST = 512
"""Pixels: a strip's largest width, four digits for each of HEIGHT."""
THINNEST = 1.6
"""Pixels: thinner strokes would fade when a strip is made smaller, and are widened first."""

LOW = 0.3
"""A piece that has less than this share of its line's height is a dot, a dash or a broken bit."""
OVERLAP = 0.2
"""Two pieces of one line share at least this part of the lower one's rows."""
HAT = 0.6
"""The bar of a 5 may lie so many heights above the rest."""
SCRAP = 0.3
"""A group of less than this share of the typical height is a rule, a dash or dirt."""
REACH = 2.2
"""Two pieces of one number are at most so many heights apart."""


class Strip(NamedTuple):
    """One line, as the reader sees it and as it lies on the page."""

    levels: NDArray[np.uint8]
    """(32, width): 0 is paper, 255 full ink."""
    box: tuple[float, float, float, float]
    """Left, top, width and height, in pixels of the upright image."""
    origin: tuple[float, float]
    """Left and top of the strip's corner, in pixels of the upright image."""
    scale: float
    """Pixels of the upright image per pixel of the strip."""
    dots: tuple["Dot", ...]
    """Low pieces beside the digits: separators, if there are digits on both sides."""
    drops: NDArray[np.floating] | None = None
    """How far each column was moved up, in pixels of the upright image, where digits jump."""


class Dot(NamedTuple):
    """The middle of a dot, a comma or a dash, in pixels of the strip."""

    x: float
    y: float


def find_lines(written: Written) -> list[Strip]:
    """The lines of a page as strips, top to bottom, and left to right where they are side by side.

    Raises nothing: no pieces, no lines.
    """
    groups = without_scraps(group(written.pieces))
    rows = in_reading_order(groups)
    numbers = [number for row in rows for number in split(row)]
    return [cut(written, number) for number in numbers]


def group(pieces: list[Piece]) -> list[list[Piece]]:
    """Pieces that stand beside each other, as rows.

    The surest neighbours are joined first; two groups are never joined where a tall piece of one
    would stand above a tall piece of the other.
    """
    parent = list(range(len(pieces)))
    members = [[piece] for piece in pieces]
    for _, one, two in sorted(neighbours(pieces)):
        one, two = root(parent, one), root(parent, two)
        if one != two and not stacked(members[one], members[two]):
            parent[two] = one
            members[one] += members[two]
    return [members[name] for name in range(len(pieces)) if parent[name] == name]


def without_scraps(groups: list[list[Piece]]) -> list[list[Piece]]:
    """Groups that can be numbers beside the others: neither far lower nor far less ink."""
    if not groups:
        return []
    heights = [extent(g).height for g in groups]
    areas = [extent(g).height * extent(g).width for g in groups]
    # The height of the group that holds the middle of all area, so that dust does not count.
    order = np.argsort(heights)
    half = np.cumsum(np.array(areas)[order])
    typical = heights[order[int(np.searchsorted(half, half[-1] / 2))]]
    return [g for g, height in zip(groups, heights, strict=True) if height >= SCRAP * typical]


def root(parent: list[int], name: int) -> int:
    """The group that a piece belongs to."""
    while parent[name] != name:
        name = parent[name]
    return name


def neighbours(pieces: list[Piece]) -> list[tuple[float, int, int]]:
    """Pairs that may be of one row, with how doubtful each is."""
    if len(pieces) < 2:
        return []
    table = np.array([p[1:] for p in pieces], float)
    top, left, bottom, right = table.T
    height = bottom - top
    higher = np.maximum(height[:, None], height)
    lower = np.minimum(height[:, None], height)
    shared = np.minimum(bottom[:, None], bottom) - np.maximum(top[:, None], top)
    gap = np.maximum(left[:, None], left) - np.minimum(right[:, None], right)
    gap = np.maximum(gap, 0)
    small = lower < 0.5 * higher
    fit = shared / lower
    # A dot may hang below the line, and a bar may lie above its digit.
    beside = (fit > OVERLAP) & (gap <= REACH * higher)
    hanging = small & (shared > -0.3 * higher) & (gap <= 0.6 * higher)
    columns = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    width = right - left
    hanging |= (
        small & (shared > -HAT * higher) & (columns > 0.5 * np.minimum(width[:, None], width))
    )
    # Digits that jump may hardly share a row; they are joined last.
    jumping = ~small & (shared > -0.35 * lower) & (gap > 0) & (gap <= REACH * higher)
    doubt = gap / higher + (1 - np.minimum(fit, 1)) + small + 10 * ~(beside | hanging)
    one, two = np.nonzero(np.triu(beside | hanging | jumping, 1))
    return list(zip(doubt[one, two].tolist(), one.tolist(), two.tolist(), strict=True))


def stacked(one: list[Piece], two: list[Piece]) -> bool:
    """Whether a tall piece of one group stands above a tall piece of the other."""
    a, b = (np.array([p[1:] for p in group], float)[:, :, None] for group in (one, two))
    b = b.transpose(2, 1, 0)
    height_a, height_b = a[:, 2] - a[:, 0], b[:, 2] - b[:, 0]
    tallest = max(height_a.max(), height_b.max())
    tall = np.minimum(height_a, height_b) >= 0.5 * tallest
    lower = np.minimum(height_a, height_b)
    shared_rows = np.minimum(a[:, 2], b[:, 2]) - np.maximum(a[:, 0], b[:, 0])
    narrower = np.minimum(a[:, 3] - a[:, 1], b[:, 3] - b[:, 1])
    shared_columns = np.minimum(a[:, 3], b[:, 3]) - np.maximum(a[:, 1], b[:, 1])
    above = tall & (shared_rows < 0.25 * lower) & (shared_columns > 0.3 * narrower)
    return bool(above.any())


def in_reading_order(groups: list[list[Piece]]) -> list[list[Piece]]:
    """Rows from the top: neighbours that share half of their height are of one row."""
    left = sorted(groups, key=lambda g: extent(g).top)
    ordered = []
    while left:
        row = [left.pop(0)]
        for group in row:  # grows while it is walked through: a tilted row is a chain
            near = [g for g in left if beside(extent(group), extent(g))]
            near = [g for g in near if not any(above(extent(g), extent(r)) for r in row)]
            row += near
            left = [g for g in left if g not in near]
        ordered += sorted(row, key=lambda g: extent(g).left)
    return ordered


def above(one: Piece, two: Piece) -> bool:
    """Whether two extents share columns: they are of two rows."""
    shared = min(one.right, two.right) - max(one.left, two.left)
    return shared > 0.3 * min(one.width, two.width)


def beside(one: Piece, two: Piece) -> bool:
    """Whether two extents share half of the lower one's rows, and are not far apart for that."""
    shared = min(one.bottom, two.bottom) - max(one.top, two.top)
    return shared >= 0.4 * min(one.height, two.height)


def extent(group: list[Piece]) -> Piece:
    """The box around the tall pieces of a group, and the bars that lie on them."""
    highest = max(p.height for p in group)
    tall = [p for p in group if p.height >= LOW * highest]
    parts = tall + [p for p in group if p.height < LOW * highest and is_hat(p, tall)]
    return Piece(
        0,
        min(p.top for p in parts),
        min(p.left for p in parts),
        max(p.bottom for p in parts),
        max(p.right for p in parts),
    )


def is_hat(piece: Piece, tall: list[Piece]) -> bool:
    """Whether a low piece is the bar of a digit below it, as a 5 has."""
    for digit in tall:
        shared = min(piece.right, digit.right) - max(piece.left, digit.left)
        gap = digit.top - piece.bottom
        near = -0.2 * digit.height < gap < HAT * digit.height
        if near and piece.width > 0.3 * digit.height and shared > 0.5 * piece.width:
            return True
    return False


def split(row: list[Piece]) -> list[list[Piece]]:
    """A row as the numbers in it: a gap far wider than the usual one parts two."""
    row = sorted(row, key=lambda p: p.left)
    tall = max(p.height for p in row)
    typical = float(np.median([p.height for p in row if p.height >= LOW * tall]))
    reached = np.maximum.accumulate([p.right for p in row])
    gaps = [p.left - end for p, end in zip(row[1:], reached[:-1], strict=True)]
    if not gaps:
        return [row]
    usual = max(sorted(gaps)[(len(gaps) - 1) // 2], 0)
    limit = min(max(4 * usual, 1.0 * typical), REACH * typical)
    numbers = [[row[0]]]
    for piece, gap in zip(row[1:], gaps, strict=True):
        if gap > limit:
            numbers.append([])
        numbers[-1].append(piece)
    return numbers


def cut(written: Written, number: list[Piece]) -> Strip:
    """One number's strip, without the ink of other numbers around it."""
    box = written_box(number)
    pad = max(2, round(0.1 * box.height))
    y, x = written.ink.shape
    top, left = max(0, box.top - pad), max(0, box.left - pad)
    bottom, right = min(y, box.bottom + pad), min(x, box.right + pad)
    labels = written.labels[top:bottom, left:right]
    ours = np.isin(labels, [p.name for p in number])
    near = ndimage.binary_dilation((labels > 0) & ~ours, np.ones((3, 3), bool))
    others = np.asarray(near, bool) & ~ours
    ink = np.where(others, 0, written.ink[top:bottom, left:right])
    inner = Piece(0, box.top - top, box.left - left, box.bottom - top, box.right - left)
    drops = straight_drops(number, box, ours.shape[1], left)
    if drops is not None:
        ink, ours = moved(ink, drops), moved(ours, drops)
        rows = np.flatnonzero(ours.any(axis=1))
        inner = inner._replace(top=int(rows[0]), bottom=int(rows[-1]) + 1)
    levels, corner, scale = prepare_ink(ink, ours, inner)
    whole = written.scale
    columns = np.clip(corner[0] + scale * (np.arange(levels.shape[1]) + 0.5), 0, ours.shape[1] - 1)
    return Strip(
        levels,
        (box.left * whole, box.top * whole, box.width * whole, box.height * whole),
        ((left + corner[0]) * whole, (top + corner[1]) * whole),
        scale * whole,
        tuple(
            Dot(
                ((p.left + p.right) / 2 - left - corner[0]) / scale,
                ((p.top + p.bottom) / 2 - top - corner[1]) / scale,
            )
            for p in dots(number, box)
        ),
        None if drops is None else drops[columns.astype(int)] * whole,
    )


def straight_drops(
    number: list[Piece], box: Piece, width: int, left: int
) -> NDArray[np.int64] | None:
    """How far below the usual line each column's digit stands; none where all stand on one line."""
    tall = [p for p in number if p.height >= 0.5 * max(p.height for p in number)]
    typical = float(np.median([p.height for p in tall]))
    if len(tall) < 2 or box.height < 1.5 * typical:
        return None
    tall.sort(key=lambda p: p.left + p.right)
    middles = np.array([(p.left + p.right) / 2 - left for p in tall])
    lines = np.array([(p.top + p.bottom) / 2 for p in tall])
    nearest = np.abs(np.arange(width)[:, None] - middles).argmin(axis=1)
    return np.rint(lines - np.median(lines)).astype(np.int64)[nearest]


def moved(image: NDArray, drops: NDArray[np.int64]) -> NDArray:
    """Each column moved up by its drop, on a ground that holds them all."""
    room = int(np.abs(drops).max())
    wide = np.pad(image, ((room, room), (0, 0)))
    rows = np.arange(len(image))[:, None] + room + drops
    return np.take_along_axis(wide, rows, axis=0)


def dots(number: list[Piece], box: Piece) -> list[Piece]:
    """Low pieces that stand beside the digits or hang below them, and are none of their strokes."""
    tall = [p for p in number if p.height >= 0.45 * box.height]
    found = []
    for piece in number:
        if piece.height >= 0.45 * box.height or piece.width > 0.6 * box.height:
            continue
        under = sum(max(0, min(piece.right, t.right) - max(piece.left, t.left)) for t in tall)
        hangs = piece.top > box.top + 0.7 * box.height
        if under <= 0.3 * piece.width or (hangs and under <= 0.8 * piece.width):
            found.append(piece)
    return found


def written_box(number: list[Piece]) -> Piece:
    """The box around a number's tall pieces, and the low ones that are near them."""
    core = extent(number)
    near = [
        p
        for p in number
        if p.left < core.right + 0.5 * core.height and p.right > core.left - 0.5 * core.height
    ]
    return Piece(
        0,
        core.top,
        min(core.left, *(p.left for p in near)),
        core.bottom,
        max(core.right, *(p.right for p in near)),
    )


def prepare_ink(
    ink: Levels, marked: Marked, box: Piece
) -> tuple[NDArray[np.uint8], tuple[float, float], float]:
    """The ink in a box as a strip (32, width), its corner in the ink, and ink pixels per pixel.

    The writing is made 24 pixels high, its shape kept, and less where it would be wider than a
    strip can be. Strong ink becomes 255. The same for training strings and for people's images.
    """
    scale = max(box.height / BODY, box.width / (WIDEST - 2 * MARGIN))
    inside = ink[box.top : box.bottom, box.left : box.right]
    ours = marked[box.top : box.bottom, box.left : box.right]
    strong = float(np.quantile(inside[ours], 0.6)) if ours.any() else 1.0
    even = np.clip(inside / max(strong, 1e-6), 0, 1).astype(np.float32)
    even = widened(even, ours, scale)
    size = max(1, round(box.width / scale)), max(1, round(box.height / scale))
    resized = Image.fromarray(even).resize(size, Image.Resampling.HAMMING)
    small = np.clip(np.asarray(resized), 0, 1)
    width = -(-(size[0] + 2 * MARGIN) // 4) * 4
    levels = np.zeros((HEIGHT, width), np.uint8)
    top = (HEIGHT - size[1]) // 2
    levels[top : top + size[1], MARGIN : MARGIN + size[0]] = np.rint(small * 255)
    return levels, (box.left - MARGIN * scale, box.top - top * scale), scale


def widened(ink: Levels, marked: Marked, scale: float) -> Levels:
    """Ink whose strokes stay THINNEST pixels wide when it is made `scale` times smaller."""
    edge = marked & ~np.asarray(ndimage.binary_erosion(marked, border_value=1), bool)
    stroke = 2 * marked.sum() / max(int(edge.sum()), 1)
    missing = round(THINNEST * scale - stroke)
    if missing < 1:
        return ink
    return ndimage.grey_dilation(ink, size=(missing + 1, missing + 1))


def make_strip(decoded_ink: Levels, marked: Marked) -> NDArray[np.uint8] | None:
    """All that is marked as one strip; none where nothing is."""
    if not marked.any():
        return None
    rows, columns = np.flatnonzero(marked.any(axis=1)), np.flatnonzero(marked.any(axis=0))
    box = Piece(0, int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)
    return prepare_ink(decoded_ink, marked, box)[0]
