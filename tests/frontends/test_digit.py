"""A digit on any paper, in any light, is made to look as MNIST would hold it."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vitreous.data.sources import load_source
from vitreous.errors import ImageError
from vitreous.frontends.decode import decode
from vitreous.frontends.digit import prepare_digit


@pytest.fixture(scope="module")
def digits():
    """MNIST's first hundred test images."""
    return load_source("mnist").test_images[:100, 0]


@pytest.fixture(scope="module")
def large(digits):
    """A 7 (MNIST's first test image) drawn large: ink 0 to 1, (200, 200)."""
    image = Image.fromarray(digits[0]).resize((200, 200), Image.Resampling.BICUBIC)
    return np.clip((np.asarray(image, float) - 80) / 90, 0, 1)


def on_page(ink, top=60, left=150, page=(300, 400)):
    whole = np.zeros(page)
    whole[top : top + ink.shape[0], left : left + ink.shape[1]] = ink
    return whole


def photo(light, noise=3.0):
    """What a camera makes of light 0 to 255."""
    noisy = light + np.random.default_rng(0).normal(0, noise, light.shape)
    buffer = io.BytesIO()
    Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=75)
    return decode(buffer.getvalue())


def likeness(a, b):
    """Correlation of two images, one pixel's shift allowed: 1 for the same, 0 for unrelated ones.

    Rounding of the centre of mass can move a digit by a pixel.
    """
    moved = [np.roll(a, (y, x), (0, 1)) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    return max(np.corrcoef(one.ravel(), b.ravel())[0, 1] for one in moved)


def test_mnist_comes_out_as_it_is(digits):
    for digit in digits:
        assert np.array_equal(prepare_digit(digit), digit)


@pytest.mark.slow
def test_all_of_mnist_comes_out_as_it_is():
    data = load_source("mnist")
    for digit in np.concatenate([data.train_images, data.test_images])[:, 0]:
        assert np.array_equal(prepare_digit(digit), digit)


def test_the_negative_of_mnist_comes_out_as_mnist(digits):  # PHO-01
    for digit in digits:
        assert np.array_equal(prepare_digit(255 - digit), digit)


def test_grey_ink_on_grey_paper_comes_out_as_mnist(digits):  # PHO-01
    for digit in digits:
        faded = np.rint(180 - digit * (120 / 255)).astype(np.uint8)
        wanted = np.rint(digit * (255 / digit.max()))
        assert np.abs(prepare_digit(faded) - wanted).max() <= 2


def test_polarity_follows_the_paper_even_where_ink_covers_more(digits):  # PHO-01
    bold = np.zeros((60, 60), np.uint8)
    bold[4:56, 4:56] = 255
    bold[16:44, 25:35] = 0
    assert (bold > 0).mean() > 0.5
    light, dark = prepare_digit(bold), prepare_digit(255 - bold)
    assert np.array_equal(light, dark)
    assert light[5, 14] > 200
    assert light[14, 14] < 50


def test_a_bar_is_fitted_and_centred_with_its_shape_kept():  # PHO-09
    for top, left in [(2, 3), (50, 190), (30, 100)]:
        canvas = np.full((100, 200), 255, np.uint8)
        canvas[top : top + 40, left : left + 4] = 0
        wanted = np.zeros((28, 28), np.uint8)
        wanted[4:24, 13:15] = 255
        assert np.array_equal(prepare_digit(canvas), wanted)


@pytest.mark.parametrize("level", [0, 1, 30, 128, 254, 255])
@pytest.mark.parametrize("size", [(28, 28), (90, 120)])
def test_one_level_of_grey_holds_no_digit(level, size):  # PHO-10
    with pytest.raises(ImageError, match="no digit found"):
        prepare_digit(np.full(size, level, np.uint8))


@pytest.mark.parametrize("paper", [0, 3, 40, 128, 252, 255])
def test_noise_is_no_digit(paper):  # PHO-10
    for seed in range(10):
        noise = np.random.default_rng(seed).integers(-3, 4, (28, 28))
        blank = np.clip(paper + noise, 0, 255).astype(np.uint8)
        with pytest.raises(ImageError, match="no digit found"):
            prepare_digit(blank)


def test_an_unevenly_lit_blank_page_is_no_digit():
    slope = np.linspace(230, 120, 400)[None] * np.ones((300, 1))
    for noise in (0, 3, 10):
        with pytest.raises(ImageError, match="no digit found"):
            prepare_digit(photo(slope, noise))


def test_dust_is_no_digit():
    page = np.full((300, 300), 240, np.uint8)
    page[100:103, 50:53] = page[200:202, 70:72] = 0
    with pytest.raises(ImageError, match="only specks"):
        prepare_digit(page)


def test_where_on_the_page_and_how_large_does_not_matter(digits, large):
    for top, left in [(0, 0), (100, 200), (40, 90)]:
        page = photo(220 - 180 * on_page(large, top, left))
        assert likeness(prepare_digit(page), digits[0]) > 0.9
    small = on_page(large[::3, ::3])
    assert likeness(prepare_digit(photo(220 - 180 * small)), digits[0]) > 0.9


def test_light_that_changes_over_the_page_changes_nothing_much(digits, large):
    share = 1 - 0.8 * on_page(large)
    y, x = np.mgrid[0:300, 0:400]
    lights = {
        "slope": 230 - 0.35 * x,
        "corner": 230 - 0.2 * x - 0.25 * y,
        "shadow": 225 - 100 / (1 + np.exp((330 - x - 0.5 * y) / 6)),
        "vignette": 230 - 100 * ((x - 200) ** 2 + (y - 150) ** 2) / 62500,
    }
    for name, light in lights.items():
        assert likeness(prepare_digit(photo(light * share)), digits[0]) > 0.95, name


def test_chalk_on_a_board_is_read_like_ink_on_paper(digits, large):
    y, x = np.mgrid[0:300, 0:400]
    board = 40 + 0.08 * x + 0.05 * y
    assert likeness(prepare_digit(photo(board + 130 * on_page(large))), digits[0]) > 0.95


def test_ruled_lines_specks_and_the_desk_are_left_out(digits, large):
    page = 220 * (1 - 0.8 * on_page(large))
    y, x = np.mgrid[0:300, 0:400]
    pages = {
        "ruled": np.where(y % 40 < 2, np.minimum(page, 175), page),
        "desk": np.where(x < 30, 70.0, page),
        "specks": np.where((x % 97 < 3) & (y % 83 < 3), 40.0, page),
        "faint": 220 * (1 - 0.3 * on_page(large)),
    }
    for name, light in pages.items():
        assert likeness(prepare_digit(photo(light)), digits[0]) > 0.95, name


def test_two_parts_of_a_digit_both_stay():
    page = np.full((200, 200), 255, np.uint8)
    page[40:50, 80:130] = 0  # the roof of a 5, apart from
    page[60:160, 80:92] = 0  # its body
    rows = np.flatnonzero(prepare_digit(page).max(axis=1))
    assert rows[-1] - rows[0] == 19
    assert prepare_digit(page)[rows[0]].sum() > 2 * prepare_digit(page)[rows[-1]].sum()


def test_a_16_bit_digit_is_prepared_like_its_8_bit_version(digits):  # PHO-04
    for digit in digits[:10]:
        wide = Image.fromarray(digit.astype(np.uint16) * 257)
        assert np.array_equal(prepare_digit(decode(wide)), digit)


def test_the_result_is_always_light_ink_in_a_box_of_20(large):
    for size in (57, 133, 200):
        prepared = prepare_digit(photo(220 - 180 * on_page(large[:size, :size])))
        rows, columns = np.nonzero(prepared)
        assert max(np.ptp(rows), np.ptp(columns)) <= 19
        assert prepared.max() == 255


def test_a_stroke_of_pixels_that_meet_at_corners_is_one_piece():
    page = np.full((100, 100), 255, np.uint8)
    for i in range(20, 80):
        page[i, 100 - i] = 0
    rows, columns = np.nonzero(prepare_digit(page))
    assert (np.ptp(rows), np.ptp(columns)) == (19, 19)
    assert np.corrcoef(rows, columns)[0, 1] < -0.95


def test_a_few_levels_in_the_dark_are_no_digit():
    page = np.full((100, 100), 10, np.uint8)
    page[30:70, 45:55] = 5
    with pytest.raises(ImageError, match="no digit found"):
        prepare_digit(page)


def own_digits(folder: Path, kind: str) -> list[Path]:
    with (folder / "labels.csv").open() as file:
        return [folder / row["file"] for row in csv.DictReader(file) if row["kind"] == kind]


@pytest.mark.parametrize("kind", ["photo", "photo_28x28", "digital_ink", "scan"])
def test_peoples_own_digits_look_like_mnist(shared_data: Path, kind: str):
    for path in own_digits(shared_data / "own_digits", kind)[::6]:
        prepared = prepare_digit(decode(path))
        share = (prepared > 127).mean()
        assert 0.02 < share < 0.3, path.name
        y, x = np.nonzero(prepared)
        weights = prepared[y, x].astype(float)
        centre = np.average(y, weights=weights), np.average(x, weights=weights)
        assert np.abs(np.subtract(centre, 14)).max() < 3, path.name
