from dataclasses import asdict, replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import example, given, settings
from torch.utils.flop_counter import FlopCounterMode

from tests.models.drawn import configs
from vitreous import ViTConfig, build, preset
from vitreous.config import PRESETS
from vitreous.cost.flops import backward, forward
from vitreous.nn import attention

PUBLISHED = {"ti16": 1.254, "s16": 4.599, "b16": 17.564, "l16": 61.555, "h14": 167.295}
SMALL = ViTConfig(image_size=8, patch_size=2, width=16, depth=2, heads=2)


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain path: torch's counter takes the fused kernel on a CPU for no work at all."""
    monkeypatch.setattr(attention, "choose_path", lambda *_, **__: "plain")


def counted(config: ViTConfig, *, train: bool = False, gradients: bool = False) -> int:
    """FLOPs of one image as torch counts them, without memory for the model."""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        model = build(config).train(train)
        logits = model(torch.empty(1, config.channels, *config.image_shape))
        if gradients:
            logits.sum().backward()
    return counter.get_total_flops()


def test_torchs_counter_takes_the_fused_kernel_for_no_work_on_a_cpu():
    """CST-01: why every comparison here is of the plain path."""
    q = torch.zeros(1, 12, 64, 64)
    with FlopCounterMode(display=False) as counter:
        F.scaled_dot_product_attention(q, q, q)
    assert counter.get_total_flops() == 0
    config = ViTConfig(
        image_size=8, patch_size=1, class_token=False, pooling="mean", width=768, heads=12, depth=1
    )
    assert 2 * forward(config).attention_products == 12_582_912


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_on_paper_does_what_torch_counts(name, train):
    config = preset(name)
    assert forward(config, train=train).flops == counted(config, train=train)


@given(config=configs())
@example(config=SMALL)
@example(config=replace(SMALL, register_tokens=3))
@example(config=replace(SMALL, pooling="attention", activation="swiglu"))
@example(config=replace(SMALL, stem="convolution", image_size=7, patch_size=4, channels=3))
@example(config=replace(SMALL, stem="convolution", patch_size=4, depth=0, positions="none"))
@settings(deadline=None, max_examples=40)
def test_any_model_on_paper_does_what_torch_counts(config):
    assert forward(config).flops == counted(config)
    assert forward(config, train=True).flops == counted(config, train=True)


@pytest.mark.slow
@given(config=configs())
@settings(deadline=None, max_examples=500)
def test_very_many_models_on_paper_do_what_torch_counts(config):
    assert forward(config).flops == counted(config)


@given(config=configs())
@example(config=SMALL)
@example(config=replace(SMALL, stem="convolution", patch_size=4))
@settings(deadline=None, max_examples=15)
def test_gradients_on_paper_are_what_torch_counts(config):
    both = counted(config, train=True, gradients=True)
    assert forward(config, train=True).flops + backward(config).flops == both


@pytest.mark.parametrize(("name", "giga"), PUBLISHED.items())
def test_a_preset_has_its_published_multiply_adds(name, giga):
    assert round(forward(preset(name)).total / 1e9, 3) == giga


@pytest.mark.parametrize(
    ("change", "giga", "share"),
    [
        ({"image_size": 384}, 55.484, 0.111),
        ({"patch_size": 32}, 4.409, 0.010),
        ({"patch_size": 8}, 78.148, 0.145),
        ({"image_size": 518, "patch_size": 14}, 151.574, 0.228),
    ],
)
def test_b16_changed_has_its_published_multiply_adds_and_share(change, giga, share):
    count = forward(replace(preset("b16"), **change))
    assert round(count.total / 1e9, 3) == giga
    assert round(count.attention_share, 3) == share


def test_attention_products_are_in_the_count():
    """CST-02: hooks on modules see no products, and miss a part that grows with the square."""
    count = forward(preset("b16"))
    assert (count.total, count.attention_products) == (17_563_828_224, 715_327_488)


def test_a_multiply_add_is_two_flops():
    """CST-03: one Linear of 768 to 1000."""
    count = forward(preset("b16"))
    assert count.head == 768_000
    assert count.flops == 2 * count.total == 35_127_656_448


@given(config=configs())
@settings(deadline=None)
def test_training_never_does_more_than_the_whole_forward_pass(config):
    whole, training = asdict(forward(config)), asdict(forward(config, train=True))
    assert all(training[part] <= whole[part] for part in whole)
    assert (training == whole) or config.pooling in ("cls", "distilled")
