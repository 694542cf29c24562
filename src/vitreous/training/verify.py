"""Whether a recorded number still stands: everything is built again and compared."""

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import torch

from vitreous.checkpoints import store
from vitreous.cost.parameters import count_parameters
from vitreous.data.dataset import Dataset
from vitreous.errors import CheckpointError
from vitreous.models.classifier import Classifier
from vitreous.protocol.splits import floor, training_and_validation
from vitreous.training.card import renew_card
from vitreous.training.evaluate import Score, score
from vitreous.training.folder import (
    HISTORY,
    RUN,
    Result,
    read_json,
    read_list,
    read_result,
    record_test,
)
from vitreous.training.job import choose_device, dataset_of
from vitreous.training.report import render_report
from vitreous.training.run import score_test

__all__ = ["Check", "score_again", "verify"]


@dataclass(frozen=True)
class Check:
    """One thing that was recorded, and what it is now."""

    what: str
    recorded: str
    now: str

    @property
    def holds(self) -> bool:
        """Equal to the last bit."""
        return self.recorded == self.now


def verify(out: str | Path, source: str | Path | Dataset | None = None) -> list[Check]:
    """Hash the data, split it, count parameters and score the test set again; a check for each.

    The look at the test set is written to the run's ledger. `source` says where the data are now
    if not where they were. Raises RunError, DataError or CheckpointError where a part is absent.
    """
    folder = Path(out)
    result, dataset = read_result(folder), dataset_of(folder, source)
    checks = [*data_checks(folder, dataset), *model_checks(folder, result)]
    return [*checks, *story_checks(folder, result), *score_checks(folder, result, dataset)]


def data_checks(folder: Path, dataset: Dataset) -> list[Check]:
    """The arrays themselves, and how they are split."""
    job = read_json(folder / RUN)
    training, validation = training_and_validation(dataset.train_labels)
    split = {"training": len(training), "validation": len(validation)}
    recorded = job.get("data_sha256", {})
    hashes = [
        Check(name, recorded.get(name, "absent"), digest) for name, digest in dataset.hashes.items()
    ]
    return [*hashes, Check("split", str(job.get("split", "absent")), str(split))]


def model_checks(folder: Path, result: Result) -> list[Check]:
    """The weights, and how many they are, built and on paper."""
    model = store.load(folder)
    weights = sha256((folder / store.WEIGHTS).read_bytes()).hexdigest()
    built = sum(parameter.numel() for parameter in model.parameters())
    recorded = str(result.parameters)
    return [
        Check("weights", result.weights_sha256, weights),
        Check("parameters, built", recorded, str(built)),
        Check("parameters, on paper", recorded, str(count_parameters(model.config))),
    ]


def story_checks(folder: Path, result: Result) -> list[Check]:
    """What the run's other files say of how it went."""
    job, history = read_json(folder / RUN), read_list(folder / HISTORY)
    return [
        Check("seed", str(result.seed), str(job.get("seed"))),
        Check("epochs", str(result.epochs), str(len(history))),
        Check("steps", str(result.steps), str(history[-1]["steps"] if history else 0)),
    ]


def score_checks(folder: Path, result: Result, dataset: Dataset) -> list[Check]:
    """Every figure that a reader would cite, from the weights and the data alone."""
    tested = score_again(folder, dataset, purpose="verify")
    model = store.load(folder)
    validated = score_validation(model, as_it_reads(model, dataset))
    right = f"{result.correct} of {result.n}", f"{tested.correct} of {tested.n}"
    now = {
        "test_accuracy": tested.accuracy,
        "floor": floor(dataset.test_labels),
        "validation_accuracy": validated.accuracy,
        "validation_n": validated.n,
    }
    return [
        Check("test images right", *right),
        Check("every test answer", result.predictions_sha256, tested.predictions_sha256),
        *(Check(name, str(getattr(result, name)), str(value)) for name, value in now.items()),
    ]


def score_validation(model: Classifier, dataset: Dataset) -> Score:
    """Score on the images that were kept back for selection."""
    _, validation = training_and_validation(dataset.train_labels)
    images = torch.from_numpy(dataset.train_images[validation])
    labels = torch.from_numpy(dataset.train_labels[validation])
    return score(model, images, labels, dataset.input)


def score_again(folder: Path, source: str | Path | Dataset | None, *, purpose: str) -> Score:
    """Score a run's weights on the test set once more; its ledger and report will show it."""
    model = store.load(folder)
    dataset = as_it_reads(model, dataset_of(folder, source))
    device = choose_device("auto")
    tested = score_test(model.to(device), dataset, device)
    record_test(folder, purpose, tested)
    render_report(folder)
    renew_card(folder)
    return tested


def as_it_reads(model: Classifier, dataset: Dataset) -> Dataset:
    """The data, prepared as the model's own were: mean and deviation are the model's to say.

    Raises CheckpointError where images are of another shape, or classes are others.
    """
    own, theirs = model.image_input, dataset.input
    if own is None or (own.size, own.channels) != (theirs.size, theirs.channels):
        raise CheckpointError(f"the weights were trained on {own}, and {dataset.name} is {theirs}")
    if model.class_names != list(dataset.class_names):
        raise CheckpointError(
            f"the weights know the classes {', '.join(model.class_names)}, and {dataset.name} has "
            f"{', '.join(dataset.class_names)}"
        )
    return replace(dataset, input=own)
