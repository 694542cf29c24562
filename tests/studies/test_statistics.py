"""The statistics' laws; STA-01, STA-02 and STA-05 are mistakes that published code makes."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from vitreous.errors import ConfigError
from vitreous.studies import statistics as s

finite = st.floats(-1, 1).map(lambda x: round(x, 4))
p_values = st.lists(st.floats(0.0001, 1), min_size=1, max_size=8)


def test_deviation_is_of_a_sample():
    """STA-01."""
    assert s.deviation([0.10, 0.12, 0.30]) == pytest.approx(0.110151, abs=1e-6)


def test_one_seed_has_no_spread_and_no_interval():
    """STA-01."""
    assert s.deviation([0.9]) is None
    interval = s.mean_interval([0.9])
    assert (interval.mean, interval.low, interval.high) == (0.9, None, None)
    assert not interval.leaves_out_zero


def test_the_interval_of_five_is_students():
    """STA-02: the normal distribution would give 0.013859."""
    interval = s.mean_interval([0.91, 0.93, 0.92, 0.94, 0.90])
    assert interval.mean == pytest.approx(0.92)
    assert interval.high is not None
    assert interval.high - interval.mean == pytest.approx(0.019632, abs=1e-6)


def test_holm_goes_by_rank_and_not_by_place():
    """STA-05."""
    assert s.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@given(p_values, st.floats(0.001, 0.2))
@example([0.01, 0.04, 0.03], 0.05)
@example([0.02, 0.02, 0.02], 0.05)
def test_holm_rejects_what_the_step_down_rejects(ps: list[float], level: float):
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    rejected = set()
    for rank, index in enumerate(order):
        if (len(ps) - rank) * ps[index] > level:
            break
        rejected.add(index)
    assert {i for i, p in enumerate(s.holm(ps)) if p <= level} == rejected


@given(st.lists(finite, min_size=2, max_size=8))
@example([0.01, 0.02, -0.03, 0.04])
def test_sign_flip_is_scipys_permutation_test(differences: list[float]):
    """Where no two patterns give sums that differ in their last bits only."""
    sums = [
        abs(sum(x * y for x, y in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = np.mean([total >= abs(sum(differences)) - 1e-12 for total in sums])
    assert s.sign_flip(differences) == pytest.approx(expected)
    if len({round(total, 9) for total in sums}) * 2 == len(sums):
        theirs = stats.permutation_test(
            (np.array(differences),), np.mean, permutation_type="samples", n_resamples=np.inf
        )
        assert s.sign_flip(differences) == pytest.approx(theirs.pvalue)


@pytest.mark.parametrize("n", [1, 3, 5, 6, 10, 16])
def test_no_sign_flip_is_below_two_in_two_to_the_n(n: int):
    assert s.sign_flip([0.1 + 0.01 * i for i in range(n)]) == pytest.approx(2 / 2**n)


def test_many_pairs_are_drawn_and_close_to_exact():
    differences = list(np.random.default_rng(0).normal(0.3, 1, size=20))
    exact = stats.permutation_test(
        (np.array(differences),),
        np.mean,
        permutation_type="samples",
        n_resamples=2**20,
    ).pvalue
    assert s.sign_flip(differences) == pytest.approx(exact, abs=0.01)


def test_pairs_needed_are_those_of_the_smallest_p():
    """6 pairs for one contrast, 7 for three, 8 for five, 9 for ten, 10 for twenty."""
    assert [s.pairs_needed(k) for k in (1, 2, 3, 5, 10, 20)] == [6, 7, 7, 8, 9, 10]
    for family in range(1, 30):
        n = s.pairs_needed(family)
        assert family * 2 / 2**n < 0.05 <= family * 2 / 2 ** (n - 1)


def test_pairs_are_compared_as_students_t_does():
    arm, base = [0.93, 0.95, 0.91, 0.96], [0.90, 0.93, 0.91, 0.91]
    found = s.paired(arm, base)
    theirs = stats.ttest_rel(arm, base).confidence_interval()
    assert found.difference.mean == pytest.approx(0.025)
    assert (found.difference.low, found.difference.high) == pytest.approx((theirs.low, theirs.high))
    assert (found.n, found.wins, found.losses, found.ties) == (4, 3, 0, 1)


def test_what_both_arms_share_cancels():
    """Seeds that are good for both arms do not blur the difference."""
    base = [0.5, 0.7, 0.9, 0.6]
    found = s.paired([value + 0.01 for value in base], base)
    assert found.difference.low == pytest.approx(0.01)
    assert found.difference.high == pytest.approx(0.01)


def test_pairs_must_be_pairs():
    with pytest.raises(ConfigError, match="3 and 2 values do not make pairs"):
        s.paired([1.0, 2.0, 3.0], [1.0, 2.0])
    with pytest.raises(ConfigError, match="0 and 0"):
        s.paired([], [])


def test_the_bootstrap_is_scipys_bca_and_gives_the_same_again():
    values = [0.01, 0.03, -0.005, 0.02, 0.015, 0.04]
    found = s.bootstrap_interval(values)
    theirs = stats.bootstrap(
        (np.array(values),), np.mean, method="BCa", n_resamples=9_999, rng=7
    ).confidence_interval
    assert found == s.bootstrap_interval(values)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=2e-3)


def test_values_that_do_not_differ_have_no_bootstrap():
    found = s.bootstrap_interval([0.1, 0.1, 0.1])
    assert (found.low, found.high) == (None, None)


def test_intervals_that_disagree_about_zero_are_told():
    """A skewed sample: the t interval reaches zero, the bootstrap does not."""
    values = [0.001, 0.001, 0.002, 0.002, 0.03]
    found = s.paired(values, [0.0] * 5)
    assert not found.difference.leaves_out_zero
    assert found.bootstrap.leaves_out_zero
    assert not found.intervals_agree


def test_mcnemar_counts_images_that_only_one_reads():
    found = s.mcnemar({1, 2, 3}, {3} | set(range(10, 20)))
    assert (found.only_first_wrong, found.only_second_wrong) == (2, 10)
    assert found.p == pytest.approx(2 * sum(stats.binom.pmf(k, 12, 0.5) for k in range(3)))
    assert s.mcnemar({4}, {4}).p == 1.0
