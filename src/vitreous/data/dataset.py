"""A data set in memory: training and test images, their labels, and how images are prepared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vitreous.errors import DataError
from vitreous.frontends.image import MNIST_INPUT, ImageInput
from vitreous.protocol.seeds import stream

__all__ = ["Dataset", "fixed_order", "from_arrays", "input_for"]

ARRAYS = ("train_images", "train_labels", "test_images", "test_labels")
MOST_CLASSES = 100_000
"""A larger label is an identifier or damage, and its names would fill the memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """Images uint8 (n, c, y, x) and labels int64 (n,), in two parts that share no image.

    Raises DataError for arrays that do not fit each other.
    """

    name: str
    """The specification as it was given."""
    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    class_names: tuple[str, ...]
    """Label i is called `class_names[i]`."""
    input: ImageInput
    options: Mapping[str, Any] = field(default_factory=dict)
    """With which options `load_source` read it; JSON values."""
    note: str = ""
    """What was done to the data that a reader of its results should know."""

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            self._check_part(part, getattr(self, f"{part}_images"), getattr(self, f"{part}_labels"))
        if len(set(self.class_names)) != len(self.class_names):
            raise DataError(f"{self.name}: two classes have one name: {self.class_names}")

    def _check_part(self, part: str, images: NDArray[Any], labels: NDArray[Any]) -> None:
        wanted = (self.input.channels, *self.input.size)
        if images.dtype != np.uint8 or images.shape[1:] != wanted:
            raise DataError(
                f"{self.name}: {part} images are {images.dtype} {images.shape}; "
                f"uint8 (n, {', '.join(map(str, wanted))}) was wanted"
            )
        if labels.dtype != np.int64 or labels.shape != images.shape[:1]:
            raise DataError(
                f"{self.name}: {part} labels are {labels.dtype} {labels.shape}; "
                f"int64 ({len(images)},) was wanted, one for each image"
            )
        if not len(labels):
            raise DataError(f"{self.name} has no {part} images")
        if labels.min() < 0 or labels.max() >= len(self.class_names):
            raise DataError(
                f"{self.name}: {part} labels run from {labels.min()} to {labels.max()}; "
                f"there are {len(self.class_names)} classes"
            )

    @property
    def hashes(self) -> dict[str, str]:
        """The sha256 of each array: its type, shape and bytes."""
        return {name: digest(getattr(self, name)) for name in ARRAYS}


def digest(array: NDArray[Any]) -> str:
    """The sha256 of an array's type, shape and numbers, on any machine."""
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return sha256(f"{little.dtype.str} {little.shape}\n".encode() + little.tobytes()).hexdigest()


def fixed_order(n: int) -> NDArray[np.int64]:
    """A permutation of n that is always the same one."""
    return np.random.default_rng(stream(0, "split")).permutation(n)


def input_for(images: NDArray[np.uint8], class_names: Sequence[str]) -> ImageInput:
    """How images (n, c, y, x) of these classes are to be prepared.

    Grey 28×28 images of classes "0" to "9" are digits in the style of MNIST. All else is a picture
    with the mean and deviation of these images, rounded to four decimals.
    """
    channels, y, x = images.shape[1:]
    if (channels, y, x) == (1, 28, 28) and set(class_names) <= set("0123456789"):
        return MNIST_INPUT
    mean, std = statistics(images)
    return ImageInput(
        size=(y, x), channels=channels, kind="picture", resize="crop", mean=mean, std=std
    )


