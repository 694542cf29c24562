"""Data and settings small enough that a whole run takes a fraction of a second."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitreous.config import Recipe, ViTConfig
from vitreous.data.dataset import Dataset, input_for
from vitreous.training.evaluate import Score
from vitreous.training.folder import HISTORY, RESULT
from vitreous.training.job import Job
from vitreous.training.run import run

CONFIG = ViTConfig(
    image_size=8, patch_size=4, width=8, depth=1, heads=2, classes=3, dropout=0.1, drop_path=0.1
)
RECIPE = Recipe(
    optimizer="adamw", learning_rate=0.01, batch_size=4, epochs=3, precision="float32", clip=1.0
)
AUGMENTATION: dict[str, Any] = {"rotate": 20.0, "shift": 0.1, "scale": 0.1, "shear": 0.1}


def digits(train: int = 25, test: int = 10, *, seed: int = 0, size: int = 8) -> Dataset:
    """Noise, a third of whose rows is brighter: which third is the class. The first pixel of a
    training image is its number."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([rng.permutation(n) % 3 for n in (train, test)])
    images = rng.integers(0, 120, (train + test, 1, size, size), dtype=np.uint8)
    third = -(-size // 3)
    for image, label in zip(images, labels, strict=True):
        image[0, label * third : (label + 1) * third] += 100
    images[:train, 0, 0, 0] = np.arange(train)
    names = ("none", "one", "two")
    return Dataset(
        name="small",
        train_images=images[:train],
        train_labels=labels[:train],
        test_images=images[train:],
        test_labels=labels[train:],
        class_names=names,
        input=input_for(images[:train], names),
    )


def make_job(
    recipe: Recipe = RECIPE,
    config: ViTConfig = CONFIG,
    dataset: Dataset | None = None,
    seed: int = 0,
    **changes: Any,
) -> Job:
    """A job on small data; `changes` are the recipe's."""
    data = dataset or digits()
    return Job(config, replace(recipe, **changes), data, seed, torch.device("cpu"))


def whole(job: Job, out: Path, *, resume: bool = False) -> dict[str, Any]:
    """Run to the end, and say what came of it."""
    for _event in run(job, out, resume=resume):
        pass
    return outcome(out)


def stopped_after(job: Job, out: Path, steps: int, *, resume: bool = False) -> None:
    """Run so many steps, and stop listening."""
    for event in run(job, out, resume=resume):
        if getattr(event, "number", None) == steps - 1:
            return
    raise AssertionError(f"the run ended before step {steps}")


def outcome(out: Path) -> dict[str, Any]:
    """Everything that a run leaves behind and that must not depend on the clock."""
    history = json.loads((out / HISTORY).read_text())
    return {
        "weights": (out / "model.safetensors").read_bytes(),
        "history": [without(e, "seconds", "images_per_second") for e in history],
        "result": without(json.loads((out / RESULT).read_text()), "train_seconds"),
    }


def without(values: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def scores(*losses: float) -> Iterator[Score]:
    """Made-up scores with these losses, then the last one for ever."""
    made = [Score(10, 5, loss, (0,) * 10) for loss in losses]
    yield from made
    while True:
        yield made[-1]


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two sets of tensors are equal to the last bit."""
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def write_npz(dataset: Dataset, path: Path) -> Path:
    """The same data as a file that the command line can be pointed to."""
    np.savez(
        path,
        x_train=dataset.train_images[:, 0],
        y_train=dataset.train_labels,
        x_test=dataset.test_images[:, 0],
        y_test=dataset.test_labels,
        class_names=np.array(dataset.class_names),
    )
    return path
