"""The data of a study's arm: a source, perhaps less of it, or put to another use."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vitreous import settings
from vitreous.config import Pair
from vitreous.data.dataset import Dataset, input_for
from vitreous.data.sources import load_source
from vitreous.errors import ConfigError
from vitreous.protocol.seeds import stream

__all__ = ["Material", "load_material"]


@dataclass(frozen=True, kw_only=True)
class Material:
    """What an arm learns from and is asked. Raises ConfigError."""

    source: str = "mnist"
    train_images: int | None = None
    """Only the first so many, held-out fifth included; none takes all."""
    task: Literal["classes", "quarters"] = "classes"
    """What is asked: the image's class, or in which order its four quarters stand."""

    def __post_init__(self) -> None:
        settings.check(self)
        if self.train_images is not None and self.train_images < 5:
            raise ConfigError(f"train_images={self.train_images} must be at least 5, or none")


def load_material(material: Material, size: Pair) -> Dataset:
    """The data set of these settings, its images stretched to a size (bilinear, antialiased).

    The same settings always give the same pixels.
    """
    data = load_whole(material.source)
    if material.train_images is not None:
        data = first(data, material.train_images)
    if data.input.size != size:
        data = resized(data, size)
    return quarters(data) if material.task == "quarters" else data


@lru_cache(maxsize=1)
def load_whole(source: str) -> Dataset:
    """The source itself, read once for all arms."""
    return load_source(source)


def first(data: Dataset, count: int) -> Dataset:
    """Only the first training images; the test images stay."""
    if count > len(data.train_labels):
        raise ConfigError(
            f"train_images={count} is more than the {len(data.train_labels)} there are"
        )
    return replace(
        data, train_images=data.train_images[:count], train_labels=data.train_labels[:count]
    )


def resized(data: Dataset, size: Pair) -> Dataset:
    """Every image stretched to another size."""
    train, test = stretched(data.train_images, size), stretched(data.test_images, size)
    return with_images(data, train, test)


def stretched(images: NDArray[np.uint8], size: Pair) -> NDArray[np.uint8]:
    """Images (n, c, y, x) of other rows and columns."""
    planes = images.reshape(-1, *images.shape[2:])
    done = [
        np.asarray(
            Image.fromarray(plane).resize(size[::-1], Image.Resampling.BILINEAR)  # pyright: ignore
        )
        for plane in planes
    ]
    return np.stack(done).reshape(*images.shape[:2], *size)


def with_images(data: Dataset, train: NDArray[np.uint8], test: NDArray[np.uint8]) -> Dataset:
    """Other pixels under the same labels; mean and deviation are theirs."""
    return replace(
        data,
        train_images=train,
        test_images=test,
        input=input_for(train, data.class_names),
    )


ORDERS = ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2))
"""Which quarter stands in each place, row by row: all four are the same strokes."""


def quarters(data: Dataset) -> Dataset:
    """The four quarters of every image, in one of four orders; the order is the class.

    As a set of patches the image is the same in every order, if patches tile a quarter: only where
    they stand tells the class. Orders are drawn evenly, apart from the image's own class.
    """
    train, train_orders = shuffled(data.train_images, "train")
    test, test_orders = shuffled(data.test_images, "test")
    return replace(
        with_images(data, train, test),
        train_labels=train_orders,
        test_labels=test_orders,
        class_names=tuple("".join(map(str, order)) for order in ORDERS),
    )


def shuffled(images: NDArray[np.uint8], part: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images with their quarters in a drawn order, and which order it was."""
    _, _, y, x = images.shape
    if y % 2 or x % 2:
        raise ConfigError(f"images of {y}×{x} pixels have no four equal quarters")
    rows, columns = (slice(0, y // 2), slice(y // 2, y)), (slice(0, x // 2), slice(x // 2, x))
    places = [(row, column) for row in rows for column in columns]
    drawn = np.random.default_rng(stream(0, f"quarters/{part}")).integers(4, size=len(images))
    done = np.empty_like(images)
    for label, order in enumerate(ORDERS):
        some = drawn == label
        for place, quarter in zip(places, order, strict=True):
            done[(some, slice(None), *place)] = images[(some, slice(None), *places[quarter])]
    return done, drawn.astype(np.int64)
