import pytest
import torch
from hypothesis import example, given, settings

from tests.models.drawn import configs
from vitreous import ViTConfig, build, count_parameters, preset
from vitreous.config import PRESETS

PUBLISHED = {
    "digits": 1_199_626,
    "digits-small": 104_970,
    "ti16": 5_717_416,
    "s16": 22_050_664,
    "b16": 86_567_656,
    "l16": 304_326_632,
    "h14": 632_045_800,
}


def built(config) -> int:
    """Parameters of the model itself, without memory for them."""
    with torch.device("meta"):
        return sum(p.numel() for p in build(config).parameters())


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_on_paper_is_the_preset_built(name):
    assert count_parameters(preset(name)) == built(preset(name))


@pytest.mark.parametrize(("name", "parameters"), PUBLISHED.items())
def test_a_preset_has_its_published_size(name, parameters):
    assert built(preset(name)) == count_parameters(preset(name)) == parameters


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("digits")])
def test_a_digit_recogniser_stays_below_its_limit(name):
    assert built(preset(name)) <= 1_200_000


@given(config=configs())
@example(ViTConfig(width=8, heads=2, depth=1, register_tokens=2))
@example(ViTConfig(width=8, heads=2, depth=1, class_token=False, pooling="attention"))
@settings(deadline=None, max_examples=200)
def test_any_model_on_paper_is_the_model_built(config):
    assert count_parameters(config) == built(config)


@pytest.mark.slow
@given(config=configs())
@settings(deadline=None, max_examples=2_000)
def test_very_many_models_on_paper_are_the_models_built(config):
    assert count_parameters(config) == built(config)
