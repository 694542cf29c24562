"""How good a model is on images with known answers: sums over images, never means of means."""

from dataclasses import dataclass
from hashlib import sha256

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vitreous.frontends.image import ImageInput, normalise

__all__ = ["Score", "score"]

BATCH = 500


@dataclass(frozen=True)
class Score:
    """What a model got right."""

    n: int
    correct: int
    loss: float
    """Mean cross-entropy over the images."""
    predictions: tuple[int, ...]
    """The class index chosen for each image, in order."""

    @property
    def accuracy(self) -> float:
        """The fraction of images that were right."""
        return self.correct / self.n

    @property
    def predictions_sha256(self) -> str:
        """A hash of every single answer: equal hashes, equal answers."""
        return sha256(",".join(map(str, self.predictions)).encode()).hexdigest()


@torch.no_grad()
def score(model: nn.Module, images: Tensor, labels: Tensor, image_input: ImageInput) -> Score:
    """Score uint8 images (n, c, y, x) in the model's own dtype; its mode is as before after."""
    was_training = model.training
    model.eval()
    dtype = next(model.parameters()).dtype
    loss, predictions = 0.0, []
    for some, truth in zip(images.split(BATCH), labels.split(BATCH), strict=True):
        logits = model(normalise(some, image_input).to(dtype)).float()
        loss += F.cross_entropy(logits, truth, reduction="sum").item()
        predictions.append(logits.argmax(dim=1))
    model.train(was_training)
    answers = torch.cat(predictions)
    correct = int((answers == labels).sum())
    return Score(len(labels), correct, loss / len(labels), tuple(answers.tolist()))
