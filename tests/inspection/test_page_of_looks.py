"""The page needs nothing outside itself, and holds what the model did."""

import base64
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from tests.figures.page_reader import Page
from tests.inspection.pointed import CONFIG, INPUT, untaught
from vitreous.errors import CheckpointError, ConfigError
from vitreous.inspection.faithfulness import Effort
from vitreous.inspection.look import effort_for, look_at
from vitreous.inspection.page import write_looks
from vitreous.inspection.payload import payload, quantised, trimmed
from vitreous.inspection.pictures import attention_picture, cut, enlarged, mosaic, overlay
from vitreous.inspection.record import record_attention
from vitreous.models.classifier import build

QUICK = Effort(orders=19, fresh=1, steps=2)


@pytest.fixture
def model():
    made = untaught(0)
    made.image_input = INPUT
    return made


@pytest.fixture
def picture(tmp_path):
    noise = np.random.default_rng(0).integers(0, 255, (40, 48), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a <b> & c.png")
    return str(tmp_path / "a <b> & c.png")


def data_of(page: str) -> list[dict]:
    found = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(each) for each in found]


def test_the_page_is_whole_escaped_and_needs_nothing_outside(model, picture, tmp_path):
    (tmp_path / "torn.png").write_bytes(b"torn")
    looks = [look_at(model, name, effort=QUICK) for name in (picture, str(tmp_path / "torn.png"))]
    path = write_looks(tmp_path / "out", model, looks, title="<t>", command="vitreous look <x>")
    text = path.read_text()
    read = Page(text)
    assert (read.open, read.outside) == ([], [])
    assert "a <b> & c.png" in read.text
    assert "torn.png is no image that can be read" in read.text
    assert read.text.count("No better than chance.") == 3
    names = {file.name.split("-", 1)[-1] for file in (tmp_path / "out").glob("00-*.png")}
    assert {"a--b----c-patches.png", "a--b----c-attention.png", "a--b----c-rollout.png"} <= names
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".png", ".html"}
    for file in (tmp_path / "out").glob("*.png"):
        Image.open(file).load()


def test_the_same_look_is_the_same_page(model, picture, tmp_path):
    looks = [look_at(model, picture)]
    paths = [
        write_looks(tmp_path / name, model, looks, title="t", command="c")
        for name in ("one", "two")
    ]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_page_holds_the_attention_of_the_model_to_half_a_percent(model, picture, tmp_path):
    look = look_at(model, picture)
    path = write_looks(tmp_path / "out", model, [look], title="t", command="c")
    (data,) = data_of(path.read_text())
    n = CONFIG.tokens
    parts = np.frombuffer(base64.b64decode(data["weights"]), np.uint8).reshape(-1, n, n)
    tops = np.frombuffer(base64.b64decode(data["tops"]), "<u2").reshape(-1, n, 1) / 65535
    again = parts / 255 * tops
    for layer in range(2):
        wanted = look.attention[f"blocks.{layer}.attn"][0].numpy()
        assert np.abs(again[3 * layer] - wanted.mean(axis=0)).max() < 0.005
        assert np.abs(again[3 * layer + 1 : 3 * layer + 3] - wanted).max() < 0.005
    assert data["maps"][:3] == [
        "the mean head of blocks.0.attn",
        "head 0 of blocks.0.attn",
        "head 1 of blocks.0.attn",
    ]
    assert data["groups"][0] == ["the mean head of every layer", [0, 3]]
    assert data["grid"] == [5, 6]
    assert len(data["labels"]) == n
    assert "Not held against chance here" in path.read_text()


def test_chosen_layers_and_heads_keep_their_numbers(model, picture, tmp_path):
    look = look_at(model, picture, layers=[-1], heads=[-1])
    path = write_looks(tmp_path / "out", model, [look], title="t", command="c", heads=[-1])
    (data,) = data_of(path.read_text())
    assert data["maps"] == ["head 1 of blocks.1.attn"]
    with pytest.raises(ConfigError, match="no layer 7"):
        look_at(model, picture, layers=[7])


