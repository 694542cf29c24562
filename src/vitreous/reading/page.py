"""An image, made ready for a reader: its lines as strips, and what there is to say of it."""

import io
from dataclasses import dataclass

from PIL import Image

from vitreous.frontends.decode import Source, decode
from vitreous.frontends.lines import Strip, find_lines
from vitreous.frontends.page import find_written

__all__ = ["MOST_LINES", "Page", "prepare"]

MOST_LINES = 300
"""More lines than this are no page of numbers, and the rest is left out with a warning."""


@dataclass(frozen=True)
class Page:
    """An image's lines, in reading order, as a model reads them."""

    size: tuple[int, int]
    """Width and height of the upright image in pixels."""
    strips: tuple[Strip, ...]
    warnings: tuple[str, ...] = ()

    def pictures(self) -> list[bytes]:
        """What the model sees of each line, as PNG files: light ink on dark, 32 pixels high."""
        return [png(strip) for strip in self.strips]


def prepare(source: Source) -> Page:
    """Find the lines of an image file, its bytes or a Pillow image. Raises ImageError."""
    written = find_written(decode(source))
    strips = find_lines(written)
    warnings = ()
    if len(strips) > MOST_LINES:
        warnings = (f"{len(strips)} lines were found; only the first {MOST_LINES} are read",)
    return Page(written.size, tuple(strips[:MOST_LINES]), warnings)


def png(strip: Strip) -> bytes:
    """A strip as a PNG file."""
    file = io.BytesIO()
    Image.fromarray(strip.levels).save(file, "PNG")
    return file.getvalue()
