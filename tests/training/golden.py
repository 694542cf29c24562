"""Losses of the first twenty steps of some runs on MNIST, for the test that they do not move.

`python -m tests.training.golden` writes them anew, after a change that is meant to move them.
"""

import json
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch

from vitreous.config import Recipe, ViTConfig, preset, recipe
from vitreous.training.job import make_job
from vitreous.training.run import run

__all__ = ["RUNS", "STEPS", "golden_losses", "losses", "regenerate"]

PATH = Path(__file__).parents[1] / "golden" / "losses.json"
STEPS = 20

MUON = Recipe(
    optimizer="muon",
    learning_rate=1e-3,
    matrix_rate=0.02,
    weight_decay=0.01,
    batch_size=64,
    epochs=1,
    max_steps=40,
    warmup=0.1,
    schedule="linear",
    clip=1.0,
    label_smoothing=0.1,
    rotate=10.0,
    shift=0.1,
    scale=0.1,
    shear=0.1,
    precision="float32",
    average=0.99,
)
STEM = ViTConfig(
    patch_size=8,
    stem="convolution",
    width=128,
    depth=2,
    heads=4,
    norm="post",
    final_norm=False,
    class_token=False,
    pooling="mean",
)
RUNS = {
    "digits-small, published": (preset("digits-small"), recipe("published")),
    "digits-small, muon": (preset("digits-small"), MUON),
    "stem, published": (STEM, recipe("published")),
    "digits-small, adamw": (preset("digits-small"), replace(MUON, optimizer="adamw")),
    "stem, muon": (STEM, MUON),
    "stem, adamw": (STEM, replace(MUON, optimizer="adamw")),
    "stem, pre-norm, adamw": (
        replace(STEM, norm="pre", final_norm=True, positions="rotary", activation="swiglu"),
        replace(MUON, optimizer="adamw", schedule="cosine"),
    ),
}


def losses(config: ViTConfig, recipe: Recipe) -> list[float]:
    """The first losses of a run in float32 on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    job = make_job(config, "mnist", recipe=recipe, seed=0, device="cpu")
    with tempfile.TemporaryDirectory() as folder:
        steps = islice(run(job, Path(folder) / "run"), STEPS)
        found = [event.loss for event in steps if hasattr(event, "loss")]
    torch.set_num_threads(threads)
    return found


def golden_losses() -> dict[str, list[float]]:
    """The losses as they were when they were last written."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def regenerate() -> None:
    """Write every run's losses anew."""
    PATH.parent.mkdir(exist_ok=True)
    made = {name: [round(x, 7) for x in losses(*those)] for name, those in RUNS.items()}
    PATH.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    regenerate()
