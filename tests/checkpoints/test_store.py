import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor

import vitreous
from vitreous.checkpoints import store
from vitreous.checkpoints.store import CONFIG, WEIGHTS, is_ours, load, save
from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.models.classifier import build

CONFIG_OF = ViTConfig(image_size=8, patch_size=4, width=8, depth=1, heads=2, classes=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = build(CONFIG_OF)
    model.class_names = ["none", "one", "two"]
    save(model, tmp_path / "run")
    return tmp_path / "run"


def rewrite(folder: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    """Change the tensors of a checkpoint, and nothing else."""
    tensors, metadata = store.read_tensors(folder / WEIGHTS)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    change(tensors)
    safetensors.torch.save_file(tensors, folder / WEIGHTS, metadata=metadata)


def reconfigure(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the config inside a checkpoint, and nothing else."""
    tensors, metadata = store.read_tensors(folder / WEIGHTS)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    config = json.loads(metadata[CONFIG])
    config = change(config) or config
    metadata = {CONFIG: json.dumps(config)}
    safetensors.torch.save_file(tensors, folder / WEIGHTS, metadata=metadata)


@pytest.mark.parametrize("place", ["", WEIGHTS])
def test_what_is_saved_comes_back_to_the_last_bit(place: str, folder: Path):
    torch.manual_seed(0)
    model = build(CONFIG_OF)
    save(model, folder)
    again = load(folder / place)
    assert again.config == model.config
    assert again.image_input == model.image_input
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(again(images), model.eval()(images))
    assert not again.training
    assert all(p.requires_grad for p in again.parameters())


def test_class_names_and_preparation_travel_inside_the_weights_file(folder: Path):
    (folder / CONFIG).unlink()
    again = load(folder / WEIGHTS)
    assert again.class_names == ["none", "one", "two"]
    assert again.image_input is not None
    assert again.image_input.size == (8, 8)


def test_equal_models_are_equal_files(tmp_path: Path):
    model = build(CONFIG_OF)
    for name in "abcdefgh":
        save(model, tmp_path / name)
    assert len({(tmp_path / name / WEIGHTS).read_bytes() for name in "abcdefgh"}) == 1


def test_a_missing_and_a_surplus_tensor_are_both_named(folder: Path):
    rewrite(folder, lambda tensors: tensors.update(heed=tensors.pop("head.bias")))
    with pytest.raises(CheckpointError, match=r"missing \['head.bias'\], surplus \['heed'\]"):
        load(folder)


@pytest.mark.parametrize("name", ["head.bias", "cls_token", "pos_embed.grid"])
def test_every_missing_tensor_is_named(name: str, folder: Path):
    rewrite(folder, lambda tensors: tensors.pop(name))
    with pytest.raises(CheckpointError, match=f"missing \\['{name}'\\], surplus nothing"):
        load(folder)


def test_a_surplus_tensor_is_named(folder: Path):
    rewrite(folder, lambda tensors: tensors.update(more=torch.zeros(1)))
    with pytest.raises(CheckpointError, match=r"missing nothing, surplus \['more'\]"):
        load(folder)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.zeros(4), r"head.bias is \(4,\) torch.float32, and the config asks for \(3,\)"),
        (torch.zeros(3, 1), r"head.bias is \(3, 1\)"),
        (torch.zeros(3, dtype=torch.float64), r"\(3,\) torch.float64, .* \(3,\) torch.float32"),
        (torch.zeros(3, dtype=torch.bfloat16), r"\(3,\) torch.bfloat16"),
        (torch.zeros(3, dtype=torch.int32), r"\(3,\) torch.int32"),
    ],
)
def test_a_tensor_of_another_shape_or_dtype_is_named(tensor: Tensor, words: str, folder: Path):
    rewrite(folder, lambda tensors: tensors.update({"head.bias": tensor}))
    with pytest.raises(CheckpointError, match=words):
        load(folder)


def test_equal_token_count_on_another_grid_is_refused(tmp_path: Path):
    wide = replace(CONFIG_OF, image_size=(8, 32))
    save(build(wide), tmp_path)
    reconfigure(tmp_path, lambda config: config["model"].update(image_size=[16, 16]))
    with pytest.raises(CheckpointError, match=r"of grid \(2, 8\), and the config's is \(4, 4\)"):
        load(tmp_path)


def test_a_grid_that_was_tampered_with_is_refused(folder: Path):
    rewrite(folder, lambda tensors: tensors.update({"pos_embed.grid": torch.tensor([1, 4])}))
    with pytest.raises(CheckpointError, match=r"of grid \(1, 4\), and the config's is \(2, 2\)"):
        load(folder)


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_torn_file_is_refused(kept: int, folder: Path):
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:kept])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        load(folder)


class Trap:
    """Unpickling this would leave a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Path]]:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("writer", [torch.save, lambda content, path: pickle_to(content, path)])
@pytest.mark.parametrize("name", [WEIGHTS, "model.pt"])
def test_a_pickle_is_refused_and_never_run(writer, name: str, tmp_path: Path):
    mark = tmp_path / "mark"
    writer({**build(CONFIG_OF).state_dict(), "extra": Trap(mark)}, tmp_path / name)
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        load(tmp_path / name)
    assert not mark.exists()


def pickle_to(content: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(content))


@pytest.mark.parametrize("place", ["absent", "."])
def test_an_absent_file_is_named(place: str, tmp_path: Path):
    with pytest.raises(CheckpointError, match="there is no such file; a run folder holds"):
        load(tmp_path / place)


def test_foreign_weights_without_our_config_are_refused(tmp_path: Path):
    safetensors.torch.save_file(build(CONFIG_OF).state_dict(), tmp_path / WEIGHTS)
    with pytest.raises(CheckpointError, match="holds no vitreous config"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c.update(version=2), "written in version 2, and this reads 1"),
        (lambda c: c.pop("version") and None, "written in version None"),
        (lambda c: c.pop("model") and None, "not one of ours"),
        (lambda c: c.update(model=None), "not one of ours"),
        (
            lambda c: c["model"].update(widht=8),
            "no setting is called 'widht'; did you mean 'width'",
        ),
        (lambda c: c["model"].update(width=0), "width=0 must be at least 1"),
        (lambda c: c["model"].update(heads=3), "does not split over heads=3"),
        (lambda c: c["input"].update(std=[0.0]), "std="),
        (lambda c: c.update(class_names=None), "not one of ours"),
        (lambda c: c.update(class_names=["a", "b"]), "2 class names for 3 classes"),
        (lambda c: ["a", "list"], "no JSON object"),
    ],
)
def test_a_config_that_is_not_ours_is_refused(change, words: str, folder: Path):
    reconfigure(folder, change)
    with pytest.raises(CheckpointError, match=words):
        load(folder)


