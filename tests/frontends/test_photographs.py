"""One digit on many papers, with many pens, in many lights, gives one answer."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter

from vitreous.data.sources import load_source
from vitreous.errors import ImageError
from vitreous.frontends.decode import decode
from vitreous.frontends.digit import prepare_digit

Y, X = np.mgrid[0:240, 0:320]


@pytest.fixture(scope="module")
def mnist():
    return load_source("mnist")


@pytest.fixture(scope="module")
def digits(mnist) -> np.ndarray:
    return mnist.test_images[:6, 0]


def strokes(digit: np.ndarray, size: int = 150) -> np.ndarray:
    """An MNIST digit written large: ink 0 to 1."""
    large = Image.fromarray(digit).resize((size, size), Image.Resampling.BICUBIC)
    soft = np.asarray(large.filter(ImageFilter.GaussianBlur(size / 90)), float)
    return np.clip((soft / 255 - 0.3) / 0.4, 0, 1)


def sheet(ink: np.ndarray, *, top: int = 40, left: int = 70, shape=(240, 320)) -> np.ndarray:
    """The share of light that a page gives back, three quarters of it taken by ink."""
    page = np.ones(shape)
    page[top : top + ink.shape[0], left : left + ink.shape[1]] -= 0.75 * ink
    return page


def photo(light: np.ndarray) -> np.ndarray:
    """Light as a camera sees and keeps it."""
    grain = np.random.default_rng(0).normal(0, 3, light.shape[:2])
    levels = np.rint(light + (grain[..., None] if light.ndim == 3 else grain))
    file = io.BytesIO()
    Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=80)
    return decode(file.getvalue())


def png(levels: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(levels)).save(file, "PNG", **options)
    return file.getvalue()


def likeness(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of two images; rounding of the centre may move one by a pixel."""
    moved = [np.roll(one, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    return float(max(np.corrcoef(image.ravel(), other.ravel())[0, 1] for image in moved))


def dusty(page: np.ndarray) -> np.ndarray:
    light = 215 * page
    luck = np.random.default_rng(3)
    for y, x in zip(luck.integers(0, 237, 20), luck.integers(0, 317, 20), strict=True):
        light[y : y + 2, x : x + 2] = 70
    return light


SCENES = {
    "light from a corner": lambda page: page * (230 - 130 * (X / 320 + Y / 240) / 2),
    "vignette": lambda page: page * 225 * (1 - (X / 320 - 0.5) ** 2 - (Y / 240 - 0.5) ** 2),
    "soft shadow": lambda page: page * (215 - 95 / (1 + np.exp(-(X - 160 + Y / 3) / 10))),
    "shadow of a ruler": lambda page: page * np.where(X + Y / 2 > 230, 120, 215),
    "shadow of a door": lambda page: page * np.where(X > 150, 130, 215),
    "shadow of a head": lambda page: page * np.where(np.hypot(X - 40, Y - 220) < 120, 110, 215),
    "ruled": lambda page: np.where(Y % 34 < 2, np.minimum(215 * page, 165), 215 * page),
    "squared": lambda page: np.where(
        (Y % 22 < 1) | (X % 22 < 1), np.minimum(215 * page, 180), 215 * page
    ),
    "margin": lambda page: np.where((X > 30) & (X < 33), np.minimum(215 * page, 130), 215 * page),
    "pencil": lambda page: 210 * (1 - 0.35 * (1 - page)),
    "dark desk": lambda page: np.where(X < 18, 70, 215 * page),
    "desk on all sides": lambda page: np.where(
        np.maximum(abs(X - 160) / 138, abs(Y - 120) / 104) < 1, 215 * page, 60
    ),
    "white desk": lambda page: np.where(X < 25, 250, 170 * page),
    "blackboard": lambda page: 255 - (205 - 30 * X / 320) * page,
    "dark room": lambda page: 60 * page,
    "dust": dusty,
    "lamp": lambda page: np.array([1.0, 0.85, 0.55]) * 225 * page[..., None],
    "blue pen": lambda page: 255 - (1 - page[..., None]) * np.array([220, 180, 90]),
    "red pen": lambda page: 240 - (1 - page[..., None]) * np.array([40, 210, 200]),
    "cell of a form": lambda page: 215 * page[36:194, 66:224],
}


@pytest.mark.parametrize("scene", SCENES)
def test_paper_pen_and_light_hardly_change_the_answer(digits, scene: str):
    pages = [photo(SCENES[scene](sheet(strokes(digit)))) for digit in digits]
    got = [likeness(prepare_digit(p), digit) for p, digit in zip(pages, digits, strict=True)]
    assert min(got) > 0.8, np.sort(got).round(2)
    assert np.mean(got) > 0.94


@pytest.mark.parametrize("size", [40, 60, 100, 220])
def test_the_size_of_a_digit_does_not_matter(digits, size: int):
    for digit in digits[:4]:
        page = photo(215 * sheet(strokes(digit, size), top=8, left=30))
        assert likeness(prepare_digit(page), digit) > 0.85


def test_a_small_digit_in_a_large_photograph_is_found(digits):
    page = sheet(strokes(digits[0]), top=900, left=1500, shape=(1500, 2000))
    assert likeness(prepare_digit(photo(205 * page)), digits[0]) > 0.9


def test_a_digit_that_was_cut_out_without_a_margin_is_read(digits):
    got = []
    for digit in digits:
        page = 215 * sheet(strokes(digit))
        rows, columns = (np.flatnonzero(page.min(axis=axis) < 120) for axis in (1, 0))
        cut = page[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        got.append(likeness(prepare_digit(photo(cut)), digit))
    assert np.mean(np.greater(got, 0.8)) > 0.8, np.sort(got).round(2)


@pytest.mark.parametrize("width", [1, 3, 9])
def test_a_thin_pen_and_a_thick_marker_both_give_full_ink(digits, width: int):
    for digit in digits[:4]:
        thin = Image.fromarray(np.uint8(255 * strokes(digit)))
        ink = np.asarray(thin.filter(ImageFilter.MaxFilter(width))) / 255
        prepared = prepare_digit(photo(220 * sheet(ink)))
        assert np.quantile(prepared[prepared > 0], 0.9) > 240
        assert likeness(prepared, digit) > 0.75


def test_the_border_is_the_paper_of_a_zero_that_covers_half_the_canvas():
    """PHO-01: by its mean brightness, this picture would be light on dark."""
    canvas = Image.new("L", (200, 200), 235)
    draw = ImageDraw.Draw(canvas)
    draw.ellipse((12, 4, 188, 196), fill=20)
    draw.ellipse((84, 70, 116, 130), fill=235)
    dark_on_light = np.asarray(canvas)
    assert (dark_on_light < 128).mean() > 0.5
    for image in (dark_on_light, 255 - dark_on_light):
        prepared = prepare_digit(image)
        assert prepared[14, 14] < 50
        assert prepared[14, 7:11].min() > 200


def test_a_wide_bar_keeps_its_proportions():
    """PHO-09: stretching would make it a block of 20×20."""
    paper = np.full((300, 300), 250, np.uint8)
    paper[100:150, 60:260] = 10
    prepared = prepare_digit(paper)
    assert (prepared.max(axis=0) > 128).sum() == 20
    assert (prepared.max(axis=1) > 128).sum() == 5


@pytest.mark.parametrize("name", [6, 7, 9])
def test_all_eight_orientations_of_a_photograph_give_one_answer(mnist, name: int):
    """PHO-05: turned by 180 degrees, 6 and 9 are each other."""
    digit = mnist.test_images[np.flatnonzero(mnist.test_labels == name)[0], 0]
    upright = photo(215 * sheet(strokes(digit)))
    wanted = prepare_digit(upright)
    turned = upright[::-1, ::-1]
    stored = [upright, upright[:, ::-1], turned, upright[::-1]]
    stored += [upright.T, np.rot90(upright), turned.T, np.rot90(upright, -1)]
    for orientation, levels in enumerate(stored, 1):
        exif = Image.Exif()
        exif[0x0112] = orientation
        same = decode(png(levels, exif=exif))
        np.testing.assert_array_equal(same, upright)
    np.testing.assert_array_equal(prepare_digit(same), wanted)


@pytest.mark.parametrize("mode", ["LA", "RGBA"])
def test_ink_on_nothing_is_ink_on_paper(digits, mode: str):
    """PHO-02 and PHO-06: without their alpha, these drawings are black all over."""
    for digit in digits:
        ink = Image.fromarray(digit).resize((84, 84))
        drawing = Image.new(mode, ink.size)
        drawing.putalpha(ink)
        on_paper = prepare_digit(255 - np.asarray(ink))
        np.testing.assert_array_equal(prepare_digit(decode(png(np.asarray(drawing)))), on_paper)


def test_a_digit_of_sixteen_bits_is_that_of_eight(digits):
    """PHO-04."""
    for digit in digits:
        ink = np.asarray(Image.fromarray(digit).resize((84, 84)))
        deep = decode(png(ink.astype(np.uint16) * 257))
        np.testing.assert_array_equal(prepare_digit(deep), prepare_digit(ink))


def test_a_photograph_stays_as_it_was_and_gives_the_same_again(digits):
    page = photo(215 * sheet(strokes(digits[0])))
    copy = page.copy()
    first = prepare_digit(page)
    prepare_digit(photo(215 * sheet(strokes(digits[1]))))
    np.testing.assert_array_equal(page, copy)
    np.testing.assert_array_equal(prepare_digit(page), first)


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (2, 3)])
def test_a_strip_without_room_for_a_digit_holds_none(shape: tuple[int, int]):
    """PHO-10."""
    with pytest.raises(ImageError, match="no digit found"):
        prepare_digit(np.full(shape, 200, np.uint8))


def features(images: np.ndarray) -> np.ndarray:
    """Images made half as large, of mean 0 and length 1."""
    rows = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4), dtype=np.float32).reshape(-1, 196)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def known(mnist) -> np.ndarray:
    return features(mnist.train_images[:20_000])


@pytest.mark.parametrize("kind", ["photo", "photo_28x28", "digital_ink", "scan"])
def test_peoples_own_digits_are_most_like_mnists_of_their_class(
    shared_data: Path, mnist, known, kind: str
):
    """Nothing is learned from them: the answer is that of the most alike of 20,000 images."""
    with (shared_data / "own_digits" / "labels.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == kind]
    rows = rows[:: 1 + (len(rows) > 50)]  # of the hundred scans every second: all ten digits
    files = [shared_data / "own_digits" / row["file"] for row in rows]
    images = np.stack([prepare_digit(decode(file)) for file in files])
    answers = mnist.train_labels[(features(images) @ known.T).argmax(axis=1)]
    right = answers == [int(row["label"]) for row in rows]
    assert right.mean() >= 0.8, [rows[index]["file"] for index in np.flatnonzero(~right)]
