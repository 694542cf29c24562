"""Training that starts from trained weights."""

from dataclasses import replace
from pathlib import Path

from vitreous.config import Recipe
from vitreous.data.dataset import Dataset
from vitreous.data.sources import load_source
from vitreous.training.folder import Result
from vitreous.training.job import make_job
from vitreous.training.run import result_of
from vitreous.training.start import start_from

__all__ = ["fine_tune"]


def fine_tune(  # noqa: PLR0913 - those of `train`, and how the backbone follows
    weights: str | Path,
    source: str | Path | Dataset = "mnist",
    *,
    recipe: str | Recipe = "fast",
    seed: int = 0,
    out: str | Path = "runs/fine-tuned",
    resume: bool = False,
    freeze: bool = False,
    layer_decay: float | None = None,
    heads: int | None = None,
    device: str = "auto",
) -> Result:
    """`train` from the weights of a run, a file, a hub repository or another library's checkpoint.

    The head is new. `freeze` trains it alone; `layer_decay` (0.75 is usual) lets each layer below
    it learn by so much more slowly. `heads` is for files that do not say how many they have. Raises
    CheckpointError too. Source of the decay: BEiT (arXiv 2106.08254).
    """
    dataset = load_source(source)
    config, start = start_from(
        weights, dataset, freeze=freeze, layer_decay=layer_decay, heads=heads
    )
    job = make_job(config, dataset, recipe=recipe, seed=seed, device=device)
    return result_of(replace(job, start=start), out, resume=resume)
