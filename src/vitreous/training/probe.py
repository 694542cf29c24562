"""What a model's features are worth without training it: a linear probe and nearest neighbours.

Everything that is chosen (the strength of the penalty, k) is chosen on the validation images; then
the test images are encoded and answered once, which a ledger records.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from vitreous.checkpoints.files import write_json
from vitreous.checkpoints.refit import refit
from vitreous.data.dataset import Dataset
from vitreous.data.sources import load_source
from vitreous.errors import CheckpointError
from vitreous.frontends.image import ImageInput, normalise
from vitreous.models.classifier import Classifier, build
from vitreous.protocol import ledger
from vitreous.protocol.splits import floor, training_and_validation
from vitreous.training.folder import LEDGER, command_line, now
from vitreous.training.job import choose_device, machine
from vitreous.training.start import fitted_config, open_weights, weights_hash

__all__ = ["PROBE", "Answer", "Linear", "Nearest", "Probed", "probe"]

PROBE = "probe.json"
PENALTIES = (1.0, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
"""Of half the squared weights, beside the mean loss; strongest first."""
NEIGHBOURS = (1, 5, 10, 20, 50)
TEMPERATURE = 0.07
BATCH = 250

Progress: TypeAlias = Callable[[int, int], None]
Features: TypeAlias = Float[Tensor, "n d"]
Labels: TypeAlias = Int[Tensor, " n"]
Logits: TypeAlias = Float[Tensor, "m classes"]
Choice: TypeAlias = int | float


@dataclass(frozen=True)
class Answer:
    """What one way of reading the features came to."""

    chosen: Choice
    """The penalty, or k, that was best on the validation images."""
    validation_accuracy: float
    test_accuracy: float
    correct: int
    """Of the n test images."""


@dataclass(frozen=True)
class Probed:
    """Features of one model on one data set, read in two ways."""

    weights: str
    sha256: str
    source: str
    data_sha256: dict[str, str]
    width: int
    linear: Answer
    knn: Answer
    training_n: int
    validation_n: int
    n: int
    """Test images."""
    floor: float
    """Accuracy of always guessing the most common test label."""
    notes: tuple[str, ...]
    """What was done to the weights, in words."""
    machine: str
    command: str


@dataclass(frozen=True)
class Part:
    """Features and labels of some images."""

    features: Features
    labels: Labels


def probe(
    weights: str | Path,
    source: str | Path | Dataset = "mnist",
    *,
    out: str | Path = "runs/probe",
    heads: int | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> Probed:
    """Read a model's features (`model.encode`) by logistic regression and by nearest neighbours.

    The model is not trained. The result and the look at the test set are written to the folder
    `out`; its ledger counts them if there were several. `heads` is for files that do not say how
    many they have. Raises CheckpointError or DataError.
    """
    dataset = load_source(source)
    model, sha256, notes = fitted_model(weights, dataset, heads)
    run_on = choose_device(device)
    encode = Encoder(model.to(run_on), image_input_of(model, dataset), progress, dataset)
    chosen_on, selected_on = training_and_validation(dataset.train_labels)
    training = encode(dataset.train_images[chosen_on], dataset.train_labels[chosen_on])
    validation = encode(dataset.train_images[selected_on], dataset.train_labels[selected_on])
    classes = len(dataset.class_names)
    ways = {"linear": Linear(training, classes), "knn": Nearest(training, classes)}
    best = {name: choose(way, validation) for name, way in ways.items()}
    test = encode(dataset.test_images, dataset.test_labels)
    answers = {}
    for name, (chosen, accuracy) in best.items():
        correct = right(ways[name], test, [chosen])[chosen]
        answers[name] = Answer(chosen, accuracy, correct / len(test.labels), correct)
    probed = Probed(
        weights=str(weights),
        sha256=sha256,
        source=dataset.name,
        data_sha256=dataset.hashes,
        width=training.features.shape[1],
        training_n=len(training.labels),
        validation_n=len(validation.labels),
        n=len(test.labels),
        floor=floor(dataset.test_labels),
        notes=notes,
        machine=machine(run_on),
        command=command_line(),
        **answers,
    )
    record(Path(out), probed)
    return probed


def fitted_model(
    weights: str | Path, dataset: Dataset, heads: int | None
) -> tuple[Classifier, str, tuple[str, ...]]:
    """The model in eval mode, fitted to images of the data's size and channels."""
    source, place = open_weights(weights, heads=heads)
    config = fitted_config(source.config, dataset)
    tensors, notes = refit(source, config)
    model = build(config)
    model.load_state_dict({**model.state_dict(), **tensors})
    model.image_input = source.image_input
    return model.eval(), weights_hash(place), tuple(notes[1:])  # the first is about a new head


def image_input_of(model: Classifier, dataset: Dataset) -> ImageInput:
    """The data's preparation, with the mean and deviation that the weights know where these fit."""
    own = model.image_input
    if own is None or own.channels != dataset.input.channels:
        return dataset.input
    return replace(dataset.input, mean=own.mean, std=own.std)


