"""How probabilities are made true, and below which the reader says that it is not sure.

The temperature divides log-probabilities of whole strings. It is fitted on validation strings, on
which no weight was trained (Guo et al. 2017, arXiv 1706.04599, here on strings, not classes).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Covered", "coverage", "expected_error", "fit_temperature", "fit_threshold"]

LADDER = np.exp(np.linspace(np.log(0.2), np.log(10), 200))
"""Temperatures that are tried."""


class Covered(NamedTuple):
    """What is left when the least sure are rejected."""

    coverage: float
    """The share that is answered."""
    threshold: float
    """The lowest probability that is answered."""
    accuracy: float
    """Of what is answered."""
    n: int


def fit_temperature(log_probabilities: Sequence[float], right: Sequence[bool]) -> float:
    """The temperature at which exp(log p / T) says best which answers are right (log loss)."""
    logs, truth = np.minimum(np.array(log_probabilities, float), 0), np.array(right, bool)
    losses = [log_loss(np.exp(logs / heat), truth) for heat in LADDER]
    return round(float(LADDER[int(np.argmin(losses))]), 4)


def log_loss(chances: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """Mean of -log of the probability of what happened."""
    chances = np.clip(chances, 1e-9, 1 - 1e-9)
    return float(-np.where(truth, np.log(chances), np.log1p(-chances)).mean())


def fit_threshold(chances: Sequence[float], right: Sequence[bool], wanted: float = 0.99) -> float:
    """The lowest probability above which so many answers are right; 1 where nothing reaches it."""
    enough = [one for one in coverage(chances, right) if one.accuracy >= wanted]
    return round(max(enough, key=lambda one: one.coverage).threshold, 4) if enough else 1.0


def coverage(chances: Sequence[float], right: Sequence[bool]) -> list[Covered]:
    """The reject curve: for every number of answers, the surest first, how many are right."""
    order = np.argsort(-np.array(chances, float), kind="stable")
    counted = np.cumsum(np.array(right, bool)[order])
    total = len(order)
    sorted_chances = np.array(chances, float)[order]
    return [
        Covered((n + 1) / total, float(sorted_chances[n]), float(counted[n] / (n + 1)), n + 1)
        for n in range(total)
        # Answers of equal probability stand or fall together.
        if n + 1 == total or sorted_chances[n + 1] < sorted_chances[n]
    ]


def expected_error(chances: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """Expected calibration error: |how often right - how sure|, the mean over bins by size."""
    sure, truth = np.array(chances, float), np.array(right, float)
    place = np.minimum((sure * bins).astype(int), bins - 1)
    gaps = [abs(truth[place == b].sum() - sure[place == b].sum()) for b in range(bins)]
    return float(np.sum(gaps) / max(len(sure), 1))
