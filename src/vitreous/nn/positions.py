"""Where a token is. Everything here is a function of coordinates or of the grid that they fill.

A module here takes a grid, and a tensor whose device and dtype to follow, and answers with
`Placed`: what is added to every token, or the angle by which attention turns queries and keys.
Prefix tokens (class, registers) have no coordinate: sums add zeros to them, rotations leave them as
they are, and only a learned table may own rows for them.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.errors import ShapeError
from vitreous.shapes import Angles, Coords, Grid

__all__ = [
    "RESIZES",
    "Learned",
    "LearnedAxes",
    "NoPositions",
    "Placed",
    "Resize",
    "Rotary",
    "RotaryUnit",
    "SinCos",
    "angles",
    "grid_coords",
    "resize_table",
    "rotate",
    "sincos",
]


class Placed(NamedTuple):
    """What positions do to a sequence, prefix tokens included."""

    added: Float[Tensor, "n d"] | None = None
    angle: Angles | None = None


def grid_coords(*sides: int, device: torch.device | None = None) -> Coords:
    """Coordinates of every cell of a grid, in the order in which `patchify` emits patches.

    >>> grid_coords(2, 2).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    axes = torch.meshgrid(
        *(torch.arange(float(side), device=device) for side in sides), indexing="ij"
    )
    return torch.stack([axis.flatten() for axis in axes], dim=-1)


def angles(coords: Coords, pairs: int, base: float) -> Angles:
    """`pairs` angles per token, an equal share for each axis, from fast (1) to slow (1 / base).

    Raises ShapeError where the pairs do not split over the axes.
    """
    axes = coords.shape[-1]
    if pairs < axes or pairs % axes:
        raise ShapeError(f"{pairs} angles do not split over {axes} coordinate axes")
    share = pairs // axes
    speeds = base ** (-torch.arange(share, device=coords.device) / share)
    return (coords[..., None] * speeds).flatten(1)


