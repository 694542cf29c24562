"""Configs and recipes: what is refused, what is computed, what is written."""

import json
import re
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.models.drawn import configs
from vitreous import ConfigError, Recipe, ViTConfig, preset, recipe
from vitreous.config import PRESETS, RECIPES, does_not_tile
from vitreous.settings import from_dict, to_dict


def changed(settings, **changes):
    """`dataclasses.replace` as users have it: here the type checker would stand before our own."""
    new = object.__new__(type(settings))
    for field in fields(settings):
        object.__setattr__(new, field.name, changes.get(field.name, getattr(settings, field.name)))
    new.__post_init__()
    return new


def test_a_config_cannot_be_changed_in_place():
    with pytest.raises(FrozenInstanceError):
        preset("digits").width = 64


@given(config=configs())
@hypothesis_settings(deadline=None, max_examples=50)
def test_a_config_survives_json(config):
    text = json.dumps(to_dict(config))
    assert from_dict(ViTConfig, json.loads(text)) == config
    assert json.dumps(to_dict(from_dict(ViTConfig, json.loads(text)))) == text


@pytest.mark.parametrize("settings", [*PRESETS.values(), *RECIPES.values()])
def test_what_has_a_name_survives_json(settings):
    assert from_dict(type(settings), json.loads(json.dumps(to_dict(settings)))) == settings


@given(config=configs())
@hypothesis_settings(deadline=None, max_examples=50)
def test_equal_configs_are_written_alike(config):
    """A whole number for a float is that float, or a model would have two provenances."""
    whole = {name: int(v) for name, v in to_dict(config).items() if type(v) is float and v % 1 == 0}
    assert json.dumps(to_dict(changed(config, **whole))) == json.dumps(to_dict(config))


# what is refused


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"depth": 6.0}, "depth=6.0 is not a whole number"),
        ({"depth": True}, "depth=True is not a whole number"),
        ({"qkv_bias": 1}, "qkv_bias=1 is not true or false"),
        ({"image_size": [28, 28]}, "not a whole number or a pair of whole numbers"),
        ({"image_size": (28, 28, 28)}, "not a whole number or a pair of whole numbers"),
        ({"norm": "middle"}, "norm='middle' is not one of 'pre', 'post'"),
        ({"dropout": float("nan")}, "dropout=nan is not a number"),
        ({"layer_scale": "0.1"}, "layer_scale='0.1' is not a number or none"),
        ({"width": 0}, "width=0 must be at least 1"),
        ({"image_size": (28, 0)}, r"image_size=\(28, 0\) must be at least 1"),
        ({"register_tokens": -1}, "register_tokens=-1 must not be negative"),
        ({"mlp_ratio": 0.001}, "mlp_ratio and norm_eps must be greater than zero"),
        ({"norm_eps": 0.0}, "mlp_ratio and norm_eps must be greater than zero"),
        ({"drop_path": 1.0}, "drop_path=1.0 must be at least 0 and below 1"),
        ({"dropout": -0.1}, "dropout=-0.1 must be at least 0 and below 1"),
        ({"heads": 7}, "width=128 does not split over heads=7"),
        ({"stem": "convolution", "patch_size": 6}, "patch_size=6 is no total stride.* use 2, 4, 8"),
        ({"stem": "convolution", "patch_size": (4, 8)}, r"patch_size=\(4, 8\) is no total stride"),
        ({"class_token": False}, 'pooling="cls" reads a class token: set class_token=true'),
        ({"patch_size": 5}, "3 of 28 pixels are left over; use patch_size 4 or 7"),
    ],
)
def test_a_config_that_cannot_be_built_is_refused_with_its_numbers(change, sentence):
    with pytest.raises(ConfigError, match=sentence):
        changed(preset("digits"), **change)


