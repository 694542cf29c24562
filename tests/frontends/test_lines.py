"""Numbers on paper become lines in reading order, whatever paper, pen and light."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.frontends.test_photographs import SCENES, X, Y, photo, strokes
from vitreous.data.sources import load_source
from vitreous.frontends.lines import BODY, HEIGHT, MARGIN, Strip, find_lines, prepare_ink, split
from vitreous.frontends.page import find_written, otsu
from vitreous.frontends.pieces import Piece
from vitreous.frontends.rules import in_runs, sheared, tilt


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return load_source("mnist").test_images[:40, 0]


def lines_of(pixels: np.ndarray) -> list[Strip]:
    return find_lines(find_written(pixels))


def write(page: np.ndarray, digits: np.ndarray, left: int, top: int, size: int = 70) -> int:
    """Write digits beside each other on a page of light; returns where they end."""
    for digit in digits:
        ink = strokes(digit, size)
        part = page[top : top + size, left : left + size]
        np.minimum(part, 1 - 0.75 * ink[: part.shape[0], : part.shape[1]], out=part)
        left += int(size * 0.72)
    return left


def sheet_of(digits: np.ndarray) -> np.ndarray:
    page = np.ones((240, 320))
    write(page, digits, 30, 80)
    return page


def same(one: np.ndarray, other: np.ndarray) -> float:
    """Correlation of two strips, one stretched to the other's width."""
    stretched = Image.fromarray(one).resize(other.shape[::-1])
    return float(np.corrcoef(np.asarray(stretched, float).ravel(), other.ravel())[0, 1])


@pytest.mark.parametrize("scene", [name for name in SCENES if name != "cell of a form"])
def test_a_number_is_one_line_on_any_paper_in_any_light(digits, scene: str):
    plain = lines_of(photo(215 * sheet_of(digits[:4])))[0].levels
    lines = lines_of(photo(SCENES[scene](sheet_of(digits[:4]))))
    assert len(lines) == 1
    assert same(lines[0].levels, plain) > 0.75  # rules that cross strokes cost the most


TURNED = 1 / 18  # rows per column: three degrees
PRINT = {
    "dark squares": np.where((Y % 22 < 2) | (X % 22 < 2), 110, 255),
    "squares askew": np.where(((Y - TURNED * X) % 22 < 2) | ((X + TURNED * Y) % 22 < 2), 150, 255),
    "faint squares": np.where((Y % 22 < 2) | (X % 22 < 2), 165, 255),
    "rules askew": np.where((Y - TURNED * X) % 40 < 2, 140, 255),
    "a box": np.where(
        (np.maximum(abs(X - 64) / 28, abs(Y - 117) / 40) < 1)
        & (np.maximum(abs(X - 64) / 25, abs(Y - 117) / 37) > 1),
        60,
        255,
    ),
    "cells": np.where(
        (abs(Y - 115) < 50)
        & (abs(X - 141) < 105)
        & ((abs(Y - 115) > 47) | np.isin(X, [38, 39, 90, 91, 151, 152, 187, 188, 244, 245])),
        60,
        255,
    ),
}


@pytest.mark.parametrize("name", PRINT)
def test_what_is_printed_around_a_number_is_no_part_of_it(digits, name: str):
    plain = find_written(photo(215 * sheet_of(digits[:4])))
    written = find_written(photo(np.minimum(215 * sheet_of(digits[:4]), PRINT[name])))
    (line,) = find_lines(written)
    assert same(line.levels, find_lines(plain)[0].levels) > 0.65  # dark rules cut strokes
    assert len(written.pieces) <= len(plain.pieces) + 2  # a stroke may have been parted


BEHIND = {
    "squares": np.where((Y % 22 < 2) | (X % 22 < 2), 140, 255),
    "small squares": np.where((Y % 12 < 2) | (X % 12 < 2), 140, 255),
    "rules": np.where(Y % 18 < 2, 150, 255),
    "print beside a part": np.where(
        ((Y % 14 < 2) & (X < 169)) | ((X % 14 < 2) & (Y < 126)), 170, 255
    ),
}


@pytest.mark.parametrize("name", BEHIND)
def test_a_picture_cut_close_around_a_number_loses_its_paper_and_no_stroke(digits, name: str):
    close = slice(79, 155), slice(37, 244)
    page = 215 * sheet_of(digits[:4])
    (plain,) = lines_of(photo(page[close]))
    (line,) = lines_of(photo(np.minimum(page, BEHIND[name])[close]))
    assert same(line.levels, plain.levels) > 0.7


@pytest.mark.parametrize("slope", [-0.1, -0.03, 0.0, 0.07])
def test_the_slope_of_printed_lines_is_found_and_undone(slope: float):
    lines = (Y - np.rint(slope * (X - 160))) % 30 < 2
    assert abs(tilt(lines) - slope) < 0.004
    inner = slice(40, 200)
    level = sheared(lines, -slope)[inner]
    assert (level == level[:, :1]).all()


