from dataclasses import replace

import pytest

from vitreous import ConfigError
from vitreous.cost.windowed import WINDOWED, count_parameters, forward, windowed

PARAMETERS = {"swin-t": 28_288_354, "swin-s": 49_606_258, "swin-b": 87_768_224}
PAPER = {"swin-t": 4.5, "swin-s": 8.7, "swin-b": 15.4}
TORCHVISION = {"swin-t": 4.491, "swin-s": 8.741, "swin-b": 15.431}


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS.items())
def test_a_windowed_model_has_its_published_parameters(name, parameters):
    """Relative position tables are among them."""
    assert count_parameters(windowed(name)) == parameters


@pytest.mark.parametrize("name", WINDOWED)
def test_a_windowed_model_has_its_published_multiply_adds(name):
    """As the paper prints them, and to three decimals as torchvision does: tables have none."""
    giga = forward(windowed(name)).total / 1e9
    assert round(giga, 1) == PAPER[name]
    assert round(giga, 3) == TORCHVISION[name]


def test_with_windows_attention_grows_with_the_pixels_and_not_with_their_square():
    one, two = (forward(replace(windowed("swin-t"), image_size=side)) for side in (224, 448))
    assert two.attention_products == 4 * one.attention_products
    assert two.mlp == 4 * one.mlp


def test_a_window_as_large_as_the_image_is_plain_attention():
    shape = replace(windowed("swin-t"), depths=(3,), window=56)
    tokens = 56 * 56
    assert forward(shape).attention_products == 3 * 2 * tokens**2 * 96


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image_size": 230}, "image_size=230 is no whole number of windows in every stage"),
        ({"width": 100}, "width=100 does not split into heads of 32"),
        ({"depths": (2, 0)}, r"depths=\(2, 0\) must be at least 1"),
        ({"depths": ()}, r"depths=\(\) must be at least 1"),
        ({"window": 0}, "window=0 must be at least 1"),
    ],
)
def test_what_windows_do_not_fit_is_refused(change, sentence):
    with pytest.raises(ConfigError, match=sentence):
        replace(windowed("swin-t"), **change)
    with pytest.raises(ConfigError, match="did you mean 'swin-t'"):
        windowed("swin-tt")
