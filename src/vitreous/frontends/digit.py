"""A photograph or drawing of one digit, made to look like MNIST.

MNIST's own way (LeCun et al. 1998, section III.A): the digit fills a box of 20×20, its shape kept,
and lies in 28×28 with its centre of mass in the middle; ink is light on a dark ground.
"""

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from vitreous.errors import ImageError
from vitreous.frontends.decode import Decoded
from vitreous.frontends.sheet import without_desk

__all__ = ["prepare_digit"]

Levels: TypeAlias = NDArray[np.floating]
"""(y, x): 0 is paper, 1 is full ink; or brightness, 0 to 255."""
Marked: TypeAlias = NDArray[np.bool_]
"""(y, x): True where there is ink."""

SIDE, BOX = 28, 20
CENTRE = 14.0
"""Where the centre of mass of MNIST's images lies, give or take half a pixel: measured."""
WORKING_SIDE = 400
"""Larger images are made smaller first: 400 pixels are plenty for a box of 20."""
CELLS = (12, 12, 36)
"""The lighting is estimated on a grid of this many cells a side, round after round."""

FAINTEST = 0.1
"""Ink that takes less than this share of the paper's light is none."""
DARKEST_PAPER = 64
"""Below this brightness, the camera's noise would pass for ink."""
NOISES = 5
"""Ink differs from paper by at least this many deviations of the paper's noise."""
SURE_INK, SOME_INK = 0.4, 0.25
"""Of strong ink's strength: what belongs to the digit, and what cannot be paper."""
EDGE = 0.2
"""The box around a digit takes in the pixels of a stroke's edge that hold this much ink."""
SPECK = 0.05
"""A piece of less than this share of the largest piece's ink is a speck."""


class Box(NamedTuple):
    """Rows and columns, the last ones not included."""

    top: int
    left: int
    bottom: int
    right: int

    @property
    def longest(self) -> int:
        return max(self.bottom - self.top, self.right - self.left)


def prepare_digit(decoded: Decoded) -> NDArray[np.uint8]:
    """A digit, dark on light or light on dark, as MNIST would hold it: uint8 (28, 28).

    Takes uint8 (y, x) or (y, x, 3). An image that is one of MNIST's already, or its negative, or
    either in other levels of grey, comes out as it is: 28×28, a border of one level, ink within
    20×20 around its centre of mass. Raises ImageError where there is no digit.
    """
    grey = Image.fromarray(decoded).convert("L")
    ready = mnist_style(np.asarray(grey))
    if ready is not None:
        return ready
    ink = find_ink(smaller(without_desk(grey)))
    marked = mark(ink, SURE_INK)
    if not marked.any():
        raise ImageError("no digit found: nothing stands out from the paper")
    marked = without_specks(marked)
    ink = even(ink, marked)
    return centred(fitted(ink, ink_box(ink > EDGE)))


def mnist_style(grey: NDArray[np.uint8]) -> NDArray[np.uint8] | None:
    """The image in MNIST's levels, if it is laid out as MNIST's are; else None."""
    if grey.shape != (SIDE, SIDE):
        return None
    paper = np.float32(np.median(frame(grey)))
    ink = np.abs(grey - paper)
    if ink.max() < 255 * FAINTEST or grey.min() < paper < grey.max():
        return None
    if (
        ink_box(ink > 0).longest > BOX
        or np.abs(np.subtract(centre_of_mass(ink), CENTRE)).max() > 0.55
    ):
        return None
    # From black or white the step to the ink is kept; from a grey it is stretched to full range.
    scale = 1 if paper in (0, 255) else 255 / ink.max()
    return np.rint(ink * scale).astype(np.uint8)


