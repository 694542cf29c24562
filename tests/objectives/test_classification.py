import math

import pytest
import torch
from torch.testing import assert_close

from vitreous.objectives.classification import classification_loss


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_the_loss_is_its_formula(smoothing):
    """1 - s on the label, and s shared by all ten classes, the label's included."""
    logits, labels = torch.randn(6, 10, dtype=torch.float64), torch.randint(10, (6,))
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        norm = math.log(sum(math.exp(score) for score in row))
        for index, score in enumerate(row):
            target = smoothing / 10 + (1 - smoothing) * (index == label)
            total += target * (norm - score)
    loss = classification_loss(logits, labels, smoothing=smoothing)
    assert_close(loss.item(), total / 6, atol=1e-5, rtol=1e-5)


def test_knowing_nothing_costs_the_log_of_the_classes():
    loss = classification_loss(torch.zeros(4, 10), torch.arange(4), smoothing=0.3)
    assert_close(loss, torch.tensor(10.0).log())


def test_the_loss_of_rough_logits_is_computed_in_float32():
    logits, labels = torch.randn(64, 10).bfloat16(), torch.randint(10, (64,))
    loss = classification_loss(logits, labels)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, classification_loss(logits.float(), labels))


def test_the_gradient_is_what_was_said_less_what_is_true():
    logits, labels = torch.randn(6, 10, requires_grad=True), torch.randint(10, (6,))
    classification_loss(logits, labels).backward()
    truth = torch.eye(10)[labels]
    assert_close(logits.grad, (logits.softmax(-1) - truth).detach() / 6)


def test_the_loss_does_not_know_the_order_of_the_batch():
    logits, labels, order = torch.randn(9, 4), torch.randint(4, (9,)), torch.randperm(9)
    assert_close(
        classification_loss(logits, labels), classification_loss(logits[order], labels[order])
    )
