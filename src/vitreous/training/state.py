"""Everything that a run must remember to go on bit for bit, as one file.

Random numbers need no state: each is a function of seed, purpose and step (`protocol.seeds`).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor
from torch.optim import Optimizer

from vitreous.checkpoints.files import write_bytes
from vitreous.checkpoints.store import read_tensors
from vitreous.errors import RunError
from vitreous.protocol.stopping import Patience
from vitreous.training.precision import Working

__all__ = ["Epoch", "State", "restore", "snapshot"]

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Epoch:
    """What one epoch came to."""

    epoch: int
    steps: int
    """Since the start of the run."""
    train_loss: float
    """Mean over the images of the epoch, as they were trained on."""
    validation_loss: float
    validation_accuracy: float
    seconds: float
    """Since the start of the run, validation included."""
    images_per_second: float
    """While training, validation left out."""


@dataclass
class State:
    """A run between two steps."""

    working: Working[Any]
    optimizers: list[Optimizer]
    patience: Patience
    average: Weights | None = None
    """Moving average of the weights, where the recipe keeps one."""
    best: Weights | None = None
    """Copies of the weights of the best epoch, never references."""
    history: list[Epoch] = field(default_factory=list)
    step: int = 0
    loss_sum: float = 0.0
    """Over the images of the epoch so far."""
    images: int = 0
    seconds: float = 0.0
    training_seconds: float = 0.0
    """Of the epoch so far, without validation."""

    @property
    def candidate(self) -> Weights:
        """The weights that would be kept if the run ended now."""
        return self.average if self.average is not None else self.weights

    @property
    def weights(self) -> Weights:
        """The float32 weights themselves."""
        return dict(self.working.master.state_dict())

    def keep_best(self) -> None:
        """Copy the candidate as the best so far."""
        self.best = {name: tensor.clone() for name, tensor in self.candidate.items()}

    def follow(self, decay: float) -> None:
        """Move the average a step towards the weights; young averages move faster."""
        if self.average is None:
            return
        share = 1 - min(decay, (1 + self.step) / (10 + self.step))
        for name, tensor in self.weights.items():
            if tensor.is_floating_point():
                self.average[name].lerp_(tensor, share)


SCALARS = ("step", "loss_sum", "images", "seconds", "training_seconds")


def snapshot(state: State, path: Path) -> None:
    """Write the state atomically as one safetensors file."""
    tensors = {f"weights.{name}": tensor for name, tensor in state.weights.items()}
    for kind in ("average", "best"):
        for name, tensor in (getattr(state, kind) or {}).items():
            tensors[f"{kind}.{name}"] = tensor
    for index, optimizer in enumerate(state.optimizers):
        for parameter, values in optimizer.state_dict()["state"].items():
            for name, value in values.items():
                tensors[f"optimizer.{index}.{parameter}.{name}"] = torch.as_tensor(value)
    facts = {name: getattr(state, name) for name in SCALARS}
    facts["history"] = [asdict(epoch) for epoch in state.history]
    facts["patience"] = asdict(state.patience)
    whole = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    write_bytes(path, safetensors.torch.save(whole, metadata={"state": json.dumps(facts)}))


def restore(state: State, path: Path) -> None:
    """Put a fresh state of the same run where the snapshot was; raises RunError for another's."""
    tensors, metadata = read_tensors(path)
    try:
        facts = json.loads(metadata["state"])
        for name in SCALARS:
            setattr(state, name, facts[name])
        state.history = [Epoch(**epoch) for epoch in facts["history"]]
        state.patience = Patience(**facts["patience"])
        state.working.master.load_state_dict(under("weights.", tensors))
        if state.average is not None:
            state.average = under("average.", tensors)
        state.best = under("best.", tensors) or None
        for index, optimizer in enumerate(state.optimizers):
            load_optimizer(optimizer, under(f"optimizer.{index}.", tensors))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise RunError(f"{path}: not a snapshot of this run: {error}") from error
    state.working.take_weights()


def under(prefix: str, tensors: Mapping[str, Tensor]) -> Weights:
    """The tensors whose names begin so, without that beginning."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def load_optimizer(optimizer: Optimizer, tensors: Weights) -> None:
    """Fill an optimizer's memory; its groups are made by the recipe and stay."""
    memory: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        parameter, key = name.split(".", 1)
        memory.setdefault(int(parameter), {})[key] = tensor
    optimizer.load_state_dict({**optimizer.state_dict(), "state": memory})