@pytest.mark.parametrize(
    ("positions", "width", "heads", "sentence"),
    [
        ("sincos", 6, 1, "needs a width that is a multiple of 4; width is 6"),
        ("sincos_1d", 5, 1, "needs a width that is a multiple of 2; width is 5"),
        ("rotary", 12, 2, "needs a head_dim that is a multiple of 4; head_dim is 6"),
    ],
)
def test_positions_that_do_not_fit_the_width_are_refused(positions, width, heads, sentence):
    """POS-10: long before a forward pass."""
    with pytest.raises(ConfigError, match=f"positions='{positions}' {sentence}"):
        ViTConfig(positions=positions, width=width, heads=heads)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"batch_size": 0}, "batch_size=0 must be at least 1"),
        ({"max_steps": 0}, "max_steps=0 must be at least 1, or none"),
        ({"patience": 0}, "patience=0 must be at least 1, or none"),
        ({"warmup": 1.0}, "warmup=1.0 must be at least 0 and below 1"),
        ({"learning_rate": -1e-4}, "learning_rate=-0.0001 must not be negative"),
        ({"clip": 0.0}, "clip=0.0 must be greater than 0, or none"),
        ({"optimizer": "sgd"}, "optimizer='sgd' is not one of 'adamw', 'muon'"),
    ],
)
def test_a_recipe_that_cannot_work_is_refused_with_its_numbers(change, sentence):
    with pytest.raises(ConfigError, match=sentence):
        changed(recipe("fast"), **change)


def test_the_variant_of_a_config_is_checked_like_the_config():
    with pytest.raises(ConfigError, match="width=130 does not split over heads=8"):
        replace(preset("digits"), width=130)


def test_an_unknown_name_is_answered_with_the_nearest_known_one():
    with pytest.raises(ConfigError, match=r"no preset is called 'digit'; did you mean 'digits'\?"):
        preset("digit")
    with pytest.raises(ConfigError, match=r"called 'xyz'; known: fast, .*published"):
        recipe("xyz")
    with pytest.raises(ConfigError, match="no setting is called 'dept'; did you mean 'depth'"):
        from_dict(ViTConfig, {"dept": 3})


# what tiles


@pytest.mark.parametrize("size", [30, (28, 30), (30, 28)])
def test_a_border_is_never_dropped(size):
    """PAT-05: 30 and 4, the two pixels left over, and the nearest good sides."""
    with pytest.raises(ConfigError, match=r"4 .*30.* 2 of 30 pixels .* side of 28 or 32"):
        ViTConfig(image_size=size, patch_size=4)


@given(patch=st.integers(2, 40), y=st.integers(1, 60), x=st.integers(1, 60))
@hypothesis_settings(deadline=None, max_examples=50)
def test_what_a_refusal_advises_works(patch, y, x):
    try:
        ViTConfig(image_size=(y, x), patch_size=patch)
    except ConfigError as error:
        patches, sides = re.search("use patch_size (.*), or a side of (.*)", str(error)).groups()
        bad = next(side for side in (y, x) if side % patch)
        for better in map(int, patches.split(" or ")):
            ViTConfig(image_size=(y, x), patch_size=better)
        for better in map(int, sides.split(" or ")):
            assert better % patch == 0
            assert abs(better - bad) < patch
    else:
        assert y % patch == x % patch == 0


def test_the_sentence_of_the_guide():
    assert does_not_tile(5, 28, 28, 5) == (
        "patch_size 5 does not tile image_size 28: 3 of 28 pixels are left over; "
        "use patch_size 4 or 7, or a side of 25 or 30"
    )


# what is computed


def test_a_grid_is_two_numbers():
    config = ViTConfig(image_size=(32, 48), patch_size=(4, 8), register_tokens=3)
    assert (config.grid, config.prefix_tokens, config.tokens) == ((8, 6), 4, 52)


def test_the_presets_are_the_published_shapes():
    digits = preset("digits")
    assert (digits.norm, digits.pooling, digits.final_norm, digits.tokens) == (
        "post",
        "cls",
        False,
        50,
    )
    assert [preset(name).tokens for name in ("ti16", "s16", "b16", "l16", "h14", "textbook")] == [
        *[197] * 4,
        257,
        36,
    ]


def test_the_published_recipe_augments_and_schedules_nothing():
    published = recipe("published")
    changes = [published.rotate, published.shift, published.scale, published.shear]
    assert not any([*changes, published.label_smoothing, published.warmup, published.average])
    assert (published.schedule, published.precision, published.keep) == (
        "constant",
        "float32",
        "last",
    )
    assert (published.learning_rate, published.weight_decay, published.clip) == (1e-4, 1e-4, 1.0)


def test_no_setting_has_two_homes():
    """`--set name=value` finds a setting by its name alone."""
    assert not {f.name for f in fields(ViTConfig)} & {f.name for f in fields(Recipe)}
