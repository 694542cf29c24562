"""Trained tensors in a model of other images and classes."""

from dataclasses import replace

import pytest
import torch

from vitreous.checkpoints.refit import refit
from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.models.classifier import Classifier, build
from vitreous.nn.positions import resize_table

SMALL = ViTConfig(image_size=8, patch_size=4, width=8, depth=1, heads=2, classes=3)
KINDS = {
    "class token": SMALL,
    "mean": replace(SMALL, class_token=False, pooling="mean", register_tokens=2),
    "attention pool": replace(SMALL, pooling="attention", positions="sincos"),
    "axes": replace(SMALL, positions="learned_axes", activation="swiglu"),
    "stem": replace(SMALL, stem="convolution", positions="rotary", layer_scale=0.1),
}


def refitted(model: Classifier, config: ViTConfig) -> Classifier:
    tensors, _ = refit(model, config)
    other = build(config)
    other.load_state_dict({**other.state_dict(), **tensors})
    return other.eval()


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())
def test_with_other_classes_features_are_the_same_to_the_last_bit(config: ViTConfig):
    model, images = build(config).eval(), torch.rand(2, 1, 8, 8)
    other = refitted(model, replace(config, classes=7))
    assert torch.equal(other.encode(images), model.encode(images))
    assert other(images).shape == (2, 7)


@pytest.mark.parametrize("config", KINDS.values(), ids=KINDS.keys())
def test_at_another_size_it_is_the_model_called_with_larger_images(config: ViTConfig):
    model, images = build(config).eval(), torch.rand(2, 1, 12, 20)
    other = refitted(model, replace(config, image_size=(12, 20)))
    torch.testing.assert_close(other.encode(images), model.encode(images))


@pytest.mark.parametrize("resize", ["bicubic", "bilinear_corners"])
def test_positions_are_stretched_by_the_models_own_convention(resize):
    config = replace(SMALL, position_resize=resize)
    model = build(config)
    tensors, notes = refit(model, replace(config, image_size=16))
    wanted = resize_table(model.pos_embed.table, (2, 2), (4, 4), resize)
    assert torch.equal(tensors["pos_embed.table"], wanted)
    assert tensors["pos_embed.grid"].tolist() == [4, 4]
    assert f"from a grid of (2, 2) to (4, 4) by {resize}" in " ".join(notes)


@pytest.mark.parametrize("stem", ["linear", "convolution"])
def test_a_grey_image_is_read_as_the_same_image_in_three_equal_colours_was(stem):
    config = replace(SMALL, channels=3, stem=stem)
    model, grey = build(config).eval(), torch.rand(2, 1, 8, 8)
    other = refitted(model, replace(config, channels=1))
    wanted = model.encode(grey.expand(-1, 3, -1, -1))
    torch.testing.assert_close(other.encode(grey), wanted)


@pytest.mark.parametrize("stem", ["linear", "convolution"])
def test_three_equal_colours_are_read_as_the_grey_image_was(stem):
    config = replace(SMALL, stem=stem)
    model, grey = build(config).eval(), torch.rand(2, 1, 8, 8)
    other = refitted(model, replace(config, channels=3))
    wanted = model.encode(grey)
    torch.testing.assert_close(other.encode(grey.expand(-1, 3, -1, -1)), wanted)


def test_from_three_channels_to_four_there_is_no_one_way():
    with pytest.raises(CheckpointError, match="read 3 channels and the data have 4"):
        refit(build(replace(SMALL, channels=3)), replace(SMALL, channels=4))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"depth": 2}, r"missing \['encoder.blocks.1"),
        ({"register_tokens": 1}, r"missing \['reg_token'\]"),
        ({"positions": "sincos"}, r"surplus \['pos_embed.grid', 'pos_embed.table'\]"),
        ({"width": 16}, r"is \(1, 1, 8\) there, and \(1, 1, 16\) is asked for"),
        ({"patch_size": 2}, r"patch_embed.proj.weight is \(8, 16\) there, and \(8, 4\)"),
        ({"positions": "learned_axes"}, r"missing \['pos_embed.columns', 'pos_embed.rows'\]"),
    ],
)
def test_settings_that_ask_for_another_model_are_refused_by_name(change, words: str):
    with pytest.raises(CheckpointError, match=words):
        refit(build(SMALL), replace(SMALL, **change))


def test_the_source_model_is_left_as_it_was():
    model = build(replace(SMALL, channels=3))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    tensors, _ = refit(model, replace(SMALL, image_size=16, classes=5))
    for tensor in tensors.values():
        tensor.zero_()
    small = ("patch_embed.proj.weight", "pos_embed.table", "pos_embed.grid")
    assert all(torch.equal(model.state_dict()[name], before[name]) for name in small)
