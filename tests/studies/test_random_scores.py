"""The study of random scores."""

import math

import pytest
import torch

from vitreous.errors import ConfigError
from vitreous.studies import scores as module
from vitreous.studies.scores import RandomScores, measure_scores


def test_even_attention_has_the_entropy_of_its_tokens(monkeypatch: pytest.MonkeyPatch):
    def even(q, k):
        return torch.full((*q.shape[:3], k.shape[2]), 1 / k.shape[2])

    monkeypatch.setattr(module, "attention_weights", even)
    found = measure_scores(RandomScores(tokens=32, head_dim=8), 0)
    assert found["entropy"] == pytest.approx(math.log(32), rel=1e-5)
    assert found["largest_weight"] == pytest.approx(1 / 32, rel=1e-5)


def test_scores_that_are_not_divided_collapse_as_the_width_grows():
    narrow = measure_scores(RandomScores(head_dim=4, scaled=False), 0)
    wide = measure_scores(RandomScores(head_dim=512, scaled=False), 0)
    divided = measure_scores(RandomScores(head_dim=512), 0)
    assert wide["largest_weight"] > 0.9 > narrow["largest_weight"] > divided["largest_weight"]
    assert wide["entropy"] < 0.3 < narrow["entropy"] < divided["entropy"]
    assert wide["gradient_norm"] < divided["gradient_norm"] / 2


def test_at_width_one_there_is_nothing_to_divide():
    settings = {"head_dim": 1, "tokens": 16, "draws": 4}
    assert measure_scores(RandomScores(**settings), 3) == measure_scores(
        RandomScores(**settings, scaled=False), 3
    )


def test_the_gradient_is_autograds():
    """Of the sum of weights times random numbers, with respect to the scores."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(5, 9, generator=generator, requires_grad=True)
    pull = torch.randn(5, 9, generator=generator)
    (scores.softmax(dim=-1) * pull).sum().backward()
    ours = module.gradient_of_scores(scores.detach().softmax(dim=-1), pull)
    torch.testing.assert_close(ours, scores.grad)


def test_seeds_give_other_numbers_and_the_same_seed_the_same():
    one = RandomScores(head_dim=4, tokens=8, draws=2)
    assert measure_scores(one, 0) == measure_scores(one, 0) != measure_scores(one, 1)


def test_nothing_to_measure_is_refused():
    with pytest.raises(ConfigError, match="at least 1"):
        RandomScores(tokens=0)
