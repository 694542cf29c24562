"""A sheet of paper that lies in the picture with darker desk on its sides."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from scipy.spatial import ConvexHull, QhullError

__all__ = ["without_desk"]

Levels: TypeAlias = NDArray[np.floating]
Marked: TypeAlias = NDArray[np.bool_]

SIDE = 240
"""A sheet is looked for on a picture of at most this side."""
LEAST = 0.15
"""The least share of a picture that its sheet covers."""
AT_BORDER = 0.3
"""The most of the picture's border that the sheet may hold: else it is no desk that surrounds."""
BRIGHTER = 1.35
"""How many times as bright as the desk beside it a sheet is at least."""
GRAIN = 1.0
"""The least deviation of a desk's brightness: the ground of a drawing has none."""
FULL, SQUARE, LIT = 0.92, 0.85, 0.75
"""A sheet fills its convex hull, this hull a rectangle, and most of it is light, not ink."""
EDGE = 0.015
"""Of the picture's longer side: how much of a sheet's edge counts as desk."""


def without_desk(grey: Image.Image) -> Image.Image:
    """The picture with the desk painted over in the brightness of the paper's edge beside it.

    The same picture where no sheet lies on a desk: paper that fills the picture, light ink on a
    dark ground.
    """
    light = np.asarray(grey.reduce(-(-max(grey.size) // SIDE)), np.float32)
    sheet = find_sheet(light)
    if sheet is None:
        return grey
    paper = ndimage.maximum_filter(ndimage.median_filter(light, 3), 7)
    rows, columns = np.asarray(
        ndimage.distance_transform_edt(~sheet, return_distances=False, return_indices=True)
    )
    around = Image.fromarray(paper[rows, columns].astype(np.uint8))
    inside = Image.fromarray(np.uint8(255) * sheet)
    size, how = grey.size, Image.Resampling.BILINEAR
    return Image.composite(grey, around.resize(size, how), inside.resize(size, how))


def find_sheet(light: Levels) -> Marked | None:
    """Where the sheet is, without its edge; None where there is none."""
    if min(light.shape) < 24:
        return None
    smooth = np.asarray(ndimage.gaussian_filter(light, 1.5))
    labels = np.zeros(light.shape, np.int32)
    ndimage.label(smooth > halfway(smooth), output=labels)
    if not labels.any():
        return None
    largest = labels == 1 + int(np.argmax(np.bincount(labels.ravel())[1:]))
    sheet = np.asarray(ndimage.binary_fill_holes(largest), bool)
    border = np.concatenate([sheet[0], sheet[-1], sheet[:, 0], sheet[:, -1]])
    if sheet.mean() < LEAST or border.mean() > AT_BORDER or largest.sum() < LIT * sheet.sum():
        return None
    desk = light[~np.asarray(ndimage.binary_dilation(sheet, iterations=3), bool)]
    if not desk.size or desk.std() < GRAIN or light[largest].mean() < BRIGHTER * desk.mean():
        return None
    if not is_rectangle(sheet):
        return None
    edge = max(2, round(EDGE * max(light.shape)))
    return np.asarray(ndimage.binary_erosion(sheet, np.ones((3, 3)), iterations=edge), bool)


def halfway(light: Levels) -> float:
    """The level between the means of two heaps of levels that it parts itself."""
    level = float(light.mean())
    for _ in range(20):
        above = light > level
        if above.all() or not above.any():
            break
        level = (float(light[above].mean()) + float(light[~above].mean())) / 2
    return level


def is_rectangle(sheet: Marked) -> bool:
    """Whether a region fills its convex hull, and that hull the least rectangle around it."""
    inner = np.argwhere(sheet & ~np.asarray(ndimage.binary_erosion(sheet), bool))
    try:
        hull = ConvexHull(inner)
    except QhullError:  # all on one line
        return False
    corners = inner[hull.vertices].astype(np.float64)
    sides = np.roll(corners, -1, axis=0) - corners
    along = sides / np.linalg.norm(sides, axis=1, keepdims=True)
    across = np.stack([-along[:, 1], along[:, 0]], axis=1)
    around = np.ptp(corners @ along.T, axis=0) * np.ptp(corners @ across.T, axis=0)
    return bool(sheet.sum() > FULL * hull.volume > FULL * SQUARE * around.min())
