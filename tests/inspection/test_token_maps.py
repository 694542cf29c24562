"""From tokens to maps: prefix tokens have no place in them, rows stay rows."""

from dataclasses import replace

import pytest
import torch

from vitreous.config import ViTConfig, preset
from vitreous.errors import ShapeError
from vitreous.inspection.layout import Layout, layout_of
from vitreous.inspection.maps import TokenMap, over_grid, over_pixels
from vitreous.models.classifier import build


def test_prefix_tokens_are_no_patches():
    """MAP-04 (a): class 100, four registers 10, patches 1."""
    layout = layout_of(replace(preset("b16"), register_tokens=4, image_size=256))
    tokens = torch.cat([torch.tensor([100.0]), torch.full((4,), 10.0), torch.ones(256)])
    values = over_grid(tokens[None], layout)
    assert values.shape == (1, 16, 16)
    assert values.mean() == 1


def test_an_image_that_patches_do_not_tile_is_refused_and_the_grid_below_it_fits():
    """MAP-04 (b): 416 is no multiple of 14."""
    config = ViTConfig(
        image_size=28, patch_size=14, register_tokens=4, width=8, depth=1, heads=1, channels=3
    )
    model = build(config).eval()
    with pytest.raises(ShapeError, match="a side of 406 or 420"):
        model(torch.zeros(1, 3, 416, 416))
    layout = layout_of(config, model.patch_embed.grid(torch.zeros(1, 3, 406, 406)))
    assert (layout.grid, layout.tokens) == ((29, 29), 846)
    assert layout.kinds["patches"] == range(5, 846)
    assert model.tokens(torch.zeros(1, 3, 406, 406)).shape[1] == 846


def test_height_and_width_are_not_exchanged():
    """MAP-04 (c): 32 high, 64 wide, patch 16, one at patch (0, 3)."""
    layout = Layout({"class": 1, "distillation": 0, "registers": 0}, (2, 4))
    tokens = torch.zeros(1, 9)
    tokens[0, 1 + 3] = 1
    pixels = over_pixels(over_grid(tokens, layout), (32, 64), 16)
    assert pixels.shape == (1, 32, 64)
    assert pixels[0, :16, 48:].min() == 1
    assert pixels.sum() == 16 * 16


def test_what_overhangs_the_image_is_cut_off():
    token_map = TokenMap("any", torch.arange(16.0).view(1, 4, 4), (28, 28), (8, 8))
    assert token_map.pixels.shape == (1, 28, 28)
    assert token_map.pixels[0, 27, 27] == 15
    assert token_map._repr_html_().count("<img") == 1


def test_every_token_has_a_kind_and_a_name():
    layout = Layout({"class": 1, "distillation": 1, "registers": 2}, (1, 2))
    assert layout.labels == [
        "class token",
        "distillation token",
        "register 0",
        "register 1",
        "patch 0,0",
        "patch 0,1",
    ]
    assert [place for places in layout.kinds.values() for place in places] == list(range(6))
    assert list(layout.kinds) == ["class", "distillation", "registers", "patches"]


def test_equal_token_count_is_no_equal_layout():
    layout = Layout({"class": 1, "distillation": 0, "registers": 0}, (2, 4))
    with pytest.raises(ShapeError, match="10 tokens are not 1 prefix tokens and a grid of 2×4 = 8"):
        over_grid(torch.zeros(1, 10), layout)
