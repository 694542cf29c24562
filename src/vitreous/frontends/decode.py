"""From a file, or its bytes, to upright pixels."""

import io
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from vitreous.errors import ImageError

__all__ = ["FORMATS", "MAX_PIXELS", "Decoded", "Source", "decode"]

Source: TypeAlias = str | Path | bytes | Image.Image
Decoded: TypeAlias = NDArray[np.uint8]
"""Grey (y, x) or colour (y, x, 3), the top row first."""

MAX_PIXELS = 50_000_000
"""More than any telephone's usual photograph, 200 MB as four channels."""

Opener: TypeAlias = Callable[[io.BytesIO], Image.Image]

FORMATS: dict[str, tuple[tuple[bytes, ...], Opener]] = {
    # name: how its files begin, and what reads their header
    "PNG": ((b"\x89PNG\r\n\x1a\n",), PngImagePlugin.PngImageFile),
    "JPEG": ((b"\xff\xd8\xff",), JpegImagePlugin.jpeg_factory),
    "WebP": ((b"RIFF",), WebPImagePlugin.WebPImageFile),
    "GIF": ((b"GIF87a", b"GIF89a"), GifImagePlugin.GifImageFile),
    "BMP": ((b"BM",), BmpImagePlugin.BmpImageFile),
    "TIFF": ((b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"), TiffImagePlugin.TiffImageFile),
    "PPM": (tuple(b"P%d" % kind for kind in range(1, 7)), PpmImagePlugin.PpmImageFile),
}
"""Every format that is read; the content decides, never the name of the file."""

UPRIGHT = {
    # EXIF orientation: what undoes it
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
ORIENTATION = 0x0112


def decode(source: Source, *, max_pixels: int = MAX_PIXELS) -> Decoded:
    """An image file, its bytes or a Pillow image as upright pixels.

    Returns uint8, grey (y, x) or colour (y, x, 3). Turned as its EXIF orientation says; what is
    transparent shows white; of an animation the first frame; 16 bits become 8 by `>> 8`; floats
    are taken as 0..1, or as 0..255 if any is above 1. Raises ImageError, which names the file as
    it was given, for what is missing, no image, damaged, or of more than `max_pixels` pixels:
    these are read from the header, before anything is decoded.
    """
    name = name_of(source)
    image = source if isinstance(source, Image.Image) else open_image(read(source, name), name)
    check_size(image.size, name, max_pixels)
    try:
        image.load()
        return to_pixels(upright(image))
    except ImageError as error:
        raise ImageError(f"{name} {error}") from error
    # A decoder meets every kind of damage with another exception; none may reach the caller raw.
    except Exception as error:
        raise ImageError(f"{name} is damaged or cut short: {error}") from error


def name_of(source: Source) -> str:
    """What a source is called in a sentence."""
    if isinstance(source, Image.Image):
        return "the image"
    return "the image data" if isinstance(source, bytes) else str(source)


def read(source: str | Path | bytes, name: str) -> bytes:
    """The bytes of a file that has some."""
    if not isinstance(source, bytes):
        source = read_file(Path(source), name)
    if not source:
        raise ImageError(f"{name} is empty (0 bytes)")
    return source


def read_file(path: Path, name: str) -> bytes:
    """The bytes of a file; a sentence where there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ImageError(f"{name} does not exist") from error
    except IsADirectoryError as error:
        raise ImageError(f"{name} is a folder; give the images in it") from error
    except (OSError, ValueError) as error:
        raise ImageError(f"{name} cannot be read: {error}") from error


def open_image(data: bytes, name: str) -> Image.Image:
    """Read the header; the pixels stay undecoded."""
    opener = opener_for(data)
    if opener is None:
        raise ImageError(f"{name} is no image that can be read ({', '.join(FORMATS)})")
    try:
        with without_warnings():
            return opener(io.BytesIO(data))
    except Exception as error:
        raise ImageError(f"{name} is damaged or cut short: {error}") from error


def opener_for(data: bytes) -> Opener | None:
    """What reads a file that begins like this one."""
    if data[:4] == b"RIFF" and data[8:12] != b"WEBP":
        return None
    return next((opener for starts, opener in FORMATS.values() if data.startswith(starts)), None)


def check_size(size: tuple[int, int], name: str, max_pixels: int) -> None:
    """Raise ImageError for no pixels, or too many."""
    x, y = size
    if x < 1 or y < 1:
        raise ImageError(f"{name} has no pixels ({x} × {y})")
    if x * y > max_pixels:
        raise ImageError(f"{name} has {x} × {y} = {x * y} pixels; at most {max_pixels} are read")


def upright(image: Image.Image) -> Image.Image:
    """Undo the EXIF orientation; EXIF that cannot be parsed turns nothing."""
    try:
        with without_warnings():
            orientation = image.getexif().get(ORIENTATION)
    except Exception:
        return image
    return image.transpose(UPRIGHT[orientation]) if orientation in UPRIGHT else image


_FILTERS = threading.Lock()


@contextmanager
def without_warnings() -> Iterator[None]:
    """Pillow warns of odd metadata, which is no reason to fail where warnings are errors.

    Python's warning filters belong to the whole process, so one thread changes them at a time;
    pixels are decoded outside.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def to_pixels(image: Image.Image) -> Decoded:
    """The pixels of an image of any mode."""
    if image.mode.startswith("I"):
        return from_16_bits(np.asarray(image), image.info.get("transparency"))
    if image.mode == "F":
        return from_floats(np.asarray(image))
    grey = image.mode in ("1", "L", "LA", "La")
    if image.has_transparency_data or image.mode in ("La", "RGBa"):
        image = on_white(image)
    return np.array(image.convert("L" if grey else "RGB"))


def from_16_bits(values: NDArray[np.integer], transparent: int | None = None) -> Decoded:
    """16-bit grey: the upper byte. Raises ImageError for numbers that need more bits."""
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > 65535:
        raise ImageError(f"holds whole numbers from {low} to {high}; 0 to 65535 can be read")
    pixels = (values >> 8).astype(np.uint8)
    return pixels if transparent is None else np.where(values == transparent, 255, pixels)


def from_floats(values: NDArray[np.floating]) -> Decoded:
    """Float grey of 0..1, or of 0..255. Raises ImageError for anything else."""
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= 255):
        raise ImageError(f"holds floats from {low} to {high}; 0 to 1 or 0 to 255 can be read")
    return np.rint(values * 255 if high <= 1 else values).astype(np.uint8)


def on_white(image: Image.Image) -> Image.Image:
    """Lay a transparent image on white paper."""
    rgba = image.convert("LA" if image.mode == "La" else "RGBA").convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), rgba)
