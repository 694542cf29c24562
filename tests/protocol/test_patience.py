import math
from dataclasses import asdict

import pytest

from vitreous.config import Recipe
from vitreous.errors import ConfigError
from vitreous.protocol.stopping import Patience


def stops_after(patience: Patience, losses: list[float]) -> int | None:
    for epoch, loss in enumerate(losses, start=1):
        patience.update(loss)
        if patience.exhausted:
            return epoch
    return None


@pytest.mark.parametrize(("limit", "epoch"), [(1, 3), (2, 4), (3, 5), (4, None)])
def test_patience_counts_epochs_in_a_row_without_a_better_loss(limit: int, epoch: int | None):
    patience = Patience(limit)
    assert stops_after(patience, [1.0, 0.9, 0.95, 0.96, 0.97]) == epoch
    assert (patience.best_epoch, patience.best) == (2, 0.9)


def test_a_better_loss_starts_the_count_again():
    assert stops_after(Patience(2), [1.0, 1.1, 0.9, 1.0, 0.8, 0.9, 0.9]) == 7


def test_an_equal_loss_is_not_better():
    patience = Patience(2)
    assert stops_after(patience, [1.0, 1.0, 1.0]) == 3
    assert patience.best_epoch == 1


@pytest.mark.parametrize("limit", [0, -1])
def test_patience_zero_is_refused_here_and_in_a_recipe(limit: int):
    with pytest.raises(ConfigError, match=f"patience={limit} must be at least 1"):
        Patience(limit)
    with pytest.raises(ConfigError, match=f"patience={limit} must be at least 1"):
        Recipe(patience=limit)


def test_without_patience_nothing_stops():
    assert stops_after(Patience(), [1.0] * 1000) is None


def test_a_smaller_gain_than_min_delta_is_no_gain_and_moves_no_mark():
    patience = Patience(min_delta=0.05)
    assert [patience.update(loss) for loss in (1.0, 0.96, 0.92, 0.90)] == [True, False, True, False]
    assert patience.best == 0.92


def test_nan_is_never_the_best_and_counts_against_patience():
    patience = Patience(2)
    assert stops_after(patience, [math.nan, 1.0, math.nan, math.nan]) == 4
    assert patience.best == 1.0


def test_patience_goes_on_where_it_was():
    losses = [0.5, 0.4, 0.45]
    before = Patience(2)
    for loss in losses:
        before.update(loss)
    after = Patience(**asdict(before))
    assert not after.update(0.44)
    assert after.exhausted
    assert (after.best, after.best_epoch) == (0.4, 2)