def test_a_page_stays_small_and_says_what_is_left_out():
    maps = {f"blocks.{n}.attn": torch.rand(1, 4, 10, 10) for n in range(6)}
    whole, nothing = trimmed(maps, budget=6 * 5 * 100)
    assert (sum(len(w) for w in whole.values()), nothing) == (30, "")
    some, says = trimmed(maps, budget=6 * 5 * 100 - 1)
    assert [w.shape for w in some.values()] == [(1, 10, 10)] * 6
    assert says.startswith("Only the mean of the heads of 6 of 6 layers is here")
    few, says = trimmed(maps, budget=300)
    assert list(few) == ["blocks.0.attn", "blocks.2.attn", "blocks.5.attn"]
    assert torch.equal(few["blocks.2.attn"][0], maps["blocks.2.attn"][0].mean(dim=0))
    assert "3 of 6 layers" in says


def test_a_row_of_zeros_is_no_division_by_zero():
    parts, tops = quantised(np.zeros((1, 2, 3), dtype=np.float32))
    assert parts == bytes(6)
    assert tops == bytes(4)


def test_data_cannot_end_the_script_that_holds_them(model):
    layout = look_layout(model)
    odd = {"</script>": torch.ones(1, layout.tokens, layout.tokens)}
    assert "<" not in payload(odd, [0], layout, (20, 24), (4, 4))


def look_layout(model):
    with record_attention(model) as maps:
        model(torch.zeros(1, 1, 20, 24))
    return maps.layout


def test_a_model_that_cannot_prepare_images_is_refused(picture):
    model = build(replace(CONFIG, channels=2)).eval()
    with pytest.raises(CheckpointError, match="does not say how its images are prepared"):
        look_at(model, picture)


def test_a_model_without_attention_has_a_page_too(picture, tmp_path):
    bare = untaught(0, replace(CONFIG, stem="convolution", depth=0))
    bare.image_input = INPUT
    look = look_at(bare, picture, effort=QUICK)
    text = write_looks(tmp_path / "out", bare, [look], title="t", command="c").read_text()
    assert list(look.maps) == ["gradient_input"]
    assert "Who reads whom" not in text


def test_large_models_are_held_against_less_chance():
    small, large = effort_for(untaught(0)), effort_for(untaught(0, replace(CONFIG, width=2048)))
    assert small == Effort()
    assert large.orders < small.orders
    assert 1 / (1 + large.orders) <= 0.05


def test_patches_are_cut_where_they_are():
    pixels = np.arange(24, dtype=np.uint8).reshape(1, 4, 6)
    apart = cut(pixels, (2, 3), gap=2)
    assert apart.shape == (1, 6, 8)
    assert np.array_equal(apart[0][[0, 1, 4, 5]][:, [0, 1, 2, 5, 6, 7]], pixels[0])
    assert (apart[0, 2:4] == 255).all()
    assert (apart[0][:, 3:5] == 255).all()


def test_an_overlay_tints_the_patch_that_matters():
    pixels = np.full((1, 4, 6), 100, dtype=np.uint8)
    values = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    tinted = overlay(pixels, values, (2, 3))
    assert (tinted[:, 0, 0] == 100).all()
    red, _, blue = tinted.astype(int)
    assert red[0, 5] > 200 > blue[0, 5]
    assert blue[3, 0] > 180 > red[3, 0]


def test_pictures_grow_by_whole_pixels_and_sheets_keep_their_tiles():
    assert enlarged(np.zeros((1, 5, 6), np.uint8), 60).shape == (1, 50, 60)
    tiles = [[np.full((3, 4, 4), 10 * n, np.uint8)] * 2 for n in range(3)]
    sheet = mosaic(tiles)
    assert [sheet[0, 8 * n, 0] for n in range(3)] == [0, 10, 20]
    named = mosaic(tiles, ["a", "b", "c"], ["x", "y"])
    assert named.shape[1] > sheet.shape[1]
    assert named.shape[2] > sheet.shape[2]


def test_the_sheet_shows_whom_the_class_token_reads(model):
    layout = look_layout(model)
    weights = torch.zeros(1, 1, layout.tokens, layout.tokens)
    weights[0, 0, 0, layout.prefix + 7] = 1  # patch (1, 1)
    picture = attention_picture({"blocks.0.attn": weights}, layout)
    assert picture.title == "whom the class token reads"
    rows, _ = np.nonzero(picture.pixels[0, 22:, 70:] < 60)
    assert rows.min() >= 9
    assert rows.max() < 18
    assert picture._repr_png_() == picture.png
