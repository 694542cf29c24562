"""Attention maps are what the model used, and looking changes nothing."""

from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from torch import nn

from vitreous.config import ViTConfig
from vitreous.errors import ConfigError, ShapeError
from vitreous.inspection.layout import layout_of
from vitreous.inspection.record import Maps, record_attention
from vitreous.inspection.watch import Seen, attention_modules, watch
from vitreous.models.classifier import Classifier, build
from vitreous.nn import attention
from vitreous.nn.attention import attention_weights

CONFIG = ViTConfig(
    image_size=16, patch_size=4, width=32, depth=3, heads=4, classes=5, channels=3, dropout=0.1
)
"""MAP-01: three layers, four heads, seventeen tokens."""


@pytest.fixture
def model() -> Classifier:
    return build(CONFIG).eval()


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randn(2, 3, 16, 16)


def hooks_of(model: nn.Module) -> list[int]:
    kinds = [n for n in vars(model) if n.endswith(("hooks", "hooks_with_kwargs"))]
    return [len(getattr(each, kind)) for each in model.modules() for kind in kinds]


def state_of(model: nn.Module) -> tuple:
    return hooks_of(model), [each.training for each in model.modules()]


def test_maps_of_every_layer_have_rows_that_sum_to_one(model, images):
    with record_attention(model) as maps:
        model(images)
    assert list(maps) == ["blocks.0.attn", "blocks.1.attn", "blocks.2.attn"]
    for weights in maps.values():
        assert weights.shape == (2, 4, 17, 17)
        assert torch.allclose(weights.sum(dim=-1), torch.ones(2, 4, 17), atol=1e-6)
        assert not weights.requires_grad


@pytest.mark.parametrize("path", ["plain", "fused"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_maps_times_values_are_what_the_model_used(model, images, path, dtype, monkeypatch):
    monkeypatch.setattr(attention, "choose_path", lambda *_args, **_named: path)
    model, seen = model.to(dtype), {}
    with record_attention(model) as maps, watch(model, [*maps.chunks], seen.__setitem__):
        model(images.to(dtype))
    for name, weights in maps.items():
        assert weights.dtype == torch.float32
        used: Seen = seen[name]
        tolerance = 1e-6 if dtype == torch.float32 else 2e-2
        assert torch.allclose(weights @ used.v.float(), used.out.float(), atol=tolerance)


@pytest.mark.parametrize("rotary", [True, False])
def test_maps_are_of_turned_queries_and_hidden_keys_too(rotary):
    """What reached the attention counts: rotation done, mask applied."""
    inner = attention.Attention(16, 2).eval()
    x, mask = torch.randn(2, 5, 16), torch.rand(2, 1, 5, 5) > 0.3
    angle = torch.randn(5, 4) if rotary else None
    whole = nn.ModuleDict({"attn": inner})
    kept: dict[str, Seen] = {}
    with record_attention(whole) as maps, watch(whole, ["attn"], kept.__setitem__):
        inner(x, mask=mask, angle=angle)
    assert not maps["attn"][~mask.expand(2, 2, 5, 5)].any()
    assert torch.allclose(maps["attn"] @ kept["attn"].v, kept["attn"].out, atol=1e-6)


def test_recording_leaves_the_model_as_it_was(model, images):
    model.encoder.blocks[1].train()
    model.encoder.blocks[1].attn.attend.register_forward_hook(lambda *_: None)
    model.encoder.blocks[1].attn.dropout.p = 0.0
    before = state_of(model)
    torch.manual_seed(1)
    plain = model(images)
    torch.manual_seed(1)
    with record_attention(model) as maps:
        assert torch.equal(model(images), plain)
    assert len(maps) == 3
    assert state_of(model) == before


def test_recording_leaves_no_hook_when_the_body_raises(model, images):
    before = state_of(model)
    with suppress(ZeroDivisionError), record_attention(model):
        model(images)
        raise ZeroDivisionError
    assert state_of(model) == before


def test_recordings_may_be_nested(model, images):
    with record_attention(model) as outer:
        with record_attention(model, layers=[-1]) as inner:
            model(images)
        model(images)
    assert torch.equal(outer["blocks.2.attn"][:2], inner["blocks.2.attn"])
    assert len(outer["blocks.2.attn"]) == 4


def test_only_what_is_chosen_is_kept_and_it_is_the_same(model, images):
    with record_attention(model) as whole:
        model(images)
    chosen = {"layers": [-1, 0], "heads": [3, 1], "queries": ["class", 5, -1]}
    with record_attention(model, **chosen) as some:
        model(images)
    assert list(some) == ["blocks.0.attn", "blocks.2.attn"]
    for name, weights in some.items():
        assert torch.allclose(weights, whole[name][:, [3, 1]][:, :, [0, 5, 16]], atol=1e-7)


def test_kinds_of_tokens_are_told_apart(images):
    model = build(replace(CONFIG, register_tokens=2)).eval()
    with record_attention(model) as whole:
        model(images)
    places = {"class": [0], "registers": [1, 2], "patches": list(range(3, 19))}
    for kind, rows in places.items():
        with record_attention(model, queries=kind) as some:
            model(images)
        name = "blocks.1.attn"
        assert torch.allclose(some[name], whole[name][:, :, rows], atol=1e-7)


def test_the_layout_is_that_of_the_images_not_of_the_config(model):
    with record_attention(model, queries="patches") as maps:
        model(torch.randn(1, 3, 8, 24))
    assert maps.layout == layout_of(CONFIG, (2, 6))
    assert maps["blocks.0.attn"].shape == (1, 4, 12, 13)


def test_later_images_are_appended_and_another_length_is_refused(model, images):
    with record_attention(model, layers=[0]) as maps:
        model(images[:1])
        model(images[1:])
        with pytest.raises(ShapeError, match="cannot stand beside maps"):
            model(torch.randn(1, 3, 8, 8))
    with record_attention(model, layers=[0]) as at_once:
        model(images)
    assert torch.allclose(maps["blocks.0.attn"], at_once["blocks.0.attn"], atol=1e-6)


def test_in_training_a_last_block_has_only_the_rows_that_it_made(model, images):
    model.train()
    with record_attention(model) as maps:
        model(images)
    assert maps["blocks.1.attn"].shape == (2, 4, 17, 17)
    assert maps["blocks.2.attn"].shape == (2, 4, 1, 17)
    with (
        pytest.raises(ConfigError, match="made only the first 1 of 17 query rows"),
        record_attention(model, layers=[-1], queries=[3]),
    ):
        model(images)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_maps_made_without_gradients_are_ordinary_tensors(model, images, mode):
    with mode(), record_attention(model) as maps:
        model(images)
    maps["blocks.0.attn"].mul_(2)
    assert not maps["blocks.0.attn"].is_inference()


def test_gradients_flow_through_maps_where_they_are_wanted(model, images):
    with record_attention(model, layers=[1], gradients=True) as maps:
        model(images)
    maps["blocks.1.attn"][..., 0].sum().backward()
    assert model.encoder.blocks[0].attn.qkv.weight.grad.abs().sum() > 0


def test_autocast_does_not_make_maps_coarse(model, images):
    with torch.autocast("cpu", dtype=torch.bfloat16), record_attention(model) as maps:
        model(images)
    rows = maps["blocks.1.attn"].sum(dim=-1)
    assert torch.allclose(rows, torch.ones_like(rows), atol=1e-6)


def test_a_pool_is_recorded_only_when_asked_for(images):
    model = build(replace(CONFIG, pooling="attention")).eval()
    with record_attention(model) as maps:
        model(images)
    assert len(maps) == CONFIG.depth
    with record_attention(model, layers=["pool.attn"], queries="class") as pool:
        model(images)
    assert {name: w.shape for name, w in pool.items()} == {"pool.attn": (2, 4, 1, 17)}


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"layers": [3]}, "no layer 3; they go from 0 to 2"),
        ({"layers": [-4]}, "no layer -4"),
        ({"layers": ["blocks.7.attn"]}, "no layer is called 'blocks.7.attn'; there are blocks.0"),
        ({"heads": [4]}, "no head of blocks.0.attn 4; they go from 0 to 3"),
        ({"queries": "registers"}, "no kind of token of this model; it has: class, patches"),
        ({"queries": ["clas"]}, "'clas' is no kind of token; it has: class, patches"),
    ],
)
def test_what_does_not_exist_is_refused_before_the_model_runs(model, choice, says):
    with pytest.raises(ConfigError, match=says), record_attention(model, **choice):
        raise AssertionError("the body ran")


