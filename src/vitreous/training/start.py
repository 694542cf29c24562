"""What a run starts from: trained weights with a new head, and how the rest may follow it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from vitreous.checkpoints import store
from vitreous.checkpoints.hub import fetch, is_hub_name
from vitreous.checkpoints.refit import refit
from vitreous.config import ViTConfig
from vitreous.data.dataset import Dataset
from vitreous.errors import CheckpointError, ConfigError
from vitreous.models.classifier import Classifier
from vitreous.training.layers import HEAD, decay_by_layer

__all__ = [
    "Start",
    "begin",
    "fitted_config",
    "hold_still",
    "open_weights",
    "slow_down",
    "start_from",
    "weights_hash",
]


@dataclass(frozen=True, kw_only=True)
class Start:
    """Trained weights, and how the backbone learns. Raises ConfigError for what contradicts."""

    weights: str
    """Where they were, as it was given."""
    sha256: str
    """Of the file, or of all weights files in the folder."""
    freeze: bool = False
    """Only the new head learns; the rest is in eval mode and stays as it was."""
    layer_decay: float | None = None
    """Each layer below the head learns by this factor more slowly; none: all at one rate."""
    notes: tuple[str, ...] = ()
    """What was done to the weights, in words."""
    tensors: Mapping[str, Tensor] = field(default_factory=dict, repr=False, compare=False)
    """All but the head, fitted to the run; none in a run that goes on, whose snapshot has them."""

    def __post_init__(self) -> None:
        if self.freeze and self.layer_decay is not None:
            raise ConfigError(
                "freeze and layer_decay exclude each other: a frozen layer has no rate"
            )
        if self.layer_decay is not None and not 0 < self.layer_decay <= 1:
            raise ConfigError(f"layer_decay={self.layer_decay} must be above 0 and at most 1")

    def describe(self) -> dict[str, Any]:
        """Everything but the tensors, as JSON values."""
        return {
            "weights": self.weights,
            "sha256": self.sha256,
            "freeze": self.freeze,
            "layer_decay": self.layer_decay,
            "notes": list(self.notes),
        }

    @classmethod
    def recorded(cls, values: Mapping[str, Any]) -> "Start":
        """The start that a run folder describes, without its tensors."""
        return cls(**{**values, "notes": tuple(values["notes"])})


def open_weights(weights: str | Path, *, heads: int | None = None) -> tuple[Classifier, Path]:
    """The model that a path or a hub name holds, ours or another library's, and where its files
    are.

    Raises CheckpointError. `heads` is for files that do not hold their number.
    """
    place = Path(weights)
    if is_hub_name(weights):
        place = fetch(str(weights), (store.CONFIG, store.WEIGHTS))
    if not place.exists():
        raise CheckpointError(f"{weights}: there is no such file or folder")
    if store.is_ours(place):
        return store.load(place), place
    from vitreous.interop.load import load_weights  # pyright: ignore[reportMissingImports]

    model, _report = load_weights(place, heads=heads)
    return model, place


def start_from(
    weights: str | Path,
    dataset: Dataset,
    *,
    freeze: bool = False,
    layer_decay: float | None = None,
    heads: int | None = None,
    **changes: Any,
) -> tuple[ViTConfig, Start]:
    """The config and the start of a run on these data from trained weights.

    Image size, channels and classes become the data's; `changes` are other settings, which must
    leave every tensor as it is (rates of dropout and such). Raises CheckpointError or ConfigError.
    """
    Start(weights="", sha256="", freeze=freeze, layer_decay=layer_decay)  # refuse before reading
    model, place = open_weights(weights, heads=heads)
    config = fitted_config(model.config, dataset, **changes)
    tensors, notes = refit(model, config)
    return config, Start(
        weights=str(weights),
        sha256=weights_hash(place),
        freeze=freeze,
        layer_decay=layer_decay,
        notes=(*notes, *preparation_notes(model, dataset)),
        tensors=tensors,
    )


def fitted_config(config: ViTConfig, dataset: Dataset, **changes: Any) -> ViTConfig:
    """The config with the data's image size, channels and classes, then the changes."""
    fitting: dict[str, Any] = {
        "channels": dataset.input.channels,
        "classes": len(dataset.class_names),
    }
    if config.image_shape != dataset.input.size:
        fitting["image_size"] = dataset.input.size
    return replace(config, **{**fitting, **changes})


def weights_hash(place: Path) -> str:
    """The sha256 of a weights file, or of all weights files of a folder in order of name."""
    kinds = {".safetensors", ".npz", ".bin", ".pt", ".pth"}
    files = [place] if place.is_file() else sorted(f for f in place.iterdir() if f.suffix in kinds)
    if place.is_dir() and (place / store.WEIGHTS).exists():
        files = [place / store.WEIGHTS]
    whole = sha256()
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()


def preparation_notes(model: Classifier, dataset: Dataset) -> list[str]:
    """Say where the weights knew pixels of another mean and deviation than they will see."""
    own, new = model.image_input, dataset.input
    if own is None:
        return ["the weights do not say how their images were prepared"]
    if (own.mean, own.std) == (new.mean, new.std):
        return []
    return [
        f"the weights know pixels minus {own.mean} over {own.std}; "
        f"these data give them minus {new.mean} over {new.std}"
    ]


def begin(start: Start, model: Classifier) -> None:
    """Give a fresh model the trained weights; freeze what is to stay."""
    if start.tensors:
        model.load_state_dict({**model.state_dict(), **start.tensors})
    if start.freeze:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name.startswith(HEAD))


def slow_down(start: Start, model: nn.Module, optimizers: list[Optimizer]) -> None:
    """Lower the rates of fresh optimizers as the start says."""
    if start.layer_decay is not None:
        decay_by_layer(model, optimizers, start.layer_decay)


def hold_still(model: nn.Module) -> None:
    """In a model that trains, put all but the head into eval mode: no dropout in what is frozen."""
    for name, child in model.named_children():
        child.train(name.startswith(HEAD))
