"""One function turns every image file into the pixels that a person sees, or says why it cannot."""

import contextlib
import io
import resource
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vitreous.errors import ImageError
from vitreous.frontends.decode import FORMATS, decode

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (6, 9), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (6, 9, 3), dtype=np.uint8)
ORIENTATION = 0x0112

STORED = {
    # EXIF orientation: how the pixels of an upright image lie in such a file (EXIF 2.3, 4.6.4 A)
    1: lambda image: image,
    2: lambda image: image[:, ::-1],
    3: lambda image: image[::-1, ::-1],
    4: lambda image: image[::-1],
    5: lambda image: image.swapaxes(0, 1),
    6: lambda image: np.rot90(image, 1),
    7: lambda image: image[::-1, ::-1].swapaxes(0, 1),
    8: lambda image: np.rot90(image, -1),
}


def encoded(image: np.ndarray | Image.Image, kind: str = "PNG", **options) -> bytes:
    """The bytes of an image file."""
    if isinstance(image, np.ndarray):
        image = Image.fromarray(np.ascontiguousarray(image))
    file = io.BytesIO()
    image.save(file, format=kind, **options)
    return file.getvalue()


def turned(orientation: int) -> Image.Exif:
    """EXIF that holds nothing but an orientation."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return exif


def png_of_header(x: int, y: int, bits: int = 8, kind: int = 2) -> bytes:
    """A PNG whose header promises x × y pixels, and that holds next to none."""

    def chunk(name: bytes, content: bytes) -> bytes:
        tail = struct.pack(">I", zlib.crc32(name + content))
        return struct.pack(">I", len(content)) + name + content + tail

    head = struct.pack(">IIBBBBB", x, y, bits, kind, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "BMP", "TIFF", "PPM"])
def test_a_lossless_file_gives_back_the_pixels_it_was_made_of(kind: str):
    options = {"lossless": True} if kind == "WEBP" else {}
    np.testing.assert_array_equal(decode(encoded(COLOUR, kind, **options)), COLOUR)
    if kind != "WEBP":  # which knows no grey
        np.testing.assert_array_equal(decode(encoded(GREY, kind)), GREY)


def test_a_jpeg_is_near_its_pixels():
    smooth = np.linspace(0, 255, 64 * 64).reshape(64, 64).astype(np.uint8)
    assert np.abs(decode(encoded(smooth, "JPEG", quality=95)) - np.int16(smooth)).max() <= 6


def test_path_text_bytes_and_pillow_image_are_one_source(tmp_path: Path):
    file = tmp_path / "digit.png"
    file.write_bytes(encoded(COLOUR))
    for source in (file, str(file), file.read_bytes(), Image.open(file), Image.fromarray(COLOUR)):
        np.testing.assert_array_equal(decode(source), COLOUR)


def test_an_image_handed_in_stays_as_it_was():
    image = Image.fromarray(GREY)
    image.getexif()[ORIENTATION] = 6
    decode(image)
    np.testing.assert_array_equal(np.asarray(image), GREY)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_content_decides_and_not_the_name(tmp_path: Path, kind: str):
    file = tmp_path / "really_something_else.png"
    file.write_bytes(encoded(GREY, kind))
    np.testing.assert_array_equal(decode(file), decode(file.read_bytes()))
    assert decode(file).shape[:2] == GREY.shape


def test_transparent_paper_is_white():
    """PHO-02."""
    levels = np.zeros((28, 56, 4), np.uint8)
    levels[4:24, 20:24, 3] = 255
    pixels = decode(encoded(levels))
    assert set(pixels.ravel()) == {0, 255}
    assert (pixels == 0).all(axis=2).sum() == 80
    opaque = np.where(levels[..., 3:] > 0, levels[..., :3], 255).astype(np.uint8)
    np.testing.assert_array_equal(pixels, decode(encoded(opaque)))


@given(level=st.integers(0, 255), alpha=st.integers(0, 255), mode=st.sampled_from(["LA", "RGBA"]))
@settings(max_examples=40, deadline=None)
def test_half_transparent_ink_is_mixed_with_white(level: int, alpha: int, mode: str):
    channels = len(mode) - 1
    image = Image.new(mode, (1, 1), (level,) * channels + (alpha,))
    wanted = (level * alpha + 255 * (255 - alpha)) / 255
    assert np.abs(decode(encoded(image)) - wanted).max() <= 1


def test_sixteen_bits_become_their_upper_eight():
    """PHO-04: convert("L") would clip all but the first two to white."""
    row = np.array([[0, 128, 255, 256, 4660, 32768, 65535]], np.uint16)
    wanted = [[0, 0, 0, 1, 18, 128, 255]]
    for source in (
        encoded(row),
        encoded(row, "TIFF"),
        Image.fromarray(row),
        Image.fromarray(row.astype(np.int32)),
        encoded(row.astype(np.int32), "TIFF"),
        big_endian_tiff(row),
    ):
        assert decode(source).tolist() == wanted


def big_endian_tiff(levels: np.ndarray) -> bytes:
    """16-bit grey, as some microscopes and Macs write it."""
    y, x = levels.shape
    tags = [(256, x), (257, y), (258, 16), (259, 1), (262, 1), (273, 122), (277, 1), (278, y)]
    tags += [(279, 2 * levels.size)]
    entries = b"".join(struct.pack(">HHII", tag, 4, 1, value) for tag, value in tags)
    head = b"MM\0*" + struct.pack(">IH", 8, len(tags)) + entries + bytes(4)
    return head + levels.astype(">u2").tobytes()


def test_the_one_transparent_level_of_a_sixteen_bit_file_is_white():
    row = np.array([[0, 513, 65535]], np.uint16)
    assert decode(encoded(row, transparency=513)).tolist() == [[0, 255, 255]]


@pytest.mark.parametrize("low", [-1, 70000])
def test_numbers_beyond_sixteen_bits_are_refused_with_their_range(low: int):
    image = Image.fromarray(np.array([[low, 5]], np.int32))
    with pytest.raises(ImageError, match=rf"the image holds whole numbers from .*{low}"):
        decode(image)


def test_floats_are_shares_of_white_or_levels():
    shares = np.array([[0, 0.2, 1]], np.float32)
    assert decode(Image.fromarray(shares)).tolist() == [[0, 51, 255]]
    assert decode(Image.fromarray(shares * 255)).tolist() == [[0, 51, 255]]


@pytest.mark.parametrize("level", [-0.1, 256.0, float("nan")])
def test_floats_that_are_no_levels_are_refused(level: float):
    with pytest.raises(ImageError, match="0 to 1 or 0 to 255"):
        decode(Image.fromarray(np.array([[level, 0.5]], np.float32)))


def test_a_phone_held_upright_makes_an_upright_picture():
    """PHO-05."""
    levels = np.full((20, 40), 255, np.uint8)
    levels[:5, :10] = 0
    pixels = decode(encoded(levels, exif=turned(6)))
    assert pixels.shape == (40, 20)
    rows, columns = np.nonzero(pixels == 0)
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (0, 9, 15, 19)


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF", "JPEG"])
def test_every_orientation_is_undone(kind: str, orientation: int):
    """PHO-05."""
    blocks = COLOUR.repeat(16, axis=0).repeat(16, axis=1)  # JPEG keeps blocks, and loses pixels
    options = {"lossless": True} if kind == "WEBP" else {}
    options = {"quality": 100, "subsampling": 0} if kind == "JPEG" else options
    stored = STORED[orientation](blocks)
    pixels = decode(encoded(stored, kind, exif=turned(orientation), **options))
    assert np.abs(pixels - np.int16(blocks)).max() <= (6 if kind == "JPEG" else 0)


def test_an_orientation_that_does_not_exist_turns_nothing():
    np.testing.assert_array_equal(decode(encoded(GREY, exif=turned(9))), GREY)


def test_broken_exif_turns_nothing():
    np.testing.assert_array_equal(decode(encoded(GREY, exif=b"Exif\0\0MM\0*\xff\xff")), GREY)


def test_a_palette_holds_colours_and_not_levels():
    """PHO-06."""
    image = Image.fromarray(np.array([[0, 1, 0, 0], [0, 0, 0, 0]], np.uint8)).convert("P")
    image.putpalette([255, 255, 255, 0, 0, 0])
    image.putdata([0, 1, 0, 0, 0, 0, 0, 0])
    for options in ({}, {"transparency": 0}, {"transparency": b"\0\xff"}):
        pixels = decode(encoded(image, **options))
        assert (pixels == pixels[..., :1]).all()
        assert pixels[..., 0].tolist() == [[255, 0, 255, 255], [255, 255, 255, 255]]


def test_grey_with_alpha_and_one_bit_give_the_answer_of_rgb():
    """PHO-06."""
    levels = np.where(GREY > 127, 255, 0).astype(np.uint8)
    rgb = decode(encoded(np.stack([levels] * 3, axis=-1)))
    alpha = Image.fromarray(levels).convert("LA")
    one_bit = Image.fromarray(levels).convert("1")
    for image in (alpha, one_bit):
        np.testing.assert_array_equal(decode(encoded(image)), rgb[..., 0])


def test_the_transparent_level_of_a_grey_file_is_white():
    assert decode(encoded(np.array([[0, 7, 9]], np.uint8), transparency=7)).tolist() == [
        [0, 255, 9]
    ]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_of_several_frames_the_first_is_read(kind: str):
    """PHO-06."""
    options = {"lossless": True} if kind == "WEBP" else {}
    first, second = (Image.new("RGB", (8, 8), colour) for colour in ("black", "white"))
    data = encoded(first, kind, save_all=True, append_images=[second], **options)
    assert Image.open(io.BytesIO(data)).n_frames == 2
    assert not decode(data).any()


def test_cmyk_is_what_the_printer_would_show():
    levels = np.array([[[0, 0, 0, 0], [0, 0, 0, 255], [0, 255, 255, 0]]], np.uint8)
    image = Image.fromarray(levels, "CMYK")
    wanted = [[[255, 255, 255], [0, 0, 0], [255, 0, 0]]]
    assert decode(image).tolist() == wanted
    assert decode(encoded(image, "TIFF")).tolist() == wanted
    white = decode(encoded(Image.new("CMYK", (16, 16)), "JPEG"))
    assert white.min() >= 253


def test_a_missing_file_is_named_as_it_was_given():
    with pytest.raises(ImageError, match=r"^some/./where\.png does not exist$"):
        decode("some/./where.png")


def test_a_folder_is_no_image(tmp_path: Path):
    with pytest.raises(ImageError, match="is a folder; give the images in it"):
        decode(tmp_path)


@pytest.mark.parametrize("name", ["a\0b.png", "x" * 5000])
def test_a_name_that_no_file_can_have_is_refused(name: str):
    with pytest.raises(ImageError, match="cannot be read"):
        decode(name)


def test_an_empty_file_is_called_empty(tmp_path: Path):
    file = tmp_path / "empty.png"
    file.touch()
    with pytest.raises(ImageError, match=r"empty\.png is empty \(0 bytes\)"):
        decode(file)
    with pytest.raises(ImageError, match="the image data is empty"):
        decode(b"")


@pytest.mark.parametrize(
    "content", [b"a text, by its name a picture", b"%PDF-1.4", b"RIFF\0\0\0\0WAVE"]
)
def test_what_is_no_image_is_answered_with_what_can_be_read(tmp_path: Path, content: bytes):
    file = tmp_path / "text.png"
    file.write_bytes(content)
    with pytest.raises(ImageError, match=r"text\.png is no image that can be read \(PNG, JPEG"):
        decode(file)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"])
@pytest.mark.parametrize("share", [0.15, 0.5, 0.8])
def test_a_file_cut_short_is_refused_by_name(tmp_path: Path, kind: str, share: float):
    data = encoded(COLOUR.repeat(8, axis=0).repeat(8, axis=1), kind)
    file = tmp_path / "cut"
    file.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ImageError, match="cut is damaged or cut short"):
        decode(file)


def test_a_wrong_checksum_is_damage():
    data = bytearray(encoded(COLOUR))
    data[data.index(b"IDAT") + 6] ^= 1
    with pytest.raises(ImageError, match="the image data is damaged"):
        decode(bytes(data))


def test_a_huge_picture_is_refused_by_its_header():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for data in (png_of_header(60_000, 60_000), encoded(np.zeros((7100, 7100), np.uint8))):
        with pytest.raises(ImageError, match=r"pixels; at most 50000000 are read"):
            decode(data)
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert kilobytes < 120_000  # the second alone would be 50 MB, which making it has cost already


def test_the_limit_itself_is_allowed():
    assert decode(encoded(GREY), max_pixels=54).shape == (6, 9)
    with pytest.raises(ImageError, match="9 × 6 = 54 pixels; at most 53"):
        decode(encoded(GREY), max_pixels=53)


@pytest.mark.parametrize("size", [(0, 4), (4, 0)])
def test_an_image_without_pixels_is_refused(size: tuple[int, int]):
    with pytest.raises(ImageError, match="the image has no pixels"):
        decode(Image.new("L", size))
    with pytest.raises(ImageError, match="the image data "):
        decode(png_of_header(*size))
    with pytest.raises(ImageError, match="the image data "):
        decode(b"P5\n%d %d\n255\n" % size)


@pytest.mark.parametrize("action", ["error", "ignore", "always"])
def test_no_filter_of_warnings_changes_what_is_said_of_a_huge_picture(action: str):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter(action)
        before = list(warnings.filters)
        with pytest.raises(ImageError, match="400000000 pixels; at most 50000000"):
            decode(png_of_header(20_000, 20_000))
        assert warnings.filters == before
    assert not seen


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_a_file_cut_anywhere_is_read_or_refused_and_fails_in_no_other_way(kind: str):
    data = encoded(np.repeat(np.repeat(COLOUR, 3, axis=0), 3, axis=1), kind)
    for end in range(1, len(data), max(1, len(data) // 40)):
        with contextlib.suppress(ImageError):
            assert decode(data[:end]).shape == (18, 27, 3)
