"""What a few numbers, paired by seed, allow one to say. Knows arrays, not runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from vitreous.errors import ConfigError

__all__ = [
    "Interval",
    "McNemar",
    "Paired",
    "holm",
    "mcnemar",
    "mean_interval",
    "paired",
    "pairs_needed",
    "sign_flip",
]

CONFIDENCE = 0.95
LEVEL = 0.05
RESAMPLES = 9_999
EXACT_PAIRS = 16
"""Up to so many pairs every one of the 2^n sign patterns is tried; beyond, a random 100,000."""


@dataclass(frozen=True)
class Interval:
    """A mean, and where the mean of all seeds lies, with 95 % confidence."""

    mean: float
    low: float | None
    high: float | None
    """None where there is one value: one value has no spread."""

    def times(self, factor: float) -> "Interval":
        """The same in another unit."""
        ends = (None if end is None else end * factor for end in (self.low, self.high))
        return Interval(self.mean * factor, *ends)

    @property
    def leaves_out_zero(self) -> bool:
        """Whether zero is not in it; False where there is no interval."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation (n - 1); None for one value, which has no spread.

    >>> round(deviation([0.10, 0.12, 0.30]), 6)
    0.110151
    """
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean and 95 % interval of Student's t with n - 1 degrees of freedom.

    >>> interval = mean_interval([0.91, 0.93, 0.92, 0.94, 0.90])
    >>> round(interval.mean - interval.low, 6)
    0.019632
    """
    mean, spread = float(np.mean(values)), deviation(values)
    if spread is None:
        return Interval(mean, None, None)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * spread / len(values) ** 0.5
    return Interval(mean, mean - half, mean + half)


def bootstrap_interval(values: Sequence[float]) -> Interval:
    """Mean and 95 % interval of the BCa bootstrap; none where values do not differ.

    Below about ten values it is too narrow; the t interval is the one to go by. Source: Efron,
    Better Bootstrap Confidence Intervals (1987).
    """
    mean = float(np.mean(values))
    if len(set(values)) < 2:
        return Interval(mean, None, None)
    found = stats.bootstrap(
        (np.asarray(values),), np.mean, n_resamples=RESAMPLES, method="BCa", rng=0
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high))


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided p of the mean difference, if each sign had been a coin's throw.

    Exact up to 16 pairs. Never below 2 / 2^n, whatever the differences are.

    >>> sign_flip([0.01, 0.02, 0.03])
    0.25
    """
    array = np.asarray(differences, dtype=float)
    if len(array) > EXACT_PAIRS:
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(100_000, len(array)))
        return float((extreme(signs, array) + 1) / (len(signs) + 1))
    patterns = np.arange(2 ** len(array))[:, None] >> np.arange(len(array)) & 1
    return extreme(1.0 - 2.0 * patterns, array) / len(patterns)


def extreme(signs: NDArray[np.float64], differences: NDArray[np.float64]) -> int:
    """How many patterns of signs give a mean at least as far from zero as the real one."""
    means = np.abs(signs @ differences)
    # Sums of the same numbers in another order differ in the last bits.
    return int((means >= np.abs(differences.sum()) * (1 - 1e-12) - 1e-15).sum())


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p, adjusted for having asked so many questions. Source: Holm (1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min((len(p_values) - rank) * p_values[index], 1.0))
        adjusted[index] = largest
    return adjusted


def pairs_needed(contrasts: int = 1) -> int:
    """Pairs without which no sign-flip p, adjusted for so many contrasts, can be below 0.05.

    >>> [pairs_needed(contrasts) for contrasts in (1, 3, 5, 10, 20)]
    [6, 7, 8, 9, 10]
    """
    pairs = 1
    while contrasts * 2 / 2**pairs >= LEVEL:
        pairs += 1
    return pairs


@dataclass(frozen=True)
class Paired:
    """An arm against its base, seed by seed."""

    differences: tuple[float, ...]
    difference: Interval
    """Arm minus base, by Student's t."""
    bootstrap: Interval
    """The same by the BCa bootstrap."""
    p: float
    """Sign-flip permutation, not adjusted."""

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.differences)

    @property
    def wins(self) -> int:
        """Pairs in which the arm has more than its base."""
        return sum(difference > 0 for difference in self.differences)

    @property
    def losses(self) -> int:
        """Pairs in which it has less."""
        return sum(difference < 0 for difference in self.differences)

    @property
    def ties(self) -> int:
        """Pairs in which both have the same."""
        return self.n - self.wins - self.losses

    @property
    def intervals_agree(self) -> bool:
        """Whether both intervals answer alike to the question if zero is outside."""
        if self.bootstrap.low is None:
            return True
        return self.difference.leaves_out_zero == self.bootstrap.leaves_out_zero


def paired(arm: Sequence[float], base: Sequence[float]) -> Paired:
    """Compare two arms over the same seeds, in the same order; raises ConfigError for no pair."""
    if len(arm) != len(base) or not len(arm):
        raise ConfigError(f"{len(arm)} and {len(base)} values do not make pairs")
    differences = tuple(a - b for a, b in zip(arm, base, strict=True))
    return Paired(
        differences=differences,
        difference=mean_interval(differences),
        bootstrap=bootstrap_interval(differences),
        p=sign_flip(differences),
    )


@dataclass(frozen=True)
class McNemar:
    """Two trained models on the same test images: another question than many seeds answer."""

    only_first_wrong: int
    only_second_wrong: int
    p: float
    """Exact binomial, two-sided."""


def mcnemar(first_wrong: set[int], second_wrong: set[int]) -> McNemar:
    """Do these two models differ on these images? Source: McNemar (1947), exact form.

    It says nothing of how other seeds would do.

    >>> mcnemar({1, 2, 3}, {3, 4, 5, 6, 7, 8, 9, 10, 11}).p < 0.15
    True
    """
    first, second = len(first_wrong - second_wrong), len(second_wrong - first_wrong)
    if not first + second:
        return McNemar(0, 0, 1.0)
    return McNemar(first, second, float(stats.binomtest(first, first + second).pvalue))
