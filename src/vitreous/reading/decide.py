"""Which string a line shows: the decoder proposes, both arms judge, a temperature makes it true.

The decoder writes a few strings; CTC's best path is one more. Each is judged by the mean of both
arms' log-probabilities, divided by the temperature that was fitted on validation strings. Of lines
that are longer than any in training the decoder loses count, and CTC judges alone.
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
LONGEST = 8
"""Digits of the longest strings in training."""


class Answer(NamedTuple):
    """What a line shows, as the model sees it."""

    text: str
    log_probability: float
    """Mean of the two arms', not yet divided by the temperature."""
    steps: tuple[float, ...]
    """Log-probability of each digit: the decoder's, or an equal share each in long lines."""
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
    alone = len(quick) > LONGEST
    written = judged if alone else [h.log_probability for h in candidates]
    both = [(one + other) / 2 for one, other in zip(written, judged, strict=True)]
    order = sorted(range(len(texts)), key=lambda index: (both[index], texts[index]), reverse=True)
    best = order[0]
    others = tuple((texts[index], both[index]) for index in order[1:])
    middles = tuple(align(columns[0], texts[best]))
    even = (both[best] / max(len(texts[best]), 1),) * len(texts[best])
    steps = even if alone else candidates[best].steps
    return Answer(texts[best], both[best], steps, others, quick, middles)


def probability(log_probability: float, temperature: float) -> float:
    """A judged log-probability as a probability, rounded to what can be told apart."""
    return round(math.exp(min(log_probability, 0.0) / temperature), 6)


def total(confidences: Sequence[float]) -> float:
    """How likely several independent answers are all right."""
    return round(float(math.prod(confidences)), 6)
