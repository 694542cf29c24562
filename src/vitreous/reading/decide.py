"""Which string a line shows: the decoder proposes, both arms judge, a temperature makes it true.

The decoder writes a few strings; CTC's best path is one more. Each is judged by the mean of both
arms' log-probabilities, divided by the temperature that was fitted on validation strings.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from vitreous.models.decoding import (
    FREE,
    Hypothesis,
    Rules,
    align,
    beam,
    best_path,
    ctc_log_probabilities,
    log_probabilities,
)
from vitreous.models.reader import Memory, Reader

__all__ = ["WIDTH", "Answer", "decide", "probability", "total"]

WIDTH = 5
"""Strings that the decoder proposes."""


class Answer(NamedTuple):
    """What a line shows, as the model sees it."""

    text: str
    log_probability: float
    """Mean of the two arms', not yet divided by the temperature."""
    steps: tuple[float, ...]
    """The decoder's log-probability of each digit and of the end."""
    others: tuple[tuple[str, float], ...]
    """Other strings and their log-probabilities, the likeliest first."""
    columns: str
    """What CTC alone says."""
    middles: tuple[float, ...]
    """Where each digit is, in patches from the left."""


def decide(reader: Reader, memory: Memory, rules: Rules = FREE) -> list[Answer | None]:
    """The answer for each line; none where no string that follows the rules was found."""
    scores = reader.columns(memory)
    quick = best_path(scores, memory.real)
    quick_judged = log_probabilities(reader, memory, quick)
    answers = []
    for row, (several, one) in enumerate(
        zip(beam(reader, memory, WIDTH, rules), quick_judged, strict=True)
    ):
        candidates = {h.text: h for h in several}
        if rules.may_stop(one.text) and len(one.text) <= reader.config.longest:
            candidates[one.text] = one
        columns = scores[row : row + 1, : int(memory.real[row].sum())]
        answers.append(judge(list(candidates.values()), columns, quick[row]))
    return answers


def judge(
    candidates: list[Hypothesis], columns: Float[Tensor, "1 n classes"], quick: str
) -> Answer | None:
    """The likeliest candidate by both arms."""
    if not candidates:
        return None
    texts = [h.text for h in candidates]
    real = columns.new_ones(columns.shape[:2], dtype=torch.bool).expand(len(texts), -1)
    judged = ctc_log_probabilities(columns.expand(len(texts), -1, -1), real, texts)
    both = [(h.log_probability + other) / 2 for h, other in zip(candidates, judged, strict=True)]
    order = sorted(range(len(texts)), key=lambda index: (both[index], texts[index]), reverse=True)
    best = order[0]
    others = tuple((texts[index], both[index]) for index in order[1:])
    middles = tuple(align(columns[0], texts[best]))
    return Answer(texts[best], both[best], candidates[best].steps, others, quick, middles)


def probability(log_probability: float, temperature: float) -> float:
    """A judged log-probability as a probability, rounded to what can be told apart."""
    return round(math.exp(min(log_probability, 0.0) / temperature), 6)


def total(confidences: Sequence[float]) -> float:
    """How likely several independent answers are all right."""
    return round(float(math.prod(confidences)), 6)
