"""What no file says: each format's own conventions, and which are named as taken for granted."""

import shutil
from dataclasses import replace

import pytest
import safetensors.torch
import torch

from tests.interop.golden_weights import CASES, ROOT
from vitreous import CheckpointError, ViTConfig, build, load_weights, save
from vitreous.interop.write import write_weights

WITH_CONFIG = [
    case
    for case in CASES
    if (case.folder / "config.json").exists() and case.path.is_dir() and case.format != "timm"
]
BARE = ["norm_eps", "activation", "position_resize", "pooling", "mean", "std", "grid", "heads"]


@pytest.mark.parametrize("case", WITH_CONFIG, ids=lambda case: f"{case.name}/{case.file}")
def test_without_a_config_the_formats_own_conventions_hold(tmp_path, case):
    shutil.copy(case.path / "model.safetensors", tmp_path)
    heads = case.meta["arch"]["heads"]
    _, said = load_weights(case.path)
    _, unsaid = load_weights(tmp_path, heads, source_size=16 if "dinov3" in case.name else None)
    assert {n: said.conventions[n] for n in BARE} == {n: unsaid.conventions[n] for n in BARE}


def test_a_bare_timm_file_says_what_it_takes_for_granted(tmp_path):
    shutil.copy(ROOT / "timm_vit_cls" / "model.safetensors", tmp_path)
    _, report = load_weights(tmp_path, heads=4)
    (note,) = [note for note in report.notes if "usual ones" in note]
    assert "eps 1e-06, gelu, cls pooling and 4 heads" in note


def test_a_table_of_no_square_asks_for_the_size_of_its_images(tmp_path):
    config = ViTConfig(image_size=(8, 24), channels=3, width=16, depth=1, heads=2, classes=3)
    model = build(config).eval()
    write_weights(model, tmp_path, "timm")
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"13 rows; a square grid .* say source_size"):
        load_weights(tmp_path, heads=2)
    again, _ = load_weights(tmp_path, heads=2, source_size=(8, 24))
    images = torch.randn(1, 3, 8, 24)
    assert torch.equal(again(images), model(images))


def test_big_visions_names_are_read_with_blocks_in_a_stack(tmp_path):
    """Prefixes, a class token without a row, stacked blocks, a text tower beside."""
    import numpy as np

    with np.load(ROOT / "vit_jax_npz" / "vit_jax.npz") as file:
        arrays = {name: file[name] for name in file.files}
    plain, _ = load_weights(ROOT / "vit_jax_npz" / "vit_jax.npz")
    table = arrays.pop("Transformer/posembed_input/pos_embedding")
    arrays["pos_embedding"] = table[:, 1:]
    arrays["cls"] = arrays["cls"] + table[:, :1]
    renamed: dict = {}
    for name, array in arrays.items():
        new = name.replace("LayerNorm_2", "LayerNorm_1").replace("MlpBlock_3", "MlpBlock_0")
        new = new.replace("MultiHeadDotProductAttention_1", "MultiHeadDotProductAttention_0")
        for i in (0, 1):
            if f"encoderblock_{i}/" in new:
                rest = new.replace(f"encoderblock_{i}/", "encoderblock/")
                renamed.setdefault(rest, [None, None])[i] = array
                break
        else:
            renamed[new] = array
    stacked = {
        f"params/img/{name}": np.stack(array) if isinstance(array, list) else array
        for name, array in renamed.items()
    }
    stacked |= {"params/txt/head/kernel": np.zeros((3, 3)), "params/t": np.zeros(1)}
    np.savez(tmp_path / "a.npz", **stacked)
    model, report = load_weights(tmp_path / "a.npz")
    images = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(model(images), plain(images), atol=1e-5, rtol=1e-5)
    rows = {row.source: row for row in report.rows}
    assert len(rows) == len(report.rows) == len(stacked)
    assert rows["params/txt/head/kernel"].note == "the text tower"
    assert rows["params/t"].note == "temperature of the contrastive loss"


def test_openclips_own_activation_is_gelu_and_its_towers_of_timm_are_read(tmp_path):
    import json

    tensors = torch.load(ROOT / "openai_clip_visual" / "clip_visual.pth", weights_only=True)
    beside = {"token_embedding.weight": torch.zeros(5, 4), "logit_scale": torch.zeros(())}
    beside |= {"positional_embedding": torch.zeros(3, 4), "text_projection": torch.zeros(4, 4)}
    torch.save(tensors | beside, tmp_path / "open_clip_pytorch_model.bin")
    _, openai = load_weights(tmp_path, heads=4)
    assert openai.conventions["activation"] == "quick_gelu"
    reasons = {row.source: row.note for row in openai.rows if row.action == "dropped"}
    assert reasons.keys() == beside.keys()
    config = {"model_cfg": {"embed_dim": 20, "vision_cfg": {"image_size": 16, "layers": 2}}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    _, ours = load_weights(tmp_path, heads=4)
    assert ours.conventions["activation"] == "gelu"
    trunk = safetensors.torch.load_file(ROOT / "timm_siglip_map" / "model.safetensors")
    trunk = {name: t for name, t in trunk.items() if not name.startswith("head.")}
    named = {f"visual.trunk.{name}": tensor for name, tensor in trunk.items()}
    torch.save(named | beside, tmp_path / "open_clip_pytorch_model.bin")
    config["model_cfg"]["vision_cfg"] = {"timm_model_name": "vit_base_patch32_siglip_256"}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    model, report = load_weights(tmp_path, heads=3)
    assert report.format == "OpenCLIP (timm tower)"
    plain, _ = load_weights(ROOT / "timm_siglip_map")
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(model.encode(images), plain.encode(images))
    assert replace(model.config, classes=5) == plain.config


def test_a_checkpoint_of_ours_is_read_with_everything_that_it_knows(tmp_path):
    config = ViTConfig(image_size=28, width=16, depth=1, heads=2, classes=3)
    model = build(config).eval()
    model.class_names = ["one", "two", "three"]
    save(model, tmp_path)
    again, report = load_weights(tmp_path)
    assert report.format == "vitreous"
    assert len(report.rows) == len(model.state_dict())
    assert (again.class_names, again.image_input) == (model.class_names, model.image_input)
    images = torch.randn(1, 1, 28, 28)
    assert torch.equal(again(images), model(images))
