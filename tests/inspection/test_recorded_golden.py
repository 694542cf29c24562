"""Recorded attention is what the source libraries themselves computed."""

import pytest
import torch

from tests.interop.golden_weights import CASES
from vitreous import load_weights, record_attention
from vitreous.interop.check import difference

WITH_MAPS = [case for case in CASES if "attn_first" in case.outputs()]


@pytest.mark.parametrize("case", WITH_MAPS, ids=lambda case: f"{case.name}/{case.file}")
def test_recorded_attention_is_the_source_librarys(case):
    model, _ = load_weights(case.path, case.heads)
    outputs = case.outputs()
    with torch.no_grad(), record_attention(model) as maps:
        logits = model(outputs["x"])
        assert torch.equal(logits, model.eval()(outputs["x"]))
    first, *_, last = list(maps)
    n = len(outputs["x"])
    assert difference(maps[first][:n], outputs["attn_first"]) <= 1e-5
    assert difference(maps[last][:n], outputs["attn_last"]) <= 1e-5


def test_the_pooling_heads_attention_is_the_source_librarys():
    case = next(case for case in CASES if case.name == "hf_siglip_vision")
    model, _ = load_weights(case.path)
    outputs = case.outputs()
    with torch.no_grad(), record_attention(model, layers=["pool.attn"]) as maps:
        model(outputs["x"])
    assert difference(maps["pool.attn"], outputs["attn_pool"]) <= 1e-5


def test_registers_and_the_distillation_token_are_told_apart():
    for name, kinds in {
        "timm_deit_distilled": ["class", "distillation", "patches"],
        "hf_dinov2_registers": ["class", "registers", "patches"],
        "hf_siglip_vision": ["patches"],
    }.items():
        case = next(case for case in CASES if case.name == name)
        model, _ = load_weights(case.path)
        images = case.outputs()["x_rect"]
        with torch.no_grad(), record_attention(model, queries="patches") as maps:
            model(images)
        assert list(maps.layout.kinds) == kinds
        assert maps.layout.grid == model.patch_embed.grid(images)
        patches = maps.layout.kinds["patches"]
        assert all(map_.shape[2:] == (len(patches), patches.stop) for map_ in maps.values())
