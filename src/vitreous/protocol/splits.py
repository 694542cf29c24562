"""One rule for every source: the last fifth of the training set is for selection."""

from collections.abc import Sequence

import numpy as np

from vitreous.errors import DataError

__all__ = ["floor", "training_and_validation"]


def training_and_validation(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices to train on and indices to select on: the last fifth, rounded down.

    Raises DataError where there are fewer than five images, where labels only ever rise, or where
    a class is in the last fifth only: such a file is sorted, and no accuracy on it means anything.
    """
    count = len(labels)
    held_out = count // 5
    if not held_out:
        raise DataError(f"{count} training images cannot be split: at least 5 are needed")
    training, validation = np.arange(count - held_out), np.arange(count - held_out, count)
    missing = sorted(set(labels[validation].tolist()) - set(labels[training].tolist()))
    if missing:
        raise DataError(
            f"class index {missing[0]} is in the last fifth of the training images only; "
            "the images seem to be sorted by class: shuffle them before they are written"
        )
    if labels[0] < labels[-1] and (np.diff(labels) >= 0).all():
        raise DataError(
            f"the {count} training images are sorted by class, so that the last fifth holds class "
            f"index {labels[-held_out]} to {labels[-1]} only: shuffle them before they are written"
        )
    return training, validation


def floor(labels: Sequence[int] | np.ndarray) -> float:
    """The accuracy of always guessing the most common label of these.

    >>> floor([3, 3, 3, 1])
    0.75
    """
    counts = np.unique(np.asarray(labels), return_counts=True)[1]
    return float(counts.max() / counts.sum())
