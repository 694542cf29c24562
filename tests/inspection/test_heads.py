"""Distance and entropy of heads whose answers are known."""

import math

import pytest
import torch

from vitreous.errors import ShapeError
from vitreous.inspection.heads import (
    attention_distance,
    attention_entropy,
    entropy_sentence,
    head_sentence,
)
from vitreous.inspection.layout import Layout

LAYOUT = Layout({"class": 1, "distillation": 0, "registers": 1}, (2, 3))
N = LAYOUT.tokens


def heads(*matrices: torch.Tensor) -> torch.Tensor:
    return torch.stack(matrices)[None]


def test_a_head_that_reads_itself_looks_nowhere_and_one_that_reads_its_neighbour_one_patch():
    stay, right = torch.eye(N), torch.eye(N)
    for row in range(2):
        for col in range(3):
            here, there = 2 + 3 * row + col, 2 + 3 * row + (col + 1 if col < 2 else col - 1)
            right[here] = torch.nn.functional.one_hot(torch.tensor(there), N)
    assert attention_distance(heads(stay, right), LAYOUT, (4, 10)).tolist() == [0, 10]


def test_distance_is_in_pixels_of_rows_and_columns():
    far = torch.eye(N)
    far[2:] = 0
    far[2:, 2] = 1  # every patch reads the first one
    places = [(4 * row, 10 * col) for row in range(2) for col in range(3)]
    wanted = sum(math.hypot(*place) for place in places) / 6
    assert attention_distance(heads(far), LAYOUT, (4, 10)).item() == pytest.approx(wanted)


def test_what_is_read_of_prefix_tokens_has_no_distance():
    half = torch.eye(N) / 2
    half[:, 0] += 0.5
    assert attention_distance(heads(half), LAYOUT, (4, 4)).item() == 0
    with pytest.raises(ShapeError, match="4 tokens are not"):
        attention_distance(torch.ones(1, 1, 4, 4) / 4, LAYOUT, (4, 4))


def test_entropy_is_zero_for_one_token_and_the_logarithm_for_all():
    found = attention_entropy(heads(torch.eye(N), torch.full((N, N), 1 / N)))
    assert found.tolist() == pytest.approx([0, math.log(N)])


def test_the_sentence_names_the_sharpest_and_the_broadest_head():
    entropies = {"blocks.0": torch.tensor([0.0, math.log(8)]), "blocks.1": torch.tensor([1.5, 1.4])}
    assert entropy_sentence(entropies, 8) == (
        "Of 4 heads, 1 read nearly all 8 tokens alike (entropy at least 90% of the largest "
        "possible, 2.08 nats) and 1 read few (at most 50%). The sharpest, head 0 of blocks.0, "
        "reads as from 1.0 tokens (0.00 nats); the broadest, head 1 of blocks.0, as from 8.0 "
        "(2.08 nats)."
    )
    assert head_sentence(0.0, 8) == "reads few tokens: as from 1.0 of 8"
    assert head_sentence(math.log(8), 8) == "reads nearly all tokens alike: as from 8.0 of 8"
    assert head_sentence(1.5, 8).startswith("reads some tokens more than others")
