"""Files that are broken, wrong or malicious: each is refused with a sentence, and nothing runs."""

import json
import pickle
import shutil

import numpy as np
import pytest
import safetensors.torch
import torch

from tests.interop.golden_weights import DAMAGED
from vitreous import CheckpointError, load_weights

VARIANTS = json.loads((DAMAGED / "meta.json").read_text())["variants"]
# Whether they belong to the model cannot be known: they are taken, and the report has them.
TAKEN = {"surplus_layerscale.safetensors"}


def of_kind(*kinds):
    return [name for name, variant in VARIANTS.items() if variant["kind"] in kinds]


@pytest.fixture
def place(tmp_path):
    """Put a variant where its library would look for it, beside the config."""

    def put(name: str):
        path = tmp_path / f"model.{name.rsplit('.')[-1]}"
        shutil.copy(DAMAGED / "variants" / name, path)
        shutil.copy(DAMAGED / "config.json", tmp_path)
        return path

    return put


@pytest.mark.parametrize("name", of_kind("unreadable", "format violation"))
def test_a_broken_file_is_refused_by_name(place, name):
    path = place(name)
    with pytest.raises(CheckpointError, match=path.name):
        load_weights(path)


@pytest.mark.parametrize("name", sorted(set(of_kind("wrong")) - TAKEN))
def test_what_does_not_fit_its_config_is_refused(place, name):
    with pytest.raises(CheckpointError, match=r"model\.safetensors: .{10}"):
        load_weights(place(name))


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("missing_one.safetensors", r"blocks\.1\.norm2\.bias"),
        ("fc1_transposed.safetensors", r"blocks\.0\.mlp\.fc1\.weight \(12, 24\)"),
        ("qkv_two_thirds.safetensors", r"blocks\.1\.attn\.qkv\.weight \(24, 12\)"),
        ("nan.safetensors", r"blocks\.0\.norm1\.weight holds 1 of 12"),
        ("inf.safetensors", r"blocks\.1\.mlp\.fc2\.bias holds 1 of 12"),
        ("int_tensor.safetensors", r"blocks\.0\.mlp\.fc2\.bias holds torch.int32"),
        ("surplus_unrelated.safetensors", r"surplus ema\.decay, optimizer\.step"),
        ("missing_head.safetensors", r"head\.weight is missing"),
        ("pos_5x5.safetensors", "26 rows; a grid of 4×4"),
        ("duplicate_name.safetensors", r"names twice: norm\.bias"),
    ],
)
def test_the_sentence_names_the_tensor(place, name, tensor):
    with pytest.raises(CheckpointError, match=tensor):
        load_weights(place(name))


def test_tensors_that_may_belong_to_the_model_are_taken_and_reported(place):
    model, report = load_weights(place(*TAKEN))
    assert model.config.layer_scale is not None
    assert sum("gamma" in row.source and row.action == "taken" for row in report.rows) == 4


@pytest.mark.parametrize("name", of_kind("silent"))
def test_what_only_outputs_can_show_is_shown_by_outputs(place, name):
    path = place(name)
    load_weights(path)
    with pytest.raises(CheckpointError, match="a convention or the weights are wrong"):
        load_weights(path, check=DAMAGED / "io.npz")


@pytest.mark.parametrize("name", of_kind("healthy"))
def test_other_dtypes_are_widened(place, name):
    model, _ = load_weights(place(name))
    with np.load(DAMAGED / "io.npz") as file, torch.no_grad():
        got = model(torch.from_numpy(file["x"])).numpy()
        want = file[VARIANTS[name]["logits_key"]]
    assert abs(got - want).max() <= 1e-5 * abs(want).max()
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_an_equal_count_of_patches_on_another_grid_is_stretched():
    model, _ = load_weights(DAMAGED / "grid_2x8")
    with np.load(DAMAGED / "io.npz") as file, torch.no_grad():
        got = model(torch.from_numpy(file["x"])).numpy()
        want = file["logits_grid_2x8_resized_to_4x4"]
    assert abs(got - want).max() <= 1e-5 * abs(want).max()


def test_an_equal_count_of_patches_never_passes_for_an_equal_grid(tmp_path):
    shutil.copy(DAMAGED / "grid_2x8" / "model.safetensors", tmp_path)
    config = json.loads((DAMAGED / "grid_2x8" / "config.json").read_text())
    config["model_args"]["img_size"] = [16, 12]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match="17 rows; a grid of 4×3"):
        load_weights(tmp_path)


class Touch:
    """Unpickling it would make a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("kind", ["zip", "legacy", "plain", "renamed", "npz"])
def test_nothing_in_a_file_is_ever_run(tmp_path, kind):
    """CKP-08."""
    marker = tmp_path / "marker"
    tensors = safetensors.torch.load_file(DAMAGED / "model.safetensors")
    content = {"model": tensors, "extra": Touch(marker)}
    path = tmp_path / {"renamed": "a.safetensors", "npz": "a.npz"}.get(kind, "a.pth")
    if kind in ("zip", "legacy"):
        torch.save(content, path, _use_new_zipfile_serialization=kind == "zip")
    elif kind == "npz":
        np.savez(path, cls=np.array([Touch(marker)], dtype=object))
    else:
        path.write_bytes(pickle.dumps(content))
    with pytest.raises(CheckpointError, match=path.name) as caught:
        load_weights(path, heads=2)
    assert not marker.exists()
    assert "weights_only=False" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", b"", "is no weights file"),
        ("a.pth", b"", "not a whole torch file"),
        ("a.npz", b"PK", "not a whole npz file"),
        ("model.safetensors.index.json", b"{}", "not an index of shards"),
        ("model.safetensors.index.json", b'{"weight_map": {"a": "../b"}}', "is no file beside it"),
    ],
)
def test_other_files_are_refused(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CheckpointError, match=sentence):
        load_weights(tmp_path / name)


def test_a_config_of_another_kind_is_refused(place):
    path = place("ok_float64.safetensors")
    for content in ("[]", "{", '{"model_args": []}', '{"model_args": {"img_size": "large"}}'):
        path.with_name("config.json").write_text(content)
        with pytest.raises(CheckpointError, match="config"):
            load_weights(path)


def test_a_folder_with_two_files_is_not_chosen_from(tmp_path):
    for name in ("one.pth", "two.pth"):
        (tmp_path / name).touch()
    with pytest.raises(CheckpointError, match=r"one weights file .* one\.pth, two\.pth"):
        load_weights(tmp_path)
    with pytest.raises(CheckpointError, match="there is no such file or folder"):
        load_weights(tmp_path / "absent")


def test_names_of_nothing_known_are_listed(tmp_path):
    torch.save({"layer.weight": torch.zeros(2)}, tmp_path / "a.pt")
    with pytest.raises(CheckpointError, match=r"the first are layer\.weight; known are timm, "):
        load_weights(tmp_path / "a.pt")