def test_a_config_that_is_no_json_is_refused(tmp_path: Path):
    weights = build(CONFIG_OF).state_dict()
    safetensors.torch.save_file(weights, tmp_path / WEIGHTS, metadata={CONFIG: "{"})
    with pytest.raises(CheckpointError, match="holds no vitreous config"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c: c["model"].update(width=16), "in model.width: 16 beside, 8 inside; copy"),
        (lambda c: c.update(class_names=["a", "b", "c"]), r'class_names: \["a", "b", "c"\] beside'),
        (lambda c: c["input"].update(mean=[0.25]), r"input.mean: \[0.25\] beside"),
        (lambda c: c.pop("version"), "version: null beside, 1 inside"),
    ],
)
def test_a_config_beside_weights_must_be_the_one_inside(change, words: str, folder: Path):
    config = json.loads((folder / CONFIG).read_text())
    change(config)
    (folder / CONFIG).write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=words):
        load(folder)
    load(folder / WEIGHTS)


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_config_beside_weights_that_is_none_is_refused(content: str, folder: Path):
    (folder / CONFIG).write_text(content)
    with pytest.raises(CheckpointError, match=r"config.json: (not readable|a JSON object)"):
        load(folder)


def test_ours_are_told_from_others_by_config_or_by_what_the_weights_hold(folder: Path, tmp_path):
    assert is_ours(folder)
    assert is_ours(folder / WEIGHTS)
    (folder / CONFIG).unlink()
    assert is_ours(folder)
    (folder / CONFIG).write_text('{"model_type": "vit"}')
    assert not is_ours(folder)
    safetensors.torch.save_file(build(CONFIG_OF).state_dict(), tmp_path / WEIGHTS)
    assert not is_ours(tmp_path / WEIGHTS)
    assert not is_ours(tmp_path)
    assert not is_ours(tmp_path / "absent")


def test_loading_leaves_the_callers_random_numbers_alone(folder: Path):
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    vitreous.load(folder)
    assert torch.equal(torch.rand(3), wanted)


def test_saving_over_a_checkpoint_does_not_move_a_model_that_was_loaded_from_it(folder: Path):
    loaded = load(folder)
    before = {name: tensor.clone() for name, tensor in loaded.state_dict().items()}
    save(build(replace(CONFIG_OF, depth=3)), folder)
    assert all(torch.equal(t, before[name]) for name, t in loaded.state_dict().items())
