"""Whether a loaded model says what its own library said."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vitreous.errors import CheckpointError, ShapeError
from vitreous.interop.containers import read_npz
from vitreous.models.classifier import Classifier

__all__ = ["OUTPUTS", "compare", "difference"]

LIMIT = 1e-5
SIZES = ("", "_rect", "_rect2", "_sq")
OUTPUTS = ("logits", "image_embeds", "pooled", "tokens")


def compare(model: Classifier, path: Path, format_name: str) -> dict[str, float]:
    """Largest difference over largest value, for each output that the file holds.

    The file has images `x` and some of `logits`, `pooled`, `tokens`, `image_embeds`; the same names
    with `_rect`, `_rect2` or `_sq` behind them for images of another size. Raises CheckpointError
    above 1e-5.
    """
    stored = read_npz(path)
    if "x" not in stored:
        raise CheckpointError(f"{path}: it holds no images x, but {', '.join(stored) or 'nothing'}")
    gaps = {}
    for ending in SIZES:
        if f"x{ending}" in stored:
            gaps |= compared(model, stored, ending)
    if not gaps:
        raise CheckpointError(f"{path}: it holds none of {', '.join(OUTPUTS)}")
    bad = {name: gap for name, gap in gaps.items() if not gap <= LIMIT}
    if bad:
        worst = max(bad, key=lambda name: bad[name])
        raise CheckpointError(
            f"read as {format_name}, {worst} differs from {path} by {bad[worst]:.1e} of its "
            f"largest value, and {LIMIT:.0e} is allowed: a convention or the weights are wrong"
        )
    return gaps


@torch.no_grad()
def compared(model: Classifier, stored: dict[str, Tensor], ending: str) -> dict[str, float]:
    """The outputs for one size of images."""
    images = stored[f"x{ending}"].float()
    try:
        ours = {"tokens": model.tokens(images), "pooled": model.encode(images)}
    except ShapeError:
        return {}
    if model.config.classes:
        ours["logits"] = model(images)
    if model.projection is not None:
        ours["image_embeds"] = model.project(ours["pooled"])
    there = {name: f"{name}{ending}" for name in ours if f"{name}{ending}" in stored}
    return {key: difference(ours[name], stored[key]) for name, key in there.items()}


def difference(got: Tensor, want: Tensor) -> float:
    """Largest difference over largest value wanted; infinite where shapes differ."""
    if got.shape != want.shape:
        return float("inf")
    top = want.abs().max().item()
    return (got - want).abs().max().item() / (top or float(np.finfo(np.float32).tiny))