def statistics(images: NDArray[np.uint8]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and deviation per channel of pixels as 0..1; exact, from counts of the 256 levels."""
    means, deviations = [], []
    for channel in range(images.shape[1]):
        counts = np.bincount(images[:, channel].ravel(), minlength=256)
        levels = np.arange(256) / 255
        mean = np.average(levels, weights=counts)
        std = np.average((levels - mean) ** 2, weights=counts) ** 0.5
        means.append(round(float(mean), 4))
        deviations.append(max(round(float(std), 4), 0.0001))
    return tuple(means), tuple(deviations)


def from_arrays(
    name: str,
    train: tuple[NDArray[Any], NDArray[Any]],
    test: tuple[NDArray[Any], NDArray[Any]],
    *,
    class_names: Sequence[str] | None = None,
    note: str = "",
) -> Dataset:
    """A data set from images and labels as they lie in files.

    Images are (n, y, x), (n, y, x, c) or (n, c, y, x) with c 1 or 3, of whole numbers 0..255 or of
    floats 0..1, which are multiplied by 255 and rounded. Training images that come sorted by class
    are put in a fixed order, since the last fifth becomes the validation set. Raises DataError.
    """
    images, labels = as_images(train[0], name), as_labels(train[1], name)
    if train[0].dtype.kind == "f":
        note = joined(note, "floats 0..1 were multiplied by 255 and rounded")
    if is_sorted(labels) and len(images) == len(labels):
        order = fixed_order(len(labels))
        images, labels = images[order], labels[order]
        note = joined(note, "training images came sorted by class and were put in a fixed order")
    names = tuple(class_names or counted(labels, name))
    return Dataset(
        name=name,
        train_images=images,
        train_labels=labels,
        test_images=as_images(test[0], name),
        test_labels=as_labels(test[1], name),
        class_names=names,
        input=input_for(images, names),
        note=note,
    )


def counted(labels: NDArray[np.int64], name: str) -> tuple[str, ...]:
    """The numbers from 0 to the largest label, as names."""
    largest = int(labels.max(initial=0))
    if largest >= MOST_CLASSES:
        raise DataError(
            f"{name}: a label is {largest}; classes without names end at {MOST_CLASSES}"
        )
    return tuple(map(str, range(largest + 1)))


def joined(*notes: str) -> str:
    """Notes as one line."""
    return "; ".join(note for note in notes if note)


def is_sorted(labels: NDArray[np.int64]) -> bool:
    """Whether labels never fall and do rise: the last fifth would miss classes."""
    return len(labels) > 1 and bool((np.diff(labels) >= 0).all() and labels[0] < labels[-1])


def as_images(array: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """Images of any accepted layout as uint8 (n, c, y, x)."""
    if not array.size:
        raise DataError(f"{name}: images of shape {array.shape} hold no pixels")
    pixels = as_bytes(array, name)
    if pixels.ndim == 3:
        return pixels[:, None]
    if pixels.ndim == 4 and pixels.shape[1] in (1, 3):
        return pixels
    if pixels.ndim == 4 and pixels.shape[3] in (1, 3):
        return np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))
    raise DataError(
        f"{name}: images of shape {array.shape} are neither (n, y, x) nor (n, y, x, c) nor "
        "(n, c, y, x) with c 1 or 3"
    )


def as_bytes(array: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """Pixel levels as uint8, whatever type they are stored in."""
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind not in "iuf":
        raise DataError(f"{name}: images of type {array.dtype} are no pixel levels")
    top = 1 if array.dtype.kind == "f" else 255
    low, high = array.min(), array.max()
    if not (low >= 0 and high <= top):
        raise DataError(
            f"{name}: {array.dtype} images run from {low} to {high}; whole numbers 0 to 255 or "
            "floats 0 to 1 are read"
        )
    if array.dtype.kind == "f":
        return np.rint(array.astype(np.float32) * 255).astype(np.uint8)
    return array.astype(np.uint8)


def as_labels(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Labels (n,) or (n, 1) of whole numbers as int64 (n,)."""
    if array.dtype.kind not in "iu" or array.ndim not in (1, 2) or array.size != len(array):
        raise DataError(
            f"{name}: labels are {array.dtype} {array.shape}; whole numbers (n,) were wanted"
        )
    return array.reshape(-1).astype(np.int64)
