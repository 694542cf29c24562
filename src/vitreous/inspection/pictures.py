"""Maps as pictures: overlays, mosaics, an image cut into its patches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from vitreous.config import Pair
from vitreous.figures.colours import Numbers, Pixels, diverging, laid_over, sequential
from vitreous.figures.page import image_data
from vitreous.figures.style import MUTED
from vitreous.inspection.layout import Layout
from vitreous.inspection.maps import TokenMap, over_pixels
from vitreous.inspection.record import Maps

__all__ = [
    "Picture",
    "attention_picture",
    "cut",
    "enlarged",
    "grid_of_maps",
    "mosaic",
    "overlay",
]

SIDE = 336
"""A picture is enlarged, by a whole number, to about so many pixels."""
WHITE = 255


@dataclass(frozen=True)
class Picture:
    """A picture with its title; a notebook shows it."""

    title: str
    pixels: Pixels

    @property
    def png(self) -> bytes:
        """As the content of a PNG file."""
        file = BytesIO()
        Image.fromarray(as_rows(self.pixels)).save(file, format="PNG", optimize=True)
        return file.getvalue()

    @property
    def address(self) -> str:
        """As a data address, to stand inside a page."""
        return image_data(self.pixels)

    def _repr_png_(self) -> bytes:
        return self.png

    def _repr_html_(self) -> str:
        return (
            f'<figure><img alt="{escape(self.title)}" src="{self.address}">'
            f"<figcaption>{escape(self.title)}</figcaption></figure>"
        )


def as_rows(pixels: Pixels) -> Pixels:
    """(c, y, x) as Pillow wants it."""
    return pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0))


def enlarged(pixels: Pixels, side: int = SIDE) -> Pixels:
    """Every pixel a square, so that the longer side comes to about `side`; never made smaller."""
    times = max(1, round(side / max(pixels.shape[1:])))
    return pixels.repeat(times, axis=1).repeat(times, axis=2)


def cut(pixels: Pixels, patch_shape: Pair, gap: int = 1) -> Pixels:
    """The picture in pieces, white between the patches."""
    (py, px), (y, x) = patch_shape, pixels.shape[1:]
    rows, columns = np.arange(y) + np.arange(y) // py * gap, np.arange(x) + np.arange(x) // px * gap
    apart = np.full((len(pixels), rows[-1] + 1, columns[-1] + 1), WHITE, dtype=np.uint8)
    apart[:, rows[:, None], columns] = pixels
    return apart


def overlay(pixels: Pixels, values: Float[Tensor, "row col"], patch_shape: Pair) -> Pixels:
    """The picture, tinted by a map over its patches.

    A map with signs by its largest size; one without from its smallest value to its largest.
    """
    shape = (pixels.shape[1], pixels.shape[2])
    low = values.min().clamp_min(0)
    whole = over_pixels((values - low)[None], shape, patch_shape)[0]
    return laid_over(pixels, by_largest(whole.float().cpu().numpy()))


def by_largest(values: Numbers) -> Numbers:
    """Divided by the largest size."""
    return values / max(float(np.abs(values).max(initial=0)), 1e-30)


def read_from(weights: Float[Tensor, "h q k"], layout: Layout) -> Float[Tensor, "h row col"]:
    """Whom the class token reads, or the mean patch where there is none, over the grid."""
    kinds = layout.kinds
    rows = weights[:, kinds["class"] if "class" in kinds else kinds["patches"]].mean(dim=1)
    return rows[:, layout.prefix :].unflatten(1, layout.grid)


def attention_picture(
    maps: Mapping[str, Tensor], layout: Layout, heads: Sequence[int] | None = None
) -> Picture:
    """A row for each layer, a column for each head: whom the class token or mean patch reads.

    `heads` are the numbers of the heads, where not all were recorded. The first image is shown.
    """
    reader = "the class token" if "class" in layout.kinds else "the mean patch"
    rows = {
        name: [by_largest(head.cpu().numpy()) for head in read_from(weights[0], layout)]
        for name, weights in maps.items()
    }
    tiles = [[enlarged(sequential(head), 56) for head in heads] for heads in rows.values()]
    names = [name.removesuffix(".attn") for name in rows]
    columns = [f"head {head}" for head in heads or range(max(map(len, tiles), default=0))]
    return Picture(f"whom {reader} reads", mosaic(tiles, names, columns))


def grid_of_maps(values: Float[Tensor, "row col y x"], title: str) -> Picture:
    """A map for each cell of a grid, each where its cell stands; numbers of −1..1."""
    tiles = [[enlarged(diverging(cell), 40) for cell in row] for row in values.cpu().numpy()]
    return Picture(title, mosaic(tiles))


def mosaic(
    tiles: Sequence[Sequence[Pixels]], rows: Sequence[str] = (), columns: Sequence[str] = ()
) -> Pixels:
    """Tiles of one shape in rows, with names at the left and above; white where there is none."""
    left = 12 + 7 * max(map(len, rows), default=-2) if rows else 0
    top, gap = 22 if columns else 0, 4
    y, x = tiles[0][0].shape[1:]
    wide = max(map(len, tiles))
    size = (left + wide * (x + gap), top + len(tiles) * (y + gap))
    sheet = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(12)
    for column, name in enumerate(columns):
        pen.text((left + column * (x + gap), 4), name, fill=MUTED, font=font)
    for row, line in enumerate(tiles):
        if rows:
            pen.text((0, top + row * (y + gap) + y // 2 - 7), rows[row], fill=MUTED, font=font)
        for column, tile in enumerate(line):
            place = (left + column * (x + gap), top + row * (y + gap))
            sheet.paste(Image.fromarray(as_rows(tile)), place)
    return np.asarray(sheet).transpose(2, 0, 1)


def maps_html(maps: Maps) -> str:
    """The first image's attention by layer and head, for a notebook."""
    if maps.layout is None or maps.queries is not None or not len(maps):
        return f"<pre>{escape(repr(maps))}</pre>"
    inner = {name: weights for name, weights in maps.items() if not name.startswith("pool")}
    if any(weights.shape[2] < weights.shape[3] for weights in inner.values()) or not inner:
        return f"<pre>{escape(repr(maps))}</pre>"
    return attention_picture(inner, maps.layout)._repr_html_()


def token_map_html(token_map: TokenMap) -> str:
    """Every image's map, for a notebook."""
    tiles = [
        Picture(f"{token_map.method} {number}", enlarged(diverging(by_largest(one))))
        for number, one in enumerate(token_map.values.cpu().numpy())
    ]
    return "".join(tile._repr_html_() for tile in tiles)
