"""From an image to a Reading, with the weights that come with the package."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import vitreous
from tests.frontends.test_lines import write
from tests.frontends.test_photographs import photo, strokes
from vitreous.data.sources import load_source
from vitreous.errors import CheckpointError, ImageError
from vitreous.models.decoding import Rules
from vitreous.reading.reader import NumberReader, read
from vitreous.reading.reading import Reading


@pytest.fixture(scope="module")
def reader() -> NumberReader:
    return NumberReader.load()


@pytest.fixture(scope="module")
def digits() -> dict[int, np.ndarray]:
    """One clear test digit of each kind."""
    data = load_source("mnist")
    return {d: data.test_images[np.flatnonzero(data.test_labels == d)[3], 0] for d in range(10)}


def sheet(digits: dict[int, np.ndarray], text: str, *, size: int = 60) -> np.ndarray:
    """Light of a page with this number in its middle, 0 to 1."""
    page = np.ones((160, 80 + int(size * 0.72 * len(text)) + size))
    write(page, [digits[int(value)] for value in text], 40, 50, size)  # pyright: ignore
    return page


def number(digits, text: str, **how) -> np.ndarray:
    return photo(215 * sheet(digits, text, **how))


def png(pixels: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", **options)
    return file.getvalue()


def read_all(reader: NumberReader, sources) -> list[Reading]:
    return reader.read([reader.prepare(source) for source in sources])


@pytest.mark.parametrize("text", ["007", "0", "4071", "12345678", "00491234567", "1", "11"])
def test_numbers_are_read_with_their_leading_zeros(reader, digits, text: str):  # PHO-14
    (got,) = read_all(reader, [Image.fromarray(number(digits, text))])
    assert got.text == text
    assert [line.text for line in got.lines] == [text]
    assert "".join(digit.value for digit in got.lines[0].digits) == text


def test_polarity_and_grey_change_no_answer(reader):  # PHO-01
    images = load_source("mnist").test_images[:20, 0]
    grey = np.rint(180 - images / 255.0 * 120).astype(np.uint8)
    versions = [
        read_all(reader, map(Image.fromarray, kind)) for kind in (images, 255 - images, grey)
    ]
    assert [r.text for r in versions[0]] == [r.text for r in versions[1]]
    assert [r.text for r in versions[0]] == [r.text for r in versions[2]]


def test_a_bold_digit_over_half_the_canvas_is_still_the_ink(reader):  # PHO-01
    """A 1 that covers most of the paper; its mean says light on dark."""
    page = np.full((100, 60), 255, np.uint8)
    page[8:92, 12:48] = 0
    (dark, light) = read_all(reader, [Image.fromarray(page), Image.fromarray(255 - page)])
    assert dark.text == light.text


def test_every_kind_of_file_of_one_drawing_gives_one_answer(reader, digits):
    """PHO-02, PHO-04, PHO-06."""
    grey = number(digits, "47")
    clear = np.zeros((*grey.shape, 4), np.uint8)
    clear[..., 3] = 255 - grey
    deep = grey.astype(np.uint16) * 257
    animation = io.BytesIO()
    other = Image.fromarray(number(digits, "31"))
    Image.fromarray(grey).save(animation, "GIF", save_all=True, append_images=[other])
    tiff = io.BytesIO()
    Image.fromarray(deep.astype(">u2").view("<u2").byteswap()).save(tiff, "TIFF")
    colours = io.BytesIO()
    Image.fromarray(grey).convert("P").save(colours, "PNG")
    faded = io.BytesIO()
    Image.fromarray(grey).convert("CMYK").save(faded, "JPEG")
    sources = [
        png(grey),
        png(clear),
        png(deep),
        animation.getvalue(),
        tiff.getvalue(),
        colours.getvalue(),
        faded.getvalue(),
        png(np.asarray(Image.fromarray(grey).point(lambda v: 255 * (v > 128)).convert("1"))),
    ]
    assert [r.text for r in read_all(reader, sources)] == ["47"] * len(sources)


def test_a_photograph_on_its_side_is_read_upright(reader, digits):  # PHO-05
    upright = Image.fromarray(number(digits, "697"))
    sources = []
    for orientation, undo in {
        1: None,
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }.items():
        stored = upright if undo is None else upright.transpose(undo)
        file, exif = io.BytesIO(), Image.Exif()
        exif[0x0112] = orientation
        stored.save(file, "PNG", exif=exif)
        sources.append(file.getvalue())
    readings = read_all(reader, sources)
    assert [r.text for r in readings] == ["697"] * 8
    assert len({r.lines[0].box for r in readings}) == 1


def test_blank_paper_holds_no_number_and_that_is_sure(reader):  # PHO-10
    for level in (0, 128, 255):
        (got,) = read_all(reader, [Image.fromarray(np.full((28, 28), level, np.uint8))])
        assert (got.text, got.lines, got.rejected) == ("", (), False)
        assert 0 <= got.confidence <= 1


@pytest.mark.parametrize("place", [(10, 10), (150, 50), (90, 5)])
def test_where_a_bar_stands_does_not_matter(reader, place):  # PHO-09
    page = np.full((100, 200), 255, np.uint8)
    page[place[1] : place[1] + 40, place[0] : place[0] + 4] = 0
    (got,) = read_all(reader, [Image.fromarray(page)])
    assert got.text == "1"
    assert got.lines[0].box == pytest.approx((place[0], place[1], 4, 40), abs=2)


def test_lines_of_a_page_are_joined_by_newlines_in_reading_order(reader, digits):  # PHO-13
    page = np.ones((260, 420))
    for text, left, top in (("12", 20, 20), ("345", 210, 26), ("67", 30, 150)):
        write(page, [digits[int(value)] for value in text], left, top, 60)  # pyright: ignore
    (got,) = read_all(reader, [Image.fromarray(photo(215 * page))])
    assert got.text == "12\n345\n67"


def test_digits_that_jump_are_read_from_the_left(reader, digits):  # PHO-13
    page = np.full((90, 160), 255.0)
    for value, left, top in ((4, 10, 30), (0, 60, 5), (7, 110, 20)):
        page[top : top + 28, left : left + 28] -= digits[value]
    (got,) = read_all(reader, [Image.fromarray(page.clip(0).astype(np.uint8))])
    assert got.text == "407"
    lefts = [digit.box[0] for digit in got.lines[0].digits]
    tops = [digit.box[1] for digit in got.lines[0].digits]
    assert lefts == sorted(lefts)
    assert tops == pytest.approx([34, 9, 24], abs=5)


def test_a_separator_is_a_warning_with_its_place_and_no_digit(reader, digits):
    light = np.ones((160, 330))
    end = write(light, [digits[1], digits[2]], 40, 50, 60)  # pyright: ignore
    light[99:105, end + 14 : end + 20] = 0.2
    write(light, [digits[5], digits[0]], end + 18, 50, 60)  # pyright: ignore
    (got,) = read_all(reader, [Image.fromarray(photo(215 * light))])
    assert got.text == "1250"
    (warning,) = [w for w in got.warnings if "separator" in w]
    assert "between digit 2 and digit 3" in warning
    assert f"x={end + 17}" in warning or f"x={end + 16}" in warning


def test_boxes_lie_in_the_image_and_around_the_ink(reader, digits):
    pixels = number(digits, "380")
    (got,) = read_all(reader, [Image.fromarray(pixels)])
    (line,) = got.lines
    left, top, width, height = line.box
    dark = np.argwhere(pixels < 120)
    assert (left, top) == pytest.approx(tuple(dark.min(axis=0)[::-1]), abs=4)
    assert (left + width, top + height) == pytest.approx(tuple(dark.max(axis=0)[::-1]), abs=4)
    for digit, start in zip(line.digits, (40, 83, 126), strict=True):
        assert digit.box[0] == pytest.approx(start + 12, abs=14)
        assert 0 < digit.box[2] < 60


def test_each_reading_belongs_to_its_own_page(reader, digits):
    texts = ["1", "22", "", "4071", "90"]
    pages = [number(digits, t) if t else np.full((50, 50), 200, np.uint8) for t in texts]
    assert [r.text for r in read_all(reader, map(Image.fromarray, pages))] == texts


def test_a_page_read_alone_and_among_others_says_the_same(reader, digits):
    sources = [Image.fromarray(number(digits, text)) for text in ("31", "80025", "7")]
    together = read_all(reader, sources)
    for source, one in zip(sources, together, strict=True):
        (alone,) = read_all(reader, [source])
        assert alone.text == one.text
        assert alone.confidence == pytest.approx(one.confidence, abs=2e-4)
        assert alone.lines[0].box == one.lines[0].box


def test_attention_says_where_each_digit_was_looked_for(reader, digits):
    (got,) = reader.read([reader.prepare(Image.fromarray(number(digits, "38")))], attention=True)
    maps = got.lines[0].attention
    assert maps is not None
    assert len(maps) == 2
    for digit in maps:
        assert len(digit) == 1
        assert sum(digit[0]) == pytest.approx(1, abs=0.02)
    middles = [np.average(np.arange(len(d[0])), weights=d[0]) for d in maps]
    assert middles[0] < middles[1]
    assert (
        reader.read([reader.prepare(Image.fromarray(number(digits, "38")))])[0].lines[0].attention
        is None
    )


def test_the_model_sees_light_ink_on_dark_and_shows_it(reader, digits):
    page = reader.prepare(Image.fromarray(number(digits, "12")))
    (picture,) = page.pictures()
    seen = np.asarray(Image.open(io.BytesIO(picture)))
    assert (seen == page.strips[0].levels).all()
    assert seen.shape[0] == 32
    assert np.median(seen) < 60


def test_a_line_names_its_strip_where_another_strip_holds_no_digit(reader, digits):
    page = reader.prepare(Image.fromarray(number(digits, "12")))
    nothing = page.strips[0]._replace(levels=np.zeros_like(page.strips[0].levels))
    (got,) = reader.read([replace(page, strips=(nothing, *page.strips))])
    assert [(line.text, line.strip) for line in got.lines] == [("12", 1)]


def test_a_reading_is_the_json_that_programs_were_promised(reader, digits):
    (got,) = read_all(reader, [Image.fromarray(number(digits, "12"))])
    plain = json.loads(json.dumps(got.to_dict(), allow_nan=False))
    assert set(plain) == {"text", "lines", "confidence", "rejected", "warnings"}
    (line,) = plain["lines"]
    assert {"text", "box", "confidence", "digits"} <= set(line)
    assert set(line["digits"][0]) == {"value", "confidence", "box"}
    assert all(isinstance(side, int) for side in line["box"])
    assert "12" in got._repr_html_()


def test_a_known_length_is_kept(reader, digits):
    page = reader.prepare(Image.fromarray(number(digits, "1234")))
    assert len(reader.read([page], rules=Rules(length=3))[0].text) == 3


def test_what_cannot_be_what_was_asked_for_is_said(reader, digits):
    page = reader.prepare(Image.fromarray(number(digits, "12")))
    got = reader.read([page], rules=Rules(check=lambda _: False))[0]
    assert got.text == ""
    assert "cannot be" in got.warnings[0]


def test_an_unsure_reading_is_rejected_and_keeps_its_text(reader, digits, monkeypatch):
    monkeypatch.setattr(reader.model, "threshold", 1.01)
    (got,) = read_all(reader, [Image.fromarray(number(digits, "12"))])
    assert got.rejected
    assert got.text == "12"


def test_the_door_reads_a_file(digits, tmp_path):
    Image.fromarray(number(digits, "42")).save(tmp_path / "a.png")
    assert vitreous.read(tmp_path / "a.png").text == "42"
    assert read((tmp_path / "a.png").read_bytes()).text == "42"
    with pytest.raises(ImageError):
        vitreous.read(tmp_path / "none.png")


def test_weights_that_are_no_readers_are_refused(tmp_path):
    with pytest.raises(CheckpointError):
        NumberReader.load(tmp_path)


def test_the_shipped_weights_are_small_and_have_a_card():
    from importlib.resources import files

    shipped = files("vitreous.reading")
    assert len((shipped / "reader.safetensors").read_bytes()) <= 8_000_000
    card = (shipped / "reader.md").read_text()
    assert "vitreous train reader" in card


def test_a_mirrored_digit_is_another_one():  # PHO-08
    """EMNIST's raw images are transposed; turning them would leave mirror images."""
    raw = np.array([[1, 2], [3, 4]])
    assert raw.T.tolist() == [[1, 3], [2, 4]]
    assert not np.array_equal(raw.T, np.rot90(raw))


def test_training_strings_and_photographs_meet_in_one_function(digits):
    """PHO-11: a strip is 0 to 1 in both, and divided by 255 once."""
    from vitreous.data.lines import pad
    from vitreous.reading.page import prepare

    strip = prepare(Image.fromarray(number(digits, "12"))).strips[0].levels
    images, _ = pad([strip])
    assert float(images.max()) == 1.0
    assert images.numpy()[0, 0] == pytest.approx(strip / 255)


def test_thin_strokes_and_thick_ones_are_read(reader):
    """A stylus on a large canvas, and a marker on a small one."""
    data = load_source("mnist")
    image = data.test_images[0, 0]
    large = np.rint(255 - 255 * strokes(image, 900)).astype(np.uint8)
    (got,) = read_all(reader, [Image.fromarray(large)])
    assert got.text == str(data.test_labels[0])