def sincos(
    coords: Coords,
    width: int,
    base: float = 10_000.0,
    *,
    layout: Literal["concatenated", "interleaved"] = "concatenated",
) -> Float[Tensor, "n d"]:
    """Sines and cosines of the coordinates: all sines then all cosines, or in turn.

    Raises ShapeError for a width that is not even or does not split over the axes.
    Source: Vaswani et al., section 3.5 (arXiv 1706.03762), with an equal share for each axis.
    """
    if width % 2:
        raise ShapeError(f"width {width} is odd: sines and cosines come in pairs")
    angle = angles(coords, width // 2, base)
    waves = torch.stack([angle.sin(), angle.cos()], dim=1)
    order = (
        "n wave pair -> n (wave pair)"
        if layout == "concatenated"
        else "n wave pair -> n (pair wave)"
    )
    return rearrange(waves, order)


def rotate(
    x: Float[Tensor, "*b n e"],
    angle: Angles,
    *,
    layout: Literal["interleaved", "halves"] = "interleaved",
) -> Float[Tensor, "*b n e"]:
    """Turn each pair of numbers by its angle; at angle zero this is the identity.

    A pair is two neighbours (interleaved) or one number of each half (halves). Source: Su et al.,
    section 3.2 (arXiv 2104.09864).
    """
    axis = -1 if layout == "interleaved" else -2
    pairs = x.unflatten(-1, (-1, 2) if layout == "interleaved" else (2, -1))
    one, two = pairs.unbind(axis)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    return torch.stack([one * cos - two * sin, one * sin + two * cos], dim=axis).flatten(-2)


class Resize(NamedTuple):
    """How a table is stretched: libraries differ, and the wrong one fails silently."""

    mode: str
    antialias: bool = False
    corners: bool = False
    offset: float = 0.0
    """Added to the target's sides, and the quotient of the sides is then the scale."""
    unless_square: str = ""
    """Which other convention stretches from or to what is no square."""


RESIZES: Mapping[str, Resize] = {
    "bicubic_antialias": Resize("bicubic", antialias=True),  # timm
    "bicubic": Resize("bicubic"),  # Hugging Face, DeiT, MAE
    "bicubic_corners": Resize("bicubic", corners=True),  # torchvision
    "bicubic_offset": Resize("bicubic", offset=0.1),  # DINOv2's own code
    "bilinear_antialias": Resize("bilinear", antialias=True),  # SigLIP 2
    "bilinear": Resize("bilinear"),  # timm, for npz files
    "bilinear_corners": Resize("bilinear", corners=True),
    # Google's two repositories know squares only; for others, timm's reader of their files
    "google": Resize("bilinear", corners=True, unless_square="bilinear"),
}


def resize_table(
    table: Float[Tensor, "rows d"], source: Grid, target: Grid, resize: str
) -> Float[Tensor, "resized d"]:
    """Stretch the last source-grid rows of a table to another grid; rows before them are kept.

    An equal grid returns the table itself, bit for bit. `resize` names one of `RESIZES`. Raises
    ShapeError where the table is too short for its grid.
    """
    patches = source[0] * source[1]
    prefix = len(table) - patches
    if prefix < 0:
        raise ShapeError(f"a table of {len(table)} rows does not hold a grid of {source}")
    if source == target:
        return table
    how = RESIZES[resize]
    if how.unless_square and (source[0] != source[1] or target[0] != target[1]):
        how = RESIZES[how.unless_square]
    # torch 2.13's antialiased CPU kernels are wrong for a single column; on its side it is a row.
    on_side = target[1] == 1
    layout = "1 d col row" if on_side else "1 d row col"
    picture = rearrange(table[prefix:], f"(row col) d -> {layout}", row=source[0])
    size = (target[1], target[0]) if on_side else target
    stretched = stretch(picture.float(), size, how)
    rows = rearrange(stretched, f"{layout} -> (row col) d").to(table.dtype)
    return torch.cat([table[:prefix], rows])


def stretch(
    picture: Float[Tensor, "1 d row col"], size: tuple[int, int], how: Resize
) -> Float[Tensor, "1 d newrow newcol"]:
    """A table as a picture, at another size."""
    options = {"mode": how.mode, "antialias": how.antialias, "align_corners": how.corners}
    if not how.offset:
        return F.interpolate(picture, size=size, **options)
    sides = zip(size, picture.shape[2:], strict=True)
    # torch then steps by the inverse of these scales, and not by the quotient of the sizes.
    scales = [(new + how.offset) / old for new, old in sides]
    stretched = F.interpolate(picture, scale_factor=scales, **options)
    return stretched[..., : size[0], : size[1]]


def behind_prefix(rows: Float[Tensor, "n d"], prefix: int) -> Float[Tensor, "m d"]:
    """The rows, with a row of zeros before them for each prefix token."""
    return F.pad(rows, (0, 0, prefix, 0))


class NoPositions(nn.Module):
    """Nothing is added: the encoder cannot tell one order of the patches from another."""

    def forward(self, grid: Grid, like: Tensor) -> Placed:  # noqa: ARG002 - all are asked alike
        return Placed()


class Learned(nn.Module):
    """One learned row for each token of a grid: the class token first where it owns a row.

    Other prefix tokens own no row: they are learned already. Stores its grid shape beside its rows.
    Source: ViT, section 3.1 (arXiv 2010.11929).
    """

    grid: Tensor

    def __init__(
        self,
        grid: Grid,
        width: int,
        *,
        class_row: bool,
        others: int,
        resize: str,
        std: float = 0.02,
    ) -> None:
        super().__init__()
        self.class_row, self.others, self.resize = class_row, others, resize
        self.register_buffer("grid", torch.tensor(grid))
        self.source = grid
        self.table = nn.Parameter(torch.empty(class_row + grid[0] * grid[1], width))
        nn.init.normal_(self.table, std=std)

    def forward(self, grid: Grid, like: Tensor) -> Placed:  # noqa: ARG002
        rows = resize_table(self.table, self.source, grid, self.resize)
        if self.others:
            gap = rows.new_zeros(self.others, rows.shape[1])
            rows = torch.cat([rows[: self.class_row], gap, rows[self.class_row :]])
        return Placed(added=rows)


class LearnedAxes(nn.Module):
    """A learned vector for each grid row plus one for each grid column, summed."""

    grid: Tensor

    def __init__(
        self, grid: Grid, width: int, *, prefix: int, resize: str, std: float = 0.02
    ) -> None:
        super().__init__()
        self.prefix, self.resize = prefix, resize
        self.register_buffer("grid", torch.tensor(grid))
        self.source = grid
        self.rows = nn.Parameter(torch.empty(grid[0], width))
        self.columns = nn.Parameter(torch.empty(grid[1], width))
        for table in (self.rows, self.columns):
            nn.init.normal_(table, std=std)

    def forward(self, grid: Grid, like: Tensor) -> Placed:  # noqa: ARG002
        rows = resize_table(self.rows, (self.source[0], 1), (grid[0], 1), self.resize)
        columns = resize_table(self.columns, (1, self.source[1]), (1, grid[1]), self.resize)
        return Placed(added=behind_prefix((rows[:, None] + columns).flatten(0, 1), self.prefix))


class SinCos(nn.Module):
    """Fixed sines and cosines of (row, column), or of the index alone with one axis."""

    def __init__(self, width: int, *, prefix: int, axes: Literal[1, 2] = 2) -> None:
        super().__init__()
        self.width, self.prefix, self.axes = width, prefix, axes

    def forward(self, grid: Grid, like: Tensor) -> Placed:
        sides = grid if self.axes == 2 else (grid[0] * grid[1],)
        rows = sincos(grid_coords(*sides, device=like.device), self.width)
        return Placed(added=behind_prefix(rows.to(like.dtype), self.prefix))


class Rotary(nn.Module):
    """Angles of (row, column) for every head; half of each head's pairs turn with either axis.

    Source: axial rotary positions of Heo et al. (arXiv 2403.13298), base 100.
    """

    def __init__(self, head_dim: int, *, prefix: int, base: float = 100.0) -> None:
        super().__init__()
        self.pairs, self.prefix, self.base = head_dim // 2, prefix, base

    def forward(self, grid: Grid, like: Tensor) -> Placed:
        coords = grid_coords(*grid, device=like.device)
        return Placed(angle=behind_prefix(angles(coords, self.pairs, self.base), self.prefix))


class RotaryUnit(nn.Module):
    """Angles of the places in a unit square: both axes run from -1 to 1, whatever the grid.

    A token's angle is 2π · place / period, the first half of each head's pairs by row, the second
    by column. Source: DINOv3, section 3.1 (arXiv 2508.10104), base 100.
    """

    periods: Tensor

    def __init__(self, head_dim: int, *, prefix: int, base: float = 100.0) -> None:
        super().__init__()
        self.prefix = prefix
        share = head_dim // 4
        self.register_buffer("periods", base ** (torch.arange(share) / share))

    def forward(self, grid: Grid, like: Tensor) -> Placed:
        sides = torch.tensor(grid, device=like.device)
        places = 2 * (grid_coords(*grid, device=like.device) + 0.5) / sides - 1
        angle = 2 * torch.pi * places[..., None] / self.periods.float()
        return Placed(angle=behind_prefix(angle.flatten(1), self.prefix))