def test_a_dark_stroke_along_a_faint_rule_is_kept(digits):
    page = 215 * sheet_of(digits[:4])
    page = np.where((Y % 30 < 2), np.minimum(page, 175), page)
    page[150:153, 60:100] = 40
    ink = find_written(photo(page)).ink
    assert (ink[151, 65:95] > 0.5).mean() > 0.9


def test_lines_come_from_the_top_and_numbers_of_a_line_from_the_left(digits):
    page = np.ones((300, 500))
    write(page, digits[:2], 10, 20, 60)
    write(page, digits[2:5], 300, 30, 60)
    write(page, digits[5:6], 40, 170, 60)
    lines = lines_of(photo(215 * page))
    lefts = [round(line.box[0], -1) for line in lines]
    tops = [line.box[1] for line in lines]
    assert len(lines) == 3
    assert lefts[0] < lefts[1]
    assert tops[2] > max(tops[:2]) + 50


def test_digits_that_jump_are_still_one_number(digits):
    """PHO-13: sorting by top would put the second digit first."""
    page = np.full((90, 160), 255.0)
    for digit, left, top in zip(digits[:3], (10, 60, 110), (30, 5, 20), strict=True):
        page[top : top + 28, left : left + 28] -= digit
    lines = lines_of(page.clip(0).astype(np.uint8))
    assert len(lines) == 1
    assert lines[0].box[0] < 25
    assert lines[0].box[0] + lines[0].box[2] > 115


def test_two_lines_of_two_digits_are_two_lines(digits):  # PHO-13
    page = np.full((70, 60), 255.0)
    for digit, left, top in zip(digits[:4], (2, 28, 2, 28), (3, 3, 39, 39), strict=True):
        page[top : top + 28, left : left + 28] -= digit
    lines = lines_of(page.clip(0).astype(np.uint8))
    assert [round(line.box[1]) < 35 for line in lines] == [True, False]


def test_lines_that_almost_touch_stay_two(digits):
    page = np.ones((200, 260))
    write(page, digits[:4], 20, 30, 60)
    write(page, digits[4:8], 20, 80, 60)
    lines = lines_of(photo(215 * page))
    assert len(lines) == 2
    assert max(line.box[3] for line in lines) < 60


@pytest.mark.parametrize("tilt", [-3.0, 3.0])
def test_a_tilted_page_of_rows_and_columns_keeps_its_order(digits, tilt: float):
    page = np.ones((700, 700))
    places = [(left, top) for top in range(80, 600, 130) for left in (70, 290, 510)]
    for number, (left, top) in enumerate(places):
        write(page, digits[number : number + 3], left, top, 42)
    ink = Image.fromarray((1 - page).astype(np.float32)).rotate(tilt, Image.Resampling.BILINEAR)
    lines = lines_of(photo(215 * (1 - np.asarray(ink, float))))
    assert len(lines) == len(places)
    turn = np.deg2rad(tilt)
    for (left, top), line in zip(places, lines, strict=True):
        x, y = left + 46 - 350, top + 21 - 350
        wanted = (
            350 + x * np.cos(turn) + y * np.sin(turn),
            350 - x * np.sin(turn) + y * np.cos(turn),
        )
        middle = line.box[0] + line.box[2] / 2, line.box[1] + line.box[3] / 2
        assert np.hypot(*np.subtract(middle, wanted)) < 25


@pytest.mark.parametrize(
    "page",
    {
        "white": np.full((28, 28), 255),
        "black": np.zeros((28, 28)),
        "grey": np.full((200, 300), 128),
        "noise": 250 + np.random.default_rng(0).integers(-3, 4, (28, 28)),
        "grain": 200 + np.random.default_rng(1).normal(0, 12, (200, 300)),
        "lamp": np.linspace(120, 250, 300)[None] * np.ones((200, 1)),
        "one pixel": np.full((1, 1), 9),
        "one row": np.full((1, 300), 200),
    }.items(),
    ids=lambda page: page[0],
)
def test_blank_paper_holds_no_line(page):  # PHO-10
    assert lines_of(np.clip(page[1], 0, 255).astype(np.uint8)) == []


def test_rules_and_margins_are_no_ink_and_digits_on_them_are(digits):
    page = sheet_of(digits[:4])
    page[150:152] = np.minimum(page[150:152], 0.4)
    page[:, 12:14] = np.minimum(page[:, 12:14], 0.4)
    lines = lines_of(photo(215 * page))
    assert len(lines) == 1
    assert same(lines[0].levels, lines_of(photo(215 * sheet_of(digits[:4])))[0].levels) > 0.85


