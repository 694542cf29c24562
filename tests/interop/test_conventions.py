"""Cases that failed silently somewhere: fused thirds, activations, registers, sizes."""

import pytest
import safetensors.torch
import torch
from torch.testing import assert_close

from tests.interop.golden_weights import CASES, ROOT
from vitreous import CheckpointError, load_weights, save
from vitreous.checkpoints.store import load
from vitreous.interop.dino import neighbours
from vitreous.nn.mlp import ACTIVATIONS
from vitreous.nn.positions import rotate

HF = ROOT / "hf_vit_classifier" / "model.safetensors"


def test_query_key_and_value_become_three_thirds(tmp_path):
    """CKP-01."""
    tensors = safetensors.torch.load_file(HF)
    for name, tensor in tensors.items():
        for number, part in enumerate(("query", "key", "value"), start=1):
            if f"attention.attention.{part}" in name:
                tensors[name] = torch.full_like(tensor, float(number))
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors")
    model, report = load_weights(tmp_path, heads=4)
    for block in model.encoder.blocks:
        for tensor in (block.attn.qkv.weight, block.attn.qkv.bias):
            assert [third.unique().tolist() for third in tensor.chunk(3)] == [[1.0], [2.0], [3.0]]
    assert len(report.rows) == len(tensors)
    assert report.counts["joined"] == 12


def test_each_activation_has_its_published_values():
    """CKP-02."""
    published = {
        "gelu": (0.841345, -0.158655),
        "gelu_tanh": (0.841192, -0.158808),
        "quick_gelu": (0.845796, -0.154204),
    }
    for name, (one, minus_one) in published.items():
        got = ACTIVATIONS[name](torch.tensor([1.0, -1.0]))
        assert_close(got, torch.tensor([one, minus_one]), atol=1e-6, rtol=0.0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}/{case.file}")
def test_conventions_survive_saving_and_loading(tmp_path, case):
    """CKP-02."""
    model, _ = load_weights(case.path, case.heads)
    save(model, tmp_path)
    again = load(tmp_path)
    assert again.config == model.config
    assert again.image_input == model.image_input
    images = case.outputs()["x"]
    with torch.no_grad():
        assert torch.equal(again(images), model(images))


def test_registers_get_no_position_and_stand_behind_the_class_token(tmp_path):
    """CKP-06."""
    tensors = safetensors.torch.load_file(ROOT / "timm_vit_cls" / "model.safetensors")
    width = 32
    tensors |= {
        "cls_token": torch.zeros(1, 1, width),
        "register_tokens": torch.full((1, 4, width), 7.0),
        "pos_embed": torch.arange(257.0)[None, :, None].repeat(1, 1, width),
        "patch_embed.proj.weight": torch.zeros(width, 3, 14, 14),
        "patch_embed.proj.bias": torch.zeros(width),
    }
    torch.save(tensors, tmp_path / "a.pth")
    model, _ = load_weights(tmp_path / "a.pth", heads=4)
    seen = []
    model.encoder.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    with torch.no_grad():
        model(torch.randn(1, 3, 224, 224))
    assert seen[0][0, :, 0].tolist() == [0.0, 7.0, 7.0, 7.0, 7.0, *range(1, 257)]


def test_another_size_is_stretched_at_loading_as_when_called():
    """CKP-10."""
    for case in CASES:
        outputs = case.outputs()
        images = outputs.get("x_rect", outputs.get("x_sq"))
        if images is None:
            continue
        size = (images.shape[2], images.shape[3])
        model, _ = load_weights(case.path, case.heads)
        resized, report = load_weights(case.path, case.heads, image_size=size)
        assert resized.config.image_shape == size
        assert any(model.config.position_resize in note for note in report.notes)
        with torch.no_grad():
            assert_close(resized(images), model(images), atol=1e-6, rtol=1e-6)


def test_a_size_that_no_patch_tiles_is_refused():
    with pytest.raises(CheckpointError, match="does not tile"):
        load_weights(HF, image_size=17)


@pytest.mark.parametrize("heads", [1, 3])
def test_neighbours_turn_as_halves_did(heads):
    """Rows in the new order, turned in pairs of neighbours: the same products of q and k."""
    q, k = torch.randn(2, 1, heads, 5, 8)
    angle = torch.rand(5, 4)
    old = rotate(q, angle, layout="halves") @ rotate(k, angle, layout="halves").mT
    order = neighbours(heads, 8)
    flat = [x.transpose(1, 2).flatten(2)[..., order].unflatten(2, (heads, 8)) for x in (q, k)]
    q, k = (x.transpose(1, 2) for x in flat)
    assert_close(rotate(q, angle) @ rotate(k, angle).mT, old)
