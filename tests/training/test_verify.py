import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
from PIL import Image

from tests.training.small import CONFIG, RECIPE, digits, make_job, stopped_after, write_npz
from vitreous.checkpoints.store import WEIGHTS, read_tensors
from vitreous.data.sources import load_source
from vitreous.errors import CheckpointError, DataError, RunError
from vitreous.protocol import ledger
from vitreous.training.folder import HISTORY, LEDGER, RESULT
from vitreous.training.run import train
from vitreous.training.verify import score_again, verify


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run and its data, to copy from."""
    place = tmp_path_factory.mktemp("trained")
    data = write_npz(digits(60, 20), place / "data.npz")
    train(CONFIG, data, recipe=replace(RECIPE, epochs=8), out=place / "run")
    return place


@pytest.fixture
def place(trained: Path, tmp_path: Path, no_report) -> Path:
    return shutil.copytree(trained, tmp_path / "copy")


def failing(place: Path) -> list[str]:
    checks = verify(place / "run", place / "data.npz")
    return [check.what for check in checks if not check.holds]


def test_an_honest_run_holds_in_every_part(place: Path):
    assert failing(place) == []
    assert len(verify(place / "run", place / "data.npz")) >= 15


def test_the_data_are_found_where_they_were(place: Path):
    assert all(check.holds for check in verify(place / "run"))


def test_data_of_other_classes_are_refused(place: Path):
    data = replace(load_source(place / "data.npz"), class_names=("none", "two", "one"))
    with pytest.raises(CheckpointError, match="know the classes none, one, two, and"):
        verify(place / "run", data)


LIES = {
    "correct": (lambda v: v + 1, "test images right"),
    "n": (lambda v: v + 1, "test images right"),
    "test_accuracy": (lambda v: v + 0.001, "test_accuracy"),
    "floor": (lambda v: v - 0.001, "floor"),
    "validation_accuracy": (lambda v: v + 1e-9, "validation_accuracy"),
    "validation_n": (lambda v: v + 1, "validation_n"),
    "parameters": (lambda v: v - 1, "parameters, on paper"),
    "seed": (lambda v: v + 1, "seed"),
    "epochs": (lambda v: v - 1, "epochs"),
    "steps": (lambda v: v - 1, "steps"),
    "predictions_sha256": (lambda v: v[::-1], "every test answer"),
    "weights_sha256": (lambda v: v[::-1], "weights"),
}


@pytest.mark.parametrize("name", LIES)
def test_every_figure_that_was_tampered_with_is_found(name: str, place: Path):
    change, what = LIES[name]
    result = json.loads((place / "run" / RESULT).read_text())
    result[name] = change(result[name])
    (place / "run" / RESULT).write_text(json.dumps(result))
    assert what in failing(place)


def test_other_training_images_change_neither_preparation_nor_answers(place: Path):
    data = load_source(place / "data.npz")
    data.train_images[:48] //= 4
    write_npz(data, place / "data.npz")
    assert failing(place) == ["train_images"]


def test_one_other_bit_in_the_weights_is_found(place: Path):
    path = place / "run" / WEIGHTS
    tensors, metadata = read_tensors(path)
    tensors = {name: tensor.clone() for name, tensor in tensors.items()}
    tensors["head.bias"][0] += 1e-7
    safetensors.torch.save_file(tensors, path, metadata=metadata)
    assert failing(place) == ["weights"]


@pytest.mark.parametrize("part", ["train_images", "train_labels", "test_images", "test_labels"])
def test_one_other_value_in_the_data_is_found(part: str, place: Path):
    data = load_source(place / "data.npz")
    array = getattr(data, part)
    array.flat[-1] = (array.flat[-1] + 1) % 3
    write_npz(data, place / "data.npz")
    assert part in failing(place)


def test_another_number_of_training_images_is_another_split(place: Path):
    data = load_source(place / "data.npz")
    write_npz(
        replace(data, train_images=data.train_images[5:], train_labels=data.train_labels[5:]),
        place / "data.npz",
    )
    assert {"split", "train_images", "validation_n"} <= set(failing(place))


def test_verifying_and_scoring_again_are_looks_at_the_test_set(place: Path):
    verify(place / "run", place / "data.npz")
    score_again(place / "run", place / "data.npz", purpose="evaluate")
    touches = ledger.read(place / "run" / LEDGER)
    assert [touch.purpose for touch in touches] == ["train", "verify", "evaluate"]
    assert len({touch.correct for touch in touches}) == 1


def test_data_of_another_size_are_refused(place: Path):
    write_npz(digits(60, 20, size=12), place / "data.npz")
    with pytest.raises(CheckpointError, match="the weights were trained on"):
        verify(place / "run", place / "data.npz")


def test_absent_data_are_named(place: Path):
    with pytest.raises(DataError, match="gone"):
        verify(place / "run", place / "gone.npz")


def test_a_history_that_was_emptied_is_found(place: Path):
    (place / "run" / HISTORY).write_text("[]")
    assert {"epochs", "steps"} <= set(failing(place))


def test_a_run_that_has_not_ended_is_not_verified(tmp_path: Path):
    stopped_after(make_job(), tmp_path / "run", 2)
    with pytest.raises(RunError, match="has not ended"):
        verify(tmp_path / "run", make_job().dataset)


def test_the_data_are_read_with_the_options_of_the_run(tmp_path: Path, no_report):
    rng = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(12):
            pixels = rng.integers(0, 255, (9, 16), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "images" / name / f"{number}.png")
    (tmp_path / "images" / "cat" / "torn.png").write_bytes(b"torn")
    data = load_source(
        tmp_path / "images", image_size=8, resize="pad", channels=1, skip_corrupt=True
    )
    train(replace(CONFIG, classes=2), data, recipe=RECIPE, out=tmp_path / "run")
    assert all(check.holds for check in verify(tmp_path / "run"))
    (tmp_path / "images" / "dog" / "11.png").unlink()
    assert not all(check.holds for check in verify(tmp_path / "run"))
