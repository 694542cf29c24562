import base64
import io

import numpy as np
import pytest
from PIL import Image

from tests.figures.page_reader import Page
from vitreous.figures import page, style


def test_every_text_is_escaped():
    evil = '<b onclick="x">&'
    parts = [
        page.section(evil, page.facts({evil: evil})),
        page.table([[evil]], head=[evil]),
        page.tiles([page.tile("data:,", evil, evil)]),
        page.chart("<svg></svg>", evil),
    ]
    read = Page(page.page(evil, parts))
    assert read.open == []
    assert (read.scripts, read.outside) == (0, [])
    assert read.text.count(evil) == 9


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_comes_back_pixel_by_pixel(channels: int):
    pixels = np.random.default_rng(0).integers(0, 255, (channels, 5, 7), dtype=np.uint8)
    address = page.image_data(pixels)
    kind, content = address.split(",")
    assert kind == "data:image/png;base64"
    again = np.array(Image.open(io.BytesIO(base64.b64decode(content))))
    assert np.array_equal(again.reshape(5, 7, channels).transpose(2, 0, 1), pixels)


def test_a_page_is_light_and_dark_and_fits_a_phone():
    whole = page.page("t", [])
    assert "color-scheme: light dark" in whole
    assert "prefers-color-scheme: dark" in whole
    assert 'content="width=device-width' in whole
    assert "@media print" in whole


def drawn() -> str:
    with style.chart() as (figure, axes):
        axes.plot([1, 2, 3], [0.2, 0.5, 0.9], color=style.BLUE)
        style.floor_line(axes, 0.1135, "floor")
        style.whole_numbers(axes)
        return style.svg(figure)


def test_the_same_figure_is_the_same_text_and_needs_nothing_outside():
    assert drawn() == drawn()
    read = Page(drawn())
    assert (read.open, read.scripts, read.outside) == ([], 0, [])


def test_drawing_leaves_the_callers_style_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    drawn()
    assert dict(matplotlib.rcParams) == before


def test_the_floor_is_drawn_at_its_level_and_dashed():
    with style.chart() as (_, axes):
        axes.set(ylim=(0, 1))
        style.floor_line(axes, 0.1135, "floor")
        (line,) = axes.get_lines()
    assert list(line.get_ydata()) == [0.1135, 0.1135]
    assert line.get_linestyle() == "--"


def test_there_is_no_epoch_and_a_half():
    with style.chart() as (_, axes):
        axes.plot([1, 2], [0, 1])
        style.whole_numbers(axes)
        assert all(tick == int(tick) for tick in axes.get_xticks())


def test_no_top_and_no_right_spine():
    with style.chart() as (_, axes):
        assert not axes.spines["top"].get_visible()
        assert not axes.spines["right"].get_visible()
