"""Colour to grey and back: the same answers for the same pictures."""

import pytest
import torch
from torch.testing import assert_close

from tests.interop.golden_weights import CASES, ROOT
from vitreous import CheckpointError, ViTConfig, build, load_weights
from vitreous.frontends.image import normalise
from vitreous.interop.change import change_channels

NAMES = ("timm_vit_cls", "timm_deit_distilled", "openai_clip_visual")
COLOUR = [case for case in CASES if case.name in NAMES]


@pytest.mark.parametrize("case", COLOUR, ids=lambda case: case.name)
def test_a_grey_model_sees_in_grey_what_the_coloured_one_sees_in_three_equal_channels(case):
    """With each model's own normalisation: every channel's is folded in."""
    colour, _ = load_weights(case.path, case.heads)
    grey, report = load_weights(case.path, case.heads, channels=1)
    pixels = torch.randint(0, 256, (3, 1, *colour.config.image_shape), dtype=torch.uint8)
    want = colour(normalise(pixels.expand(-1, 3, -1, -1), colour.image_input))
    assert_close(grey(normalise(pixels, grey.image_input)), want, atol=1e-4, rtol=1e-4)
    assert "3 channels became 1" in report.notes
    assert report.conventions["mean"] == list(grey.image_input.mean)


def test_equal_normalisation_leaves_a_plain_sum():
    colour, _ = load_weights(ROOT / "timm_vit_cls")
    grey, _ = load_weights(ROOT / "timm_vit_cls", channels=1)
    kernels = colour.patch_embed.proj.weight.unflatten(1, (3, -1))
    assert_close(grey.patch_embed.proj.weight, kernels.sum(1))
    assert_close(grey.patch_embed.proj.bias, colour.patch_embed.proj.bias)


def test_grey_to_colour_answers_for_three_equal_channels():
    grey = build(ViTConfig(image_size=8, width=16, depth=1, heads=2)).eval()
    colour = change_channels(grey, 3)
    images = torch.randn(2, 1, 8, 8)
    assert_close(colour(images.expand(-1, 3, -1, -1)), grey(images))


@pytest.mark.parametrize("channels", [2, 4])
def test_other_channels_are_refused(channels):
    with pytest.raises(CheckpointError, match=f"3 channels cannot become {channels}"):
        load_weights(ROOT / "timm_vit_cls", channels=channels)


def test_the_model_that_was_changed_is_not_touched():
    model = build(ViTConfig(image_size=8, width=16, depth=1, heads=2, channels=3))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    change_channels(model, 1)
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())