def test_a_query_row_that_does_not_exist_is_refused(model, images):
    with (
        pytest.raises(ConfigError, match="no query row 17; they go from 0 to 16"),
        record_attention(model, queries=17),
    ):
        model(images)


def test_memory_is_bounded_before_anything_is_computed(model, images, monkeypatch):
    one = 2 * 4 * 17 * 17 * 4
    with record_attention(model, limit=3 * one) as maps:
        model(images)
    assert maps.bytes == 3 * one
    monkeypatch.setattr("vitreous.inspection.record.weights_of", lambda *_: pytest.fail("computed"))
    says = r"3 layers, 2 images, 4 heads and 17×17 tokens would need 27.7 kB.*27.7 kB.*one layer"
    with pytest.raises(ConfigError, match=says), record_attention(model, limit=3 * one - 1):
        model(images)


def test_memory_is_bounded_over_all_forward_passes(model, images):
    one = 2 * 4 * 17 * 17 * 4
    with record_attention(model, limit=5 * one) as maps:
        model(images)
        with pytest.raises(ConfigError, match="the limit is"):
            model(images)
    assert maps.bytes == 3 * one


def test_a_map_that_has_not_been_made_says_so():
    maps = Maps(["blocks.0.attn"])
    assert (len(maps), list(maps), repr(maps)) == (0, [], "Maps(nothing recorded yet)")
    with pytest.raises(KeyError, match="has not run yet"):
        maps["blocks.0.attn"]


def test_a_notebook_shows_the_maps(model, images):
    with record_attention(model) as maps:
        model(images)
    assert maps._repr_html_().startswith("<figure><img")
    with record_attention(model, queries=[0]) as rows:
        model(images)
    assert "(2, 4, 1, 17)" in rows._repr_html_()


def test_names_follow_the_modules(model):
    assert attention_modules(model)["blocks.1.attn"] is model.encoder.blocks[1].attn.attend


def test_a_head_that_is_left_out_is_not_computed(model, images, monkeypatch):
    shapes = []

    def spy(q, k, mask=None):
        shapes.append((q.shape, k.shape))
        return attention_weights(q, k, mask)

    monkeypatch.setattr("vitreous.inspection.record.attention_weights", spy)
    with record_attention(model, layers=[1], heads=[2], queries="class"):
        model(images)
    assert shapes == [((2, 1, 1, 8), (2, 1, 17, 8))]
