"""The counterfactuals are what the damaged files really do."""

import shutil

import pytest
import torch

from tests.interop.golden_weights import CASES, DAMAGED, ROOT
from vitreous import load_weights
from vitreous.interop.check import difference
from vitreous.interop.doctor import counterfactuals, probe_images

SILENT = {
    "qkv_head_major": ("rows of qkv", "(heads, 3, e)"),
    "q_and_k_swapped": ("rows of qkv", "key, query, value"),
    "patch_hwc": ("order in a patch", "(row, column, channel)"),
    "patch_hw_swapped": ("order in a patch", "(channel, column, row)"),
    "patch_bgr": ("colours", "blue, green, red"),
    "pos_cls_last": ("class token's row", "last"),
    "pos_grid_transposed": ("grid of positions", "column by column"),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_counterfactual_moves_outputs_as_the_damaged_file_does(tmp_path, name):
    """A file with the damage, read rightly, is the whole file read wrongly, or the other way."""
    model, _ = load_weights(DAMAGED)
    shutil.copy(DAMAGED / "config.json", tmp_path)
    shutil.copy(DAMAGED / "variants" / f"{name}.safetensors", tmp_path / "model.safetensors")
    wrong, _ = load_weights(tmp_path)
    images = probe_images(model)
    found = {(c.convention, c.instead): c.moves for c in counterfactuals(model, images)}
    there = {(c.convention, c.instead): c.moves for c in counterfactuals(wrong, images)}
    with torch.no_grad():
        moved = difference(wrong(images), model(images))
        back = difference(model(images), wrong(images))
    assert any(
        abs(v - w) < 1e-6 for v, w in ((found[SILENT[name]], moved), (there[SILENT[name]], back))
    )
    assert moved > 0.01


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}/{case.file}")
def test_every_other_choice_would_be_seen(case):
    model, _ = load_weights(case.path, case.heads)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    found = list(counterfactuals(model, probe_images(model)))
    assert all(torch.equal(before[n], t) for n, t in model.state_dict().items())
    equal = (
        {"google", "bilinear_corners"}
        if model.config.position_resize in ("google", "bilinear_corners")
        else set()
    )
    # Some files were drawn so that every convention counts; in others eps hardly does.
    least = 5e-5 if "discriminates" in case.meta else 0
    assert all(other.moves > least for other in found if other.instead not in equal)
    assert {"eps of the norms", "rows of qkv"} <= {other.convention for other in found}


def test_probe_images_are_the_same_every_time():
    model, _ = load_weights(ROOT / "timm_vit_cls")
    assert torch.equal(probe_images(model), probe_images(model))
    assert 0.5 < probe_images(model, count=64).std() < 1.5