def smaller(grey: Image.Image, side: int = WORKING_SIDE) -> Levels:
    """Brightness at a size that is quick to work with."""
    factor = -(-max(grey.size) // side)
    return np.asarray(grey.reduce(factor) if factor > 1 else grey, np.float32)


def find_ink(light: Levels) -> Levels:
    """The share of the paper's light that is missing. Where ink is light, of the negative's."""
    light, paper = against_paper(light)
    return (paper - light) / np.maximum(paper, DARKEST_PAPER)


def against_paper(light: Levels, rounds: tuple[int, ...] = CELLS) -> tuple[Levels, Levels]:
    """Brightness and the paper's own brightness; both of the negative where ink is light.

    What lies farthest from the paper, darker or lighter, is the ink: by the cubes, a stroke
    outweighs the unevenness of a whole page.
    """
    paper = paper_level(light, rounds)
    offset = (light - paper).astype(np.float64)
    if (offset * offset * offset).sum() > 0:
        light, paper = 255 - light, 255 - paper
    paper = np.minimum(paper, filled(light, mark(apart(light, paper), SOME_INK)))
    return light, paper


def paper_level(light: Levels, rounds: tuple[int, ...] = CELLS) -> Levels:
    """The brightness that the paper has, or would have under the ink.

    First a smooth surface through the border. Then, ever more locally, the brightness of all that
    lies near the estimate so far; in the first round also of what differs along the border, which
    is a shadow or a desk.
    """
    paper = border_surface(light)
    marked = mark(apart(light, paper), SOME_INK)
    is_ink = marked & ~behind(marked)
    for cells in rounds:
        paper = local_level(light, ~is_ink, paper, cells)
        is_ink = mark(apart(light, paper), SOME_INK)
    return paper


def filled(light: Levels, marked: Marked) -> Levels:
    """Brightness with what is dark and thin filled from around it: a closing.

    A square that fits into nothing marked removes every stroke, and leaves the straight edge of a
    shadow where it is; means over cells would blur it.
    """
    side = 3
    while side < min(light.shape) and in_squares(marked, side, np.minimum).any():
        side += max(2, side // 4 * 2)
    side = 2 * side + 1  # so that strokes along the border, seen by half a square, go too
    return in_squares(in_squares(light, side, np.maximum), side, np.minimum)


def in_squares(image: NDArray, side: int, pick: np.ufunc) -> NDArray:
    """The largest or smallest value in the square around each pixel; `side` is odd."""
    for _ in ("rows", "columns"):
        image = np.pad(image, ((side // 2, side // 2), (0, 0)), mode="edge")
        reach = 1
        while reach < side:
            step = min(reach, side - reach)
            image = pick(image[:-step], image[step:])
            reach += step
        image = image.T
    return image


def behind(marked: Marked) -> Marked:
    """The pieces that are a shadow or a desk: along the border, and wide or not the only ones."""
    labels = pieces(marked)
    candidates = along_border(labels)
    others = np.bincount((labels * ~candidates).ravel())[1:]
    if others.max(initial=0) >= marked.size / 2000:
        return candidates
    wide = labels * in_squares(marked, max(marked.shape) // 8 * 2 + 1, np.minimum)
    return candidates & np.isin(labels, wide[wide > 0])


def apart(light: Levels, paper: Levels) -> Levels:
    """How far brightness is from the paper's, darker or lighter, as a share of it."""
    return np.abs(light - paper) / np.maximum(paper, 1)


def border_surface(light: Levels) -> Levels:
    """A quadratic surface through the border's brightness, what sticks out of it left out."""
    y, x = np.meshgrid(*(np.linspace(-1, 1, side) for side in light.shape), indexing="ij")
    terms = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=-1)
    border_terms, border = frame(terms), frame(light)
    surface = np.full(len(border), np.median(border))
    weights = np.zeros(6)
    for _ in range(5):
        distance = np.abs(border - surface)
        kept = distance <= 2.5 * np.median(distance) + 4
        weights = np.linalg.lstsq(border_terms[kept], border[kept], rcond=1e-6)[0]
        surface = border_terms @ weights
    return np.clip(terms @ weights, border.min(), border.max()).astype(np.float32)


def frame(image: NDArray) -> NDArray:
    """The pixels along the border, in one row: one in forty from each side, at least one."""
    y, x = image.shape[:2]
    inner = np.ones((y, x), bool)
    rows, columns = max(1, y // 40), max(1, x // 40)
    inner[rows : y - rows, columns : x - columns] = False
    return image[inner]


def local_level(light: Levels, is_paper: Marked, otherwise: Levels, cells: int) -> Levels:
    """The blurred brightness of the paper, and `otherwise` where there is none around."""
    few = 0.02
    amount = blur(is_paper.astype(np.float32), cells)
    return (blur(light * is_paper, cells) + few * otherwise) / (amount + few)


def blur(image: Levels, cells: int) -> Levels:
    """Means over the cells of a coarse grid, joined smoothly."""
    y, x = image.shape
    coarse = Image.fromarray(image).resize((cells, cells), Image.Resampling.BOX)
    return np.asarray(coarse.resize((x, y), Image.Resampling.BILINEAR))


def mark(ink: Levels, share: float) -> Marked:
    """Where ink has this share of strong ink's strength; nowhere if all is noise."""
    # The deviation, if the quieter part is normal noise; ink may cover much of the rest.
    noise = 3.1 * np.quantile(np.abs(ink), 0.25)
    candidates = ink[ink > max(FAINTEST, NOISES * noise)]
    if not candidates.size:
        return np.zeros(ink.shape, bool)
    return ink > min(np.quantile(candidates, 0.95), 1) * share


def without_specks(marked: Marked) -> Marked:
    """Keep the pieces that can belong to a digit. Raises ImageError where all are too small.

    Pieces along the border (a desk beside the paper, a ruled line) go if another is left.
    """
    labels = pieces(marked)
    inside = labels * ~along_border(labels)
    labels = inside if inside.any() else labels
    sizes = np.bincount(labels.ravel())
    sizes[0] = 0
    if ink_box(labels == sizes.argmax()).longest < max(4, max(marked.shape) / 40):
        raise ImageError("no digit found: there are only specks")
    return (sizes >= max(SPECK * sizes.max(), 1))[labels]


def along_border(labels: NDArray[np.int64]) -> Marked:
    """The pixels of pieces that lie along a third of a side, or reach from side to side."""
    sides = [labels[0], labels[-1], labels[:, 0], labels[:, -1]]
    touching = np.stack([np.bincount(side, minlength=labels.max() + 1) for side in sides])
    long = touching > np.array([[len(side) / 3] for side in sides])
    across = (touching[0] * touching[1] > 0) | (touching[2] * touching[3] > 0)
    return (long.any(axis=0) | across)[labels] & (labels > 0)


def pieces(marked: Marked) -> NDArray[np.int64]:
    """Number the connected pieces from 1, corners connecting; 0 where nothing is marked."""
    labels = np.zeros(marked.shape, np.int64)
    parent = [0]
    rows: list[list[tuple[int, int, int]]] = [[] for _ in range(len(marked) + 1)]
    for y, left, right in runs(marked):
        near = [name for start, stop, name in rows[y - 1] if start <= right and stop >= left]
        name = join(parent, near) if near else len(parent)
        if not near:
            parent.append(name)
        labels[y, left:right] = name
        rows[y].append((left, right, name))
    return np.array([root(parent, name) for name in range(len(parent))])[labels]


def runs(marked: Marked) -> Iterator[tuple[int, int, int]]:
    """Row, start and end of every run of marked pixels, in the order of reading."""
    steps = np.diff(np.pad(marked, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    rows, starts = np.nonzero(steps == 1)
    stops = np.nonzero(steps == -1)[1]
    return zip(rows.tolist(), starts.tolist(), stops.tolist(), strict=True)


def root(parent: list[int], name: int) -> int:
    """The first name of a piece that was met under several."""
    while parent[name] != name:
        name = parent[name]
    return name


def join(parent: list[int], names: list[int]) -> int:
    """Make several names one piece's."""
    roots = [root(parent, name) for name in names]
    for name in roots:
        parent[name] = min(roots)
    return min(roots)


def ink_box(marked: Marked) -> Box:
    """The smallest box around all that is marked."""
    rows, columns = np.flatnonzero(marked.any(axis=1)), np.flatnonzero(marked.any(axis=0))
    return Box(int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1)


def even(ink: Levels, marked: Marked) -> Levels:
    """Full ink as 1, and nothing beyond one pixel around the marked pieces."""
    strong = float(np.quantile(ink[marked], 0.5))
    near = Image.fromarray(marked.astype(np.uint8)).filter(ImageFilter.MaxFilter(3))
    return np.clip(ink / strong, 0, 1) * np.asarray(near)


def fitted(ink: Levels, box: Box) -> Levels:
    """The box's content, its longer side made 20 pixels and its shape kept."""
    scale = BOX / box.longest
    size = [max(1, round(n * scale)) for n in (box.right - box.left, box.bottom - box.top)]
    inside = Image.fromarray(ink[box.top : box.bottom, box.left : box.right].astype(np.float32))
    small = np.asarray(inside.resize((size[0], size[1]), Image.Resampling.HAMMING))
    return small / small.max()


def centred(ink: Levels) -> NDArray[np.uint8]:
    """Lay a digit of at most 20×20 into 28×28, its centre of mass in the middle."""
    y, x = (
        int(np.clip(np.ceil(round(CENTRE - 0.5 - mass, 3)), 0, SIDE - side))
        for mass, side in zip(centre_of_mass(ink), ink.shape, strict=True)
    )
    whole = np.zeros((SIDE, SIDE), np.uint8)
    whole[y : y + ink.shape[0], x : x + ink.shape[1]] = np.rint(ink * 255)
    return whole


def centre_of_mass(ink: Levels) -> tuple[float, float]:
    """The mean row and column, weighted by ink."""
    total = ink.sum(dtype=np.float64)
    y = ink.sum(axis=1, dtype=np.float64) @ np.arange(ink.shape[0]) / total
    x = ink.sum(axis=0, dtype=np.float64) @ np.arange(ink.shape[1]) / total
    return float(y), float(x)
