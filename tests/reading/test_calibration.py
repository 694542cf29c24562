"""Probabilities that are true, and answers that are withheld."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vitreous.reading.calibration import coverage, expected_error, fit_temperature, fit_threshold

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=40)


@pytest.mark.parametrize("heat", [0.5, 1.0, 3.0])
def test_a_temperature_that_was_put_in_is_found(heat: float):
    luck = np.random.default_rng(0)
    chances = luck.uniform(0.05, 0.999, 4_000)
    right = luck.random(4_000) < chances
    assert fit_temperature((heat * np.log(chances)).tolist(), right.tolist()) == pytest.approx(
        heat, rel=0.15
    )


@given(answers=ANSWERS)
@example(answers=[(0.9, True), (0.5, False)])
@example(answers=[(0.5, True), (0.5, False)])
def test_the_reject_curve_ends_with_everything_and_counts_right(answers):
    chances, right = [a for a, _ in answers], [b for _, b in answers]
    curve = coverage(chances, right)
    assert curve[-1].coverage == 1.0
    assert curve[-1].accuracy == pytest.approx(np.mean(right))
    for one in curve:
        kept = [truth for chance, truth in answers if chance >= one.threshold]
        assert one.n == len(kept)
        assert one.accuracy == pytest.approx(np.mean(kept))


def test_the_threshold_keeps_as_many_answers_as_it_can():
    chances = [0.99, 0.9, 0.8, 0.7, 0.6]
    right = [True, True, True, False, True]
    assert fit_threshold(chances, right, 0.99) == 0.8
    assert fit_threshold(chances, right, 0.7) == 0.6
    assert fit_threshold([0.9], [False], 0.99) == 1.0


def test_the_calibration_error_of_a_boaster_is_what_he_boasts():
    assert expected_error([0.95] * 100, [True] * 50 + [False] * 50) == pytest.approx(0.45)
    assert expected_error([0.5] * 100, [True] * 50 + [False] * 50) == pytest.approx(0)
