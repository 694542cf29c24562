"""What a wrong string costs, counted by hand."""

import math

import pytest
import torch

from vitreous.objectives.reading import IGNORED, ctc_loss, string_log_probability, writing_loss


def test_writing_costs_the_mean_over_the_places_that_count():
    scores = torch.randn(2, 3, 11)
    wanted = torch.tensor([[1, 10, IGNORED], [10, IGNORED, IGNORED]])
    logp = scores.log_softmax(-1)
    by_hand = -(logp[0, 0, 1] + logp[0, 1, 10] + logp[1, 0, 10]) / 3
    torch.testing.assert_close(writing_loss(scores, wanted), by_hand)


def test_a_string_in_one_column_costs_that_columns_score():
    scores = torch.randn(1, 1, 11)
    real = torch.ones(1, 1, dtype=torch.bool)
    digits, lengths = torch.tensor([[7]]), torch.tensor([1])
    wanted = scores.log_softmax(-1)[0, 0, 7]
    torch.testing.assert_close(string_log_probability(scores, real, digits, lengths)[0], wanted)
    torch.testing.assert_close(ctc_loss(scores, real, digits, lengths), -wanted)


def test_columns_that_are_padding_cost_nothing():
    scores = torch.randn(1, 6, 11)
    real = torch.tensor([[True] * 4 + [False] * 2])
    digits, lengths = torch.tensor([[1, 1]]), torch.tensor([2])
    short = string_log_probability(scores[:, :4], real[:, :4], digits, lengths)
    torch.testing.assert_close(string_log_probability(scores, real, digits, lengths), short)


def test_a_string_that_does_not_fit_is_impossible_and_gives_no_gradient():
    scores = torch.randn(1, 2, 11, requires_grad=True)
    real = torch.ones(1, 2, dtype=torch.bool)
    digits, lengths = torch.tensor([[1, 1]]), torch.tensor([2])  # 1, blank, 1 needs three columns
    assert string_log_probability(scores, real, digits, lengths).item() == -math.inf
    loss = ctc_loss(scores, real, digits, lengths)
    loss.backward()
    assert loss.item() == pytest.approx(0)
    assert scores.grad is not None
    assert not scores.grad.any()
