"""What defines one run: the same job gives the same weights on the same machine."""

import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import vitreous
from vitreous import config as configs
from vitreous import settings
from vitreous.config import Recipe, ViTConfig
from vitreous.data.batches import steps_per_epoch
from vitreous.data.dataset import Dataset
from vitreous.data.sources import load_source
from vitreous.errors import ConfigError, RunError
from vitreous.protocol.splits import training_and_validation
from vitreous.training.folder import RUN, read_json
from vitreous.training.start import Start

__all__ = ["Job", "adopt_input", "choose_device", "dataset_of", "job_of", "make_job"]


@dataclass(frozen=True)
class Job:
    """A config, a recipe, data, a seed and a device that fit together."""

    config: ViTConfig
    recipe: Recipe
    dataset: Dataset
    seed: int
    device: torch.device
    start: Start | None = None
    """Trained weights to start from, instead of random numbers."""

    def __post_init__(self) -> None:
        wanted = adopt_input(self.config, self.dataset)
        if wanted != self.config:
            raise ConfigError(mismatch(self.config, wanted))
        if self.seed < 0:
            raise ConfigError(f"seed={self.seed} must not be negative")

    @property
    def steps_per_epoch(self) -> int:
        """Optimizer steps in one epoch."""
        training, _ = training_and_validation(self.dataset.train_labels)
        return steps_per_epoch(
            len(training),
            self.recipe.batch_size,
            leave_out_last=self.recipe.leave_out_last_batch,
        )

    @property
    def steps(self) -> int:
        """Optimizer steps in the whole run, if patience does not end it before."""
        steps = self.steps_per_epoch * self.recipe.epochs
        return min(steps, self.recipe.max_steps or steps)

    @property
    def dtype(self) -> torch.dtype:
        """Of the working weights and activations."""
        return getattr(torch, self.recipe.precision)

    @property
    def frozen(self) -> bool:
        """Whether only the head learns."""
        return self.start is not None and self.start.freeze

    def describe(self) -> dict[str, Any]:
        """Everything that a reader needs to run this again, as JSON values."""
        training, validation = training_and_validation(self.dataset.train_labels)
        return {
            "source": self.dataset.name,
            "source_options": dict(self.dataset.options),
            "note": self.dataset.note,
            "seed": self.seed,
            "config": settings.to_dict(self.config),
            "recipe": settings.to_dict(self.recipe),
            "data_sha256": self.dataset.hashes,
            "split": {"training": len(training), "validation": len(validation)},
            "machine": machine(self.device),
            "versions": {"vitreous": vitreous.__version__, "torch": str(torch.__version__)},
            **({"start": self.start.describe()} if self.start else {}),
        }


def make_job(
    config: ViTConfig,
    source: str | Path | Dataset,
    *,
    recipe: str | Recipe,
    seed: int,
    device: str,
) -> Job:
    """Names and paths to a job that is known to fit together."""
    if isinstance(recipe, str):
        recipe = configs.recipe(recipe)
    return Job(config, recipe, load_source(source), seed, choose_device(device))


def job_of(out: Path, *, device: str) -> Job:
    """The job that a run folder was started with; raises RunError where there is none."""
    recorded = read_json(out / RUN)
    try:
        config = settings.from_dict(ViTConfig, recorded["config"])
        recipe = settings.from_dict(Recipe, recorded["recipe"])
        seed = int(recorded["seed"])
        start = Start.recorded(recorded["start"]) if "start" in recorded else None
    except (KeyError, TypeError) as error:
        raise RunError(f"{out / RUN}: {error} is absent or of the wrong kind") from error
    return Job(config, recipe, dataset_of(out), seed, choose_device(device), start)


def dataset_of(out: Path, source: str | Path | Dataset | None = None) -> Dataset:
    """The data of a run, read as they were then, from where they were or from elsewhere."""
    recorded = read_json(out / RUN)
    options = recorded.get("source_options", {})
    if source is None and "source" not in recorded:
        raise RunError(f"{out / RUN}: it does not say where its data are; give a source")
    return load_source(source or recorded["source"], **options)


def adopt_input(config: ViTConfig, dataset: Dataset) -> ViTConfig:
    """The config with image size, channels and classes of the data; the rest is as it was."""
    size, channels = dataset.input.size, dataset.input.channels
    if (config.image_shape, config.channels, config.classes) == (
        size,
        channels,
        len(dataset.class_names),
    ):
        return config
    return replace(config, image_size=size, channels=channels, classes=len(dataset.class_names))


def mismatch(config: ViTConfig, wanted: ViTConfig) -> str:
    """The sentence for a config that does not fit the data."""
    names = ("image_size", "channels", "classes")
    differ = [name for name in names if getattr(config, name) != getattr(wanted, name)]
    have = ", ".join(f"{name}={getattr(config, name)}" for name in differ)
    want = ", ".join(f"{name}={getattr(wanted, name)}" for name in differ)
    return f"the model has {have} and the data {want}; use dataclasses.replace(config, {want})"


def choose_device(name: str) -> torch.device:
    """The named device, or with "auto" the fastest one there is; raises ConfigError."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(kind for kind, there in available.items() if there))
    kind = name.split(":")[0]
    if not available.get(kind):
        there = ", ".join(kind for kind, found in available.items() if found)
        raise ConfigError(f"device {name!r} is not available here; there is {there}, or auto")
    return torch.device(name)


def machine(device: torch.device) -> str:
    """The kind of machine, in a few words, without its name."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    counts = ((os.cpu_count() or 1, "core"), (torch.get_num_threads(), "thread"))
    return ", ".join([processor(), *(f"{n} {what}{'s' * (n != 1)}" for n, what in counts)])


def processor() -> str:
    """The processor's own name, where the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
