"""Pictures of numbers: clear handwritten digits of the training images, side by side on paper."""

import io
from functools import cache

import numpy as np
from PIL import Image

from vitreous.data.sources import load_source

SIDE = 56


@cache
def exemplars(each: int = 12) -> np.ndarray:
    """For every class the training images that are nearest to its mean, (10, each, 28, 28)."""
    data = load_source("mnist")
    images, labels = data.train_images[:6000, 0], data.train_labels[:6000]
    found = []
    for digit in range(10):
        own = images[labels == digit].astype(np.float32)
        distance = ((own - own.mean(0)) ** 2).sum((1, 2))
        found.append(own[np.argsort(distance)[:each]])
    return np.array(found)


def number_image(*lines: str, paper: int = 250) -> Image.Image:
    """Each line of digits in a row of its own."""
    longest = max(len(line) for line in lines)
    page = np.full((SIDE * len(lines) + 24, (SIDE - 6) * longest + 40), float(paper))
    for row, line in enumerate(lines):
        for place, digit in enumerate(line):
            ink = Image.fromarray(exemplars()[int(digit), 0].astype(np.uint8))
            ink = np.asarray(ink.resize((SIDE, SIDE), Image.Resampling.BICUBIC), float) / 255
            top, left = 12 + row * SIDE, 20 + place * (SIDE - 6)
            page[top : top + SIDE, left : left + SIDE] -= (paper - 20) * ink
    return Image.fromarray(page.clip(0, 255).astype(np.uint8))


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    """The bytes of an image file."""
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def png(*lines: str) -> bytes:
    """An image file of a number."""
    return encoded(number_image(*lines))
