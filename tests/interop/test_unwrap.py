"""State dicts as training scripts save them: wrapped, beside others, in shards."""

import json

import pytest
import safetensors.torch
import torch

from tests.interop.golden_weights import ROOT
from vitreous import CheckpointError, ViTConfig, build, load_weights

TIMM = ROOT / "timm_vit_cls" / "model.safetensors"
OURS = ViTConfig(image_size=8, width=16, depth=2, heads=2)


@pytest.fixture
def bare():
    return safetensors.torch.load_file(TIMM)


def prefixed(tensors, prefix):
    return {prefix + name: tensor for name, tensor in tensors.items()}


WRAPPED = {
    "module.": lambda t: prefixed(t, "module."),
    "_orig_mod.": lambda t: prefixed(t, "_orig_mod."),
    "model": lambda t: {"model": t, "epoch": 3},
    "state_dict": lambda t: {"state_dict": prefixed(t, "model."), "lr": 0.1},
    "both": lambda t: {"model": prefixed(t, "module._orig_mod.")},
    "deep": lambda t: {"state": 1, "model": {"state_dict": t}},
}


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_a_wrapped_file_holds_the_same_model(tmp_path, bare, wrapper):
    """CKP-04."""
    plain, _ = load_weights(TIMM)
    torch.save(WRAPPED[wrapper](bare), tmp_path / "a.pth")
    model, report = load_weights(tmp_path / "a.pth", heads=4)
    assert all(torch.equal(model.state_dict()[n], t) for n, t in plain.state_dict().items())
    assert report.notes


@pytest.mark.parametrize("wrapper", WRAPPED)
def test_our_own_state_dict_is_read_however_wrapped(tmp_path, wrapper):
    """CKP-04."""
    model = build(OURS)
    torch.save(WRAPPED[wrapper](model.state_dict()), tmp_path / "a.pth")
    again, _ = load_weights(tmp_path / "a.pth", config=OURS)
    assert all(torch.equal(again.state_dict()[n], t) for n, t in model.state_dict().items())


@pytest.mark.parametrize("ours", [True, False])
def test_one_renamed_tensor_is_missing_and_surplus(tmp_path, bare, ours):
    """CKP-04."""
    tensors = dict(build(OURS).state_dict()) if ours else bare
    name = "encoder.blocks.1.mlp.fc1.bias" if ours else "blocks.1.mlp.fc1.bias"
    tensors[f"{name}s"] = tensors.pop(name)
    torch.save(tensors, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match=rf"missing {name}; surplus {name}s"):
        load_weights(tmp_path / "a.pth", heads=4, config=OURS if ours else None)


def test_our_tensors_without_a_config_ask_for_it(tmp_path):
    torch.save(build(OURS).state_dict(), tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="no config: give config="):
        load_weights(tmp_path / "a.pth")


@pytest.mark.parametrize("flat", [True, False])
def test_of_student_and_teacher_the_teacher_is_taken(tmp_path, bare, flat):
    student = {name: torch.zeros_like(tensor) for name, tensor in bare.items()}
    sides = {"student": student, "teacher": bare}
    head = {"head.mlp.0.weight": torch.zeros(3, 3), "dino_head.last_layer.weight": torch.zeros(3)}
    sides = {name: prefixed(side, "backbone.") | head for name, side in sides.items()}
    content = dict(sides)
    if flat:
        content = prefixed(sides["student"], "student.") | prefixed(sides["teacher"], "teacher.")
    torch.save(content | {"epoch": 1}, tmp_path / "a.pth")
    model, report = load_weights(tmp_path / "a.pth", heads=4)
    assert torch.equal(model.state_dict()["encoder.norm.weight"], bare["norm.weight"])
    reasons = {row.source: row.note for row in report.rows if row.action == "dropped"}
    assert reasons["student.backbone.norm.weight"] == "the student; the teacher is taken"
    assert reasons["head.mlp.0.weight"] == "head of the self-supervised training"
    assert len(reasons) == len(bare) + 4
    assert any("teacher" in note for note in report.notes)


def test_state_of_the_optimizer_is_listed_as_dropped(tmp_path, bare):
    moments = {"state": {0: {"exp_avg": torch.zeros(2)}}, "param_groups": [{"lr": 0.1}]}
    torch.save({"model": bare, "optimizer": moments}, tmp_path / "a.pth")
    _, report = load_weights(tmp_path / "a.pth", heads=4)
    (row,) = [row for row in report.rows if row.action == "dropped"]
    assert (row.source, row.note) == ("optimizer.state.0.exp_avg", "state of the optimizer")


def test_a_file_without_a_state_dict_says_what_it_holds(tmp_path):
    for content, sentence in [({"epoch": 1}, "it holds epoch"), ([1], "a list"), ({}, "nothing")]:
        torch.save(content, tmp_path / "a.pth")
        with pytest.raises(CheckpointError, match=sentence):
            load_weights(tmp_path / "a.pth")


def shards(folder, tensors):
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        safetensors.torch.save_file({name: tensors[name] for name in some}, folder / file)
    where = {name: file for file, some in parts.items() for name in some}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    return where


def test_shards_are_one_model(tmp_path, bare):
    shards(tmp_path, bare)
    model, report = load_weights(tmp_path, heads=4)
    whole, _ = load_weights(TIMM)
    assert len(report.rows) == len(bare)
    assert all(torch.equal(model.state_dict()[n], t) for n, t in whole.state_dict().items())


def test_a_shard_that_is_absent_or_holds_something_else_is_refused(tmp_path, bare):
    where = shards(tmp_path, bare)
    where["norm.bias"] = (
        "a.safetensors" if where["norm.bias"] == "b.safetensors" else "b.safetensors"
    )
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": where}))
    with pytest.raises(CheckpointError, match=r"does not hold what it should: norm\.bias"):
        load_weights(tmp_path, heads=4)
    (tmp_path / "a.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"a\.safetensors: there is no such file"):
        load_weights(tmp_path, heads=4)