def test_a_dot_between_digits_is_kept_as_a_place(digits):
    page = np.ones((240, 400))
    end = write(page, digits[:2], 30, 80)
    page[136:143, end + 15 : end + 22] = 0.25
    write(page, digits[2:4], end + 20, 80)
    (line,) = lines_of(photo(215 * page))
    (dot,) = line.dots
    x, y = line.origin[0] + line.scale * dot.x, line.origin[1] + line.scale * dot.y
    assert x == pytest.approx(end + 18.5, abs=3)
    assert y == pytest.approx(139.5, abs=3)


def test_other_lines_leave_no_ink_in_a_strip():
    """The lower line's second bar reaches up between the two bars of the upper line."""
    page = np.full((140, 150), 230, np.uint8)
    for left, top, bottom in ((30, 20, 60), (90, 20, 60), (30, 64, 100), (60, 54, 94)):
        page[top:bottom, left : left + 12] = 30
    upper, lower = lines_of(page)
    assert (upper.box[1], lower.box[1]) == pytest.approx((20, 54), abs=2)
    inked = np.flatnonzero((upper.levels > 60).any(axis=0))
    gaps = np.diff(inked)
    assert (gaps > 1).sum() == 1  # two bars, and nothing between them
    assert gaps.max() == pytest.approx(48 / upper.scale, abs=2)


@given(height=st.integers(5, 300), width=st.integers(2, 4000), level=st.floats(0.05, 1.0))
@example(height=24, width=24, level=1.0)
@example(height=5, width=4000, level=0.2)
@settings(deadline=None, max_examples=30)
def test_a_strip_has_its_size_and_full_ink_whatever_was_written(height, width, level):
    ink = np.zeros((height + 6, width + 6), np.float32)
    ink[3:-3, 3:-3] = level
    levels, _, scale = prepare_ink(ink, ink > 0, Piece(0, 3, 3, height + 3, width + 3))
    assert levels.shape[0] == HEIGHT
    assert levels.shape[1] % 4 == 0
    assert levels.shape[1] <= 512
    assert levels.max() == 255
    assert not levels[:, :MARGIN].any()
    rows = np.flatnonzero(levels.any(axis=1))
    assert len(rows) <= BODY + 1
    assert len(rows) == pytest.approx(height / scale, abs=1.01)


def test_thin_strokes_of_a_large_drawing_do_not_fade():
    ink = np.zeros((1000, 700), np.float32)
    ink[100:900, 290:294] = 1
    ink[100:104, 290:600] = 1
    levels, _, _ = prepare_ink(ink, ink > 0, Piece(0, 100, 290, 900, 600))
    assert np.median(levels[6:27].max(axis=1)) > 150


def test_columns_of_numbers_part_and_spaced_digits_stay_together():
    row = [Piece(n, 0, left, 20, left + 12) for n, left in enumerate((0, 16, 32, 90, 106))]
    assert [len(number) for number in split(row)] == [3, 2]
    even = [Piece(n, 0, left, 20, left + 12) for n, left in enumerate((0, 40, 80, 120))]
    assert [len(number) for number in split(even)] == [4]


def test_runs_are_the_opening_by_definition():
    luck = np.random.default_rng(0)
    marked = luck.random((12, 30)) < 0.7
    for length in (1, 3, 5):
        want = np.zeros_like(marked)
        for y in range(12):
            for x in range(30 - length + 1):
                if marked[y, x : x + length].all():
                    want[y, x : x + length] = True
        assert (in_runs(marked, length, axis=1) == want).all()
        assert (want == in_runs(marked.T, length, axis=0).T).all()


def test_otsu_parts_two_heaps():
    luck = np.random.default_rng(0)
    ink = np.concatenate([luck.normal(0, 0.02, 900), luck.normal(0.6, 0.03, 100)])
    assert 0.06 < otsu(ink) < 0.54


def test_the_bar_of_a_5_belongs_to_it_though_it_is_apart():
    page = np.full((200, 200), 240, np.uint8)
    page[40:46, 80:120] = 20  # the bar
    for turn in np.linspace(-1.2, 1.9, 400):  # the bow below it
        y, x = int(105 + 35 * np.sin(turn)), int(90 + 30 * np.cos(turn))
        page[y : y + 6, x : x + 6] = 20
    (line,) = lines_of(page)
    assert line.box[1] == pytest.approx(40, abs=2)


@pytest.mark.parametrize("period", [3.0, 5.0, 8.0])
def test_print_on_blank_paper_is_no_large_ink(period: float):
    """A security pattern alone may leave specks, and no piece as high as a digit."""
    rows, columns = np.mgrid[0:60, 0:180]
    wave = np.sin((rows + 2 * np.sin(columns / 15)) * 2 * np.pi / period)
    grain = np.random.default_rng(0).normal(0, 4, wave.shape)
    page = np.clip(200 - 25 * np.clip(wave, 0, 1) + grain, 0, 255).astype(np.uint8)
    assert all(line.box[3] < 20 for line in lines_of(page))
