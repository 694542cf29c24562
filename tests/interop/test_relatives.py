"""Formats without a file of their own here: a relative's tensors under their names and packing."""

import re

import numpy as np
import pytest
import safetensors.torch
import torch
from torch import Tensor

from tests.interop.golden_weights import ROOT
from vitreous import CheckpointError, load_weights
from vitreous.interop.check import compare

HF_BLOCK = {
    r"attention\.o_proj": "attn.proj",
    r"attention\.output\.dense": "attn.proj",
    "layer_scale1.lambda1": "ls1.gamma",
    "layer_scale2.lambda1": "ls2.gamma",
    "layernorm_before": "norm1",
    "layernorm_after": "norm2",
    r"intermediate\.dense": "mlp.fc1",
    r"(?<=\d)\.output\.dense": ".mlp.fc2",
    r"mlp\.up_proj": "mlp.fc1",
    r"mlp\.down_proj": "mlp.fc2",
}


def tensors_of(name: str) -> dict[str, Tensor]:
    return safetensors.torch.load_file(ROOT / name / "model.safetensors")


def originals(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Hugging Face's tensors under the names that DINO's and MAE's own code gives them."""
    found, parts = {}, {}
    for name, tensor in tensors.items():
        new = name.removeprefix(prefix).removeprefix("embeddings.")
        new = re.sub(r"^(encoder\.)?layer\.", "blocks.", new)
        new = new.replace("patch_embeddings.projection", "patch_embed.proj")
        new = re.sub(r"^patch_embeddings\.", "patch_embed.proj.", new)
        new = new.replace("position_embeddings", "pos_embed").replace("layernorm.", "norm.", 1)
        for theirs, ours in HF_BLOCK.items():
            new = re.sub(theirs, ours, new)
        third = re.search(r"attention\.(?:attention\.)?([qkv])\w*\.(weight|bias)$", new)
        if third:
            key = new[: third.start()] + f"attn.qkv.{third[2]}"
            parts.setdefault(key, {})[third[1]] = tensor
        else:
            found[new] = tensor
    for key, three in parts.items():
        zeros = torch.full_like(three["q"], float("nan"))
        found[key] = torch.cat([three["q"], three.get("k", zeros), three["v"]])
    return found


def test_the_original_dinov3_is_read_with_its_masked_bias(tmp_path):
    """Its keys' bias may hold NaN: a mask takes it out."""
    tensors = originals(tensors_of("hf_dinov3"), "")
    tensors["storage_tokens"] = tensors.pop("register_tokens")
    tensors["mask_token"] = tensors["mask_token"][0]
    tensors["rope_embed.periods"] = 100.0 ** (torch.arange(2) / 2)
    mask = torch.ones(72)
    mask[24:48] = 0
    tensors |= {f"blocks.{i}.attn.qkv.bias_mask": mask.clone() for i in range(2)}
    torch.save(tensors, tmp_path / "a.pth")
    model, report = load_weights(tmp_path / "a.pth")
    assert (report.format, model.config.heads) == ("DINOv3", 3)
    gaps = compare(model, ROOT / "hf_dinov3" / "io.npz", "DINOv3")
    assert max(gaps.values()) <= 1e-5
    dropped = {row.source for row in report.rows if row.action == "dropped"}
    assert dropped == {"mask_token", *(f"blocks.{i}.attn.qkv.bias_mask" for i in range(2))}
    assert {row.source: row.action for row in report.rows}["rope_embed.periods"] == "taken"


def test_the_original_mae_is_read_without_its_decoder(tmp_path):
    tensors = originals(tensors_of("hf_mae"), "vit.")
    kept = {name: t for name, t in tensors.items() if not name.startswith("decoder.")}
    kept |= {"decoder_embed.weight": torch.zeros(3, 3), "mask_token": torch.zeros(1, 1, 3)}
    torch.save({"model": kept}, tmp_path / "a.pth")
    model, report = load_weights(tmp_path / "a.pth", heads=3)
    assert (report.format, model.config.norm_eps) == ("MAE", 1e-6)
    assert report.conventions["position_resize"] == "bicubic"
    reasons = {row.source: row.note for row in report.rows if row.action == "dropped"}
    assert reasons["decoder_embed.weight"] == "the decoder, for training only"
    with np.load(ROOT / "hf_mae" / "io.npz") as file, torch.no_grad():
        got = model.tokens(torch.from_numpy(file["x"])).numpy()
        # its eps is not Hugging Face's, and the stream here is large enough for that to be little
        assert abs(got - file["tokens"]).max() < 1e-3 * abs(file["tokens"]).max()


def test_blocks_in_chunks_and_gates_of_the_original_dinov2_are_read(tmp_path):
    tensors = torch.load(ROOT / "dinov2_orig" / "dinov2_vit_pretrain.pth", weights_only=True)
    chunked = {re.sub(r"^blocks\.(\d)\.", r"blocks.\1.\1.", n): t for n, t in tensors.items()}
    torch.save({"teacher": {f"backbone.{n}": t for n, t in chunked.items()}}, tmp_path / "a.pth")
    model, report = load_weights(tmp_path / "a.pth", heads=4)
    assert report.format == "DINOv2"
    assert max(compare(model, ROOT / "dinov2_orig" / "io.npz", "DINOv2").values()) <= 1e-5
    gated = originals(tensors_of("hf_dinov2_classifier_swiglu"), "dinov2.")
    gated = {
        name.replace("weights_in", "w12").replace("weights_out", "w3"): tensor
        for name, tensor in gated.items()
        if not name.startswith("classifier")
    }
    torch.save(gated, tmp_path / "a.pth")
    model, report = load_weights(tmp_path / "a.pth", heads=2)
    assert (report.format, model.config.activation) == ("DINOv2", "swiglu")
    with np.load(ROOT / "hf_dinov2_classifier_swiglu" / "io.npz") as file, torch.no_grad():
        got = model.tokens(torch.from_numpy(file["x"])).numpy()
        assert abs(got - file["tokens"]).max() <= 1e-5 * abs(file["tokens"]).max()


def test_deit_3s_gammas_are_layer_scale(tmp_path):
    tensors = tensors_of("timm_deit3")
    renamed = {re.sub(r"ls(\d)\.gamma", r"gamma_\1", name): t for name, t in tensors.items()}
    torch.save({"model": renamed}, tmp_path / "a.pth")
    model, report = load_weights(tmp_path / "a.pth", heads=3)
    assert max(compare(model, ROOT / "timm_deit3" / "io.npz", "timm").values()) <= 1e-5
    assert {row.source for row in report.rows} == renamed.keys()


def test_old_torchvision_names_its_linear_maps(tmp_path):
    file = ROOT / "torchvision_vit" / "vit_torchvision.pth"
    tensors = torch.load(file, weights_only=True)
    old = {
        n.replace(".mlp.0.", ".mlp.linear_1.").replace(".mlp.3.", ".mlp.linear_2."): t
        for n, t in tensors.items()
    }
    torch.save(old, tmp_path / "a.pth")
    model, _ = load_weights(tmp_path / "a.pth", heads=4)
    gaps = compare(model, ROOT / "torchvision_vit" / "io.npz", "torchvision")
    assert max(gaps.values()) <= 1e-5


def test_vit_pytorchs_earlier_wrappers_and_norm_before_the_head_are_read(tmp_path):
    tensors = torch.load(ROOT / "vit_pytorch" / "vit.pt", weights_only=True)
    old = {}
    for name, tensor in tensors.items():
        new = re.sub(r"(layers\.\d\.0)\.(to_qkv|to_out)", r"\1.fn.\2", name)
        new = re.sub(r"(layers\.\d\.1)\.net\.0", r"\1.norm", new)
        new = re.sub(r"(layers\.\d\.1)\.net\.", r"\1.fn.net.", new)
        old[new.replace("mlp_head.", "mlp_head.1.")] = tensor
    old |= {"mlp_head.0.weight": torch.ones(32), "mlp_head.0.bias": torch.zeros(32)}
    old["cls_token"] = old["cls_token"][None]
    old["pos_embedding"] = old["pos_embedding"][None]
    torch.save(old, tmp_path / "a.pt")
    model, _ = load_weights(tmp_path / "a.pt", heads=3)
    with np.load(ROOT / "vit_pytorch" / "io.npz") as file, torch.no_grad():
        got = model.tokens(torch.from_numpy(file["x"])).numpy()
        assert abs(got - file["tokens"]).max() <= 1e-5 * abs(file["tokens"]).max()
    assert model.config.pooled_norm


def test_two_formats_at_once_are_not_chosen_between(tmp_path):
    one = torch.load(ROOT / "torchvision_vit" / "vit_torchvision.pth", weights_only=True)
    torch.save(one | tensors_of("timm_vit_cls"), tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="its names fit timm and torchvision"):
        load_weights(tmp_path / "a.pth", heads=4)
