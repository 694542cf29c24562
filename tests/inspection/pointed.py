"""A task whose answer lies in one patch: models that have learned it, and models that have not."""

from dataclasses import replace
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from vitreous.config import ViTConfig
from vitreous.frontends.image import ImageInput
from vitreous.models.classifier import Classifier, build

CONFIG = ViTConfig(
    image_size=(20, 24),
    patch_size=4,
    width=32,
    depth=2,
    heads=2,
    classes=3,
    register_tokens=1,
    dropout=0.1,
)
"""Five rows and six columns of patches: nothing about it is square."""
INPUT = ImageInput(
    size=(20, 24), channels=1, kind="picture", resize="stretch", mean=(0.5,), std=(0.25,)
)


def pointed(count: int, seed: int) -> tuple[Tensor, Tensor, list[tuple[int, int]]]:
    """Flat images with one striped patch somewhere: the stripes lie (0), stand (1) or are not
    there (2)."""
    luck = torch.Generator().manual_seed(seed)
    images = 0.05 * torch.randn(count, 1, 20, 24, generator=luck)
    labels = torch.randint(3, (count,), generator=luck)
    stripes = torch.tensor([1.5, 1.5, -1.5, -1.5])
    places = []
    for image, label in zip(images, labels.tolist(), strict=True):
        row, col = (int(torch.randint(side, (), generator=luck)) for side in (5, 6))
        patch = stripes.expand(4, 4) if label else stripes.expand(4, 4).T
        if label < 2:
            image[0, 4 * row : 4 * row + 4, 4 * col : 4 * col + 4] = patch
        places.append((row, col))
    return images, labels, places


@cache
def taught() -> Classifier:
    """A model that has learned it, in a few seconds."""
    torch.manual_seed(0)
    model = build(replace(CONFIG, pooling="mean", class_token=False))
    model.image_input = INPUT
    images, labels, _ = pointed(2048, seed=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(160):
        some = torch.arange(32 * step, 32 * step + 32) % len(images)
        optimizer.zero_grad()
        F.cross_entropy(model(images[some]), labels[some]).backward()
        optimizer.step()
    return model.eval()


def untaught(seed: int, config: ViTConfig = CONFIG) -> Classifier:
    torch.manual_seed(1000 + seed)
    return build(config).eval()