class Encoder:
    """Images to features, with one progress over all parts of a data set."""

    def __init__(
        self,
        model: Classifier,
        image_input: ImageInput,
        progress: Progress | None,
        dataset: Dataset,
    ) -> None:
        self.model, self.image_input, self.progress = model, image_input, progress
        self.total = len(dataset.train_labels) + len(dataset.test_labels)
        self.done = 0

    @torch.no_grad()
    def __call__(self, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Part:
        device = next(self.model.parameters()).device
        features = []
        for some in torch.from_numpy(images).split(BATCH):
            prepared = normalise(some.to(device), self.image_input)
            features.append(self.model.encode(prepared).float().cpu())
            self.done += len(some)
            if self.progress:
                self.progress(self.done, self.total)
        whole = torch.cat(features)
        if not whole.isfinite().all():
            raise CheckpointError("the model's features hold numbers that are none (NaN or Inf)")
        return Part(whole, torch.from_numpy(labels))


class Linear:
    """Multinomial logistic regression on standardised features, for several penalties."""

    def __init__(self, training: Part, classes: int) -> None:
        self.mean = training.features.mean(0)
        self.std = training.features.std(0).clamp(min=1e-6)
        self.weights: dict[Choice, Tensor] = {}
        inputs = self.standard(training.features)
        weight = torch.zeros(inputs.shape[1] + 1, classes, dtype=torch.double)
        for penalty in PENALTIES:  # each begins where the one before ended
            self.weights[penalty] = weight = fit_linear(inputs, training.labels, penalty, weight)

    @property
    def choices(self) -> list[Choice]:
        """The penalties, strongest first."""
        return list(self.weights)

    def standard(self, features: Features) -> Float[Tensor, "n d"]:
        """Features of mean 0 and deviation 1 over the training images."""
        return ((features - self.mean) / self.std).double()

    def answers(self, features: Features, choices: Sequence[Choice]) -> dict[Choice, Logits]:
        """Logits for each of these penalties."""
        inputs = self.standard(features)
        return {choice: linear(inputs, self.weights[choice]) for choice in choices}


class Nearest:
    """Votes of the k nearest training images by cosine, each weighing exp(cosine / 0.07).

    Source: DINO's k-NN evaluation (arXiv 2104.14294), after Wu et al. (arXiv 1805.01978).
    """

    def __init__(self, training: Part, classes: int) -> None:
        self.bank = F.normalize(training.features, dim=1)
        self.labels, self.classes = training.labels, classes

    @property
    def choices(self) -> list[Choice]:
        """Every k that there are images for."""
        return [k for k in NEIGHBOURS if k <= len(self.labels)]

    def answers(self, features: Features, choices: Sequence[Choice]) -> dict[Choice, Logits]:
        """Votes for each of these k."""
        near = (F.normalize(features, dim=1) @ self.bank.T).topk(int(max(choices)), dim=1)
        # Less the largest, which changes no order, so that no weight overflows.
        weights = ((near.values - near.values[:, :1]) / TEMPERATURE).exp()
        labels, votes = self.labels[near.indices], {}
        for k in map(int, choices):
            none = torch.zeros(len(features), self.classes)
            votes[k] = none.scatter_add_(1, labels[:, :k], weights[:, :k])
        return votes


Way: TypeAlias = Linear | Nearest


def choose(way: Way, validation: Part) -> tuple[Choice, float]:
    """The choice with most validation images right, the first of equals; and its accuracy."""
    scores = right(way, validation, way.choices)
    best = max(scores, key=lambda choice: scores[choice])
    return best, scores[best] / len(validation.labels)


def right(way: Way, part: Part, choices: Sequence[Choice]) -> dict[Choice, int]:
    """How many images of a part each choice answers rightly."""
    correct = dict.fromkeys(choices, 0)
    for some, labels in zip(part.features.split(BATCH), part.labels.split(BATCH), strict=True):
        for choice, logits in way.answers(some, choices).items():
            correct[choice] += int((logits.argmax(dim=1) == labels).sum())
    return correct


def linear(inputs: Float[Tensor, "n d"], weight: Float[Tensor, "rows classes"]) -> Logits:
    """Logits of a linear map whose last row is its bias."""
    return inputs @ weight[:-1] + weight[-1]


def fit_linear(inputs: Tensor, labels: Tensor, penalty: float, start: Tensor) -> Tensor:
    """Least mean cross-entropy plus penalty/2 · |weights|², the bias left free."""
    weight = start.clone().requires_grad_()
    solver = torch.optim.LBFGS(
        [weight], max_iter=200, tolerance_grad=1e-6, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        solver.zero_grad()
        value = F.cross_entropy(linear(inputs, weight), labels)
        value = value + penalty / 2 * weight[:-1].square().sum()
        value.backward()
        return value

    solver.step(loss)
    return weight.detach()


def record(out: Path, probed: Probed) -> None:
    """Write the ledger first, then the result."""
    out.mkdir(parents=True, exist_ok=True)
    for purpose, answer in (("linear probe", probed.linear), ("k-NN", probed.knn)):
        touch = ledger.Touch(purpose, now(), probed.command, answer.correct, probed.n)
        ledger.write(out / LEDGER, touch)
    content: dict[str, Any] = asdict(probed)
    write_json(out / PROBE, content)
