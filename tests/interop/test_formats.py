"""Loaded models say what their own libraries said, to 1e-5 of the largest value."""

import pytest
import torch
from torch import nn

from tests.interop.golden_weights import CASES, Case
from vitreous import CheckpointError, load_weights
from vitreous.interop.check import compare, difference

LIMIT = 1e-5
EACH = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}/{case.file}")


def load(case: Case):
    return load_weights(case.path, case.heads)


@EACH
def test_outputs_are_the_source_librarys_at_every_size(case):
    model, report = load(case)
    assert report.format == case.format
    outputs = case.outputs()
    gaps = compare(model, case.folder / "io.npz", report.format)
    stored = {
        name
        for name in outputs
        if name.split("_rect")[0].removesuffix("_sq")
        in ("logits", "pooled", "tokens", "image_embeds")
    }
    assert gaps.keys() == stored
    assert max(gaps.values()) <= LIMIT


@EACH
def test_what_enters_and_leaves_the_first_block_is_the_source_librarys(case):
    model, _ = load(case)
    outputs, seen = case.outputs(), {}
    first: nn.Module = model.encoder.blocks[0]
    first.register_forward_hook(lambda _, given, made: seen.update(embed=given[0], block_0=made))
    with torch.no_grad():
        model(outputs["x"])
    for name in ("embed", "block_0"):
        assert difference(seen[name], outputs[name]) <= LIMIT, name


@EACH
def test_every_tensor_of_the_file_has_one_row(case):
    _, report = load(case)
    names = [row.source for row in report.rows]
    assert len(names) == len(set(names))
    by_action = {row.source: row for row in report.rows}
    assert all(row.target for row in report.rows if row.action != "dropped")
    assert all(row.note for row in report.rows if row.action == "dropped")
    dropped = {name for name, row in by_action.items() if row.action == "dropped"}
    unused = ("mask_token", "decoder.", "text_", "logit_")
    assert all(any(word in name for word in unused) for name in dropped)


@EACH
def test_the_conventions_are_the_source_librarys(case):
    model, report = load(case)
    said = case.meta["conventions"]
    assert model.config.norm_eps == said["ln_eps"]
    kinds = {"erf": "gelu", "tanh": "gelu_tanh", "Quick": "quick_gelu", "none": "swiglu"}
    kind = next(ours for word, ours in kinds.items() if said["gelu"].startswith(word))
    assert model.config.activation == report.conventions["activation"] == kind
    given = said["normalisation"]
    if isinstance(given, dict):
        assert model.image_input.mean == tuple(given["mean"])
        assert model.image_input.std == tuple(given["std"])
    else:
        assert model.image_input is None


@pytest.mark.parametrize("case", [c for c in CASES if c.heads], ids=lambda case: case.name)
def test_heads_are_asked_for_where_nothing_tells_them(case):
    if case.name == "hf_vit_classifier":
        return  # its config lies beside it
    with pytest.raises(CheckpointError, match="give heads="):
        load_weights(case.path)


def test_heads_that_the_file_contradicts_are_refused():
    with pytest.raises(CheckpointError, match="heads=2 was given, and the file says 4"):
        load_weights(CASES[0].path, heads=2)


def test_published_widths_have_published_heads(tmp_path):
    from dataclasses import replace

    from vitreous import build, preset
    from vitreous.interop.write import to_torchvision

    config = replace(preset("s16"), depth=1, image_size=32, classes=3)
    torch.save(to_torchvision(build(config)).tensors, tmp_path / "s16.pth")
    model, report = load_weights(tmp_path / "s16.pth")
    assert model.config.heads == report.conventions["heads"] == 6
