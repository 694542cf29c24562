"""What a trained model says about people's own image files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch

from vitreous.errors import CheckpointError, ImageError
from vitreous.frontends.decode import Source
from vitreous.frontends.image import read_image
from vitreous.models.classifier import Classifier

__all__ = ["Prediction", "predict"]


@dataclass(frozen=True)
class Prediction:
    """One file's answer, or the sentence that says why there is none."""

    file: str
    label: str | None = None
    probability: float | None = None
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest classes and their probabilities, best first."""
    error: str | None = None


def predict(model: Classifier, sources: Iterable[Source], *, top: int = 3) -> Iterator[Prediction]:
    """Answer for each image in turn; one that cannot be read never stops the rest.

    Files are named as they were given. Raises CheckpointError for a model that does not know how
    its images are prepared.
    """
    if model.image_input is None:
        raise CheckpointError("this model does not say how its images are prepared")
    for source in sources:
        name = source if isinstance(source, str) else str(source)
        try:
            yield answer(model, source, name, top)
        except ImageError as error:
            yield Prediction(file=name, error=str(error))


@torch.no_grad()
def answer(model: Classifier, source: Source, name: str, top: int) -> Prediction:
    """The answer for one image."""
    if model.image_input is None:
        raise CheckpointError("this model does not say how its images are prepared")
    device = next(model.parameters()).device
    probabilities = model(read_image(source, model.image_input).to(device)).softmax(dim=-1)[0]
    best = probabilities.topk(min(top, len(probabilities)))
    likeliest = tuple(
        (model.class_names[index], round(chance, 6))
        for chance, index in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    )
    label, probability = likeliest[0]
    return Prediction(name, label, probability, likeliest)
