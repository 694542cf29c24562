"""Searching a reader for the string that a line shows: functions over a model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vitreous.errors import ConfigError
from vitreous.models.reader import BLANK, DIGITS, START, STOP, Memory, Reader
from vitreous.nn.attention import attention_weights
from vitreous.objectives.reading import string_log_probability

__all__ = [
    "Hypothesis",
    "Rules",
    "align",
    "beam",
    "best_path",
    "ctc_log_probabilities",
    "greedy",
    "log_probabilities",
    "looks",
    "luhn",
    "prefixes",
]


class Hypothesis(NamedTuple):
    """A string that a line may show."""

    text: str
    log_probability: float
    """Of the whole string, its end included: the sum of `steps`."""
    steps: tuple[float, ...]
    """Log-probability of each digit given those before it, and of the end."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What is known of a string before it is read. Raises ConfigError.

    Probabilities stay the model's own: rules only choose among strings.
    """

    length: int | None = None
    """How many digits it has."""
    check: Callable[[str], bool] | None = None
    """What a whole string must pass, such as `luhn`."""

    def __post_init__(self) -> None:
        if self.length is not None and self.length < 0:
            raise ConfigError(f"length={self.length} must be 0 or more, or none")

    def may_stop(self, text: str) -> bool:
        """Whether this can be the whole string."""
        fits = self.length is None or len(text) == self.length
        return fits and (self.check is None or self.check(text))

    def may_go_on(self, text: str, longest: int) -> bool:
        """Whether more digits can follow."""
        return len(text) < (longest if self.length is None else min(longest, self.length))


FREE = Rules()


def luhn(text: str) -> bool:
    """Whether the last digit is the Luhn check digit of those before it (ISO/IEC 7812-1).

    >>> luhn("79927398713"), luhn("79927398710")
    (True, False)
    """
    digits = [int(digit) for digit in reversed(text)]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return bool(digits) and (sum(digits[::2]) + sum(doubled)) % 10 == 0


@torch.no_grad()
def greedy(reader: Reader, memory: Memory, rules: Rules = FREE) -> list[Hypothesis | None]:
    """The likeliest allowed token, step after step; none for a line that no allowed string ends.

    Stops after `reader.config.longest` digits at the latest.
    """
    return [beams[0] if beams else None for beams in search(reader, memory, 1, rules)]


@torch.no_grad()
def beam(
    reader: Reader,
    memory: Memory,
    width: int = 5,
    rules: Rules = FREE,
    *,
    length_power: float = 0.0,
) -> list[list[Hypothesis]]:
    """Up to `width` strings for each line, best first; never worse than the greedy one.

    They are ordered by log-probability / (digits + 1) ^ length_power: at 0 by probability, at 1 by
    the mean over the steps. Raises ConfigError for a width below 1.
    """
    if width < 1:
        raise ConfigError(f"width={width} must be at least 1")
    found = search(reader, memory, width, rules)
    first = greedy(reader, memory, rules) if width > 1 else [None] * len(found)
    best = []
    for several, one in zip(found, first, strict=True):
        unique = {h.text: h for h in ([] if one is None else [one]) + several}
        key = lambda h: h.log_probability / (len(h.text) + 1) ** length_power  # noqa: E731
        best.append(sorted(unique.values(), key=key, reverse=True)[:width])
    return best


def search(reader: Reader, memory: Memory, width: int, rules: Rules) -> list[list[Hypothesis]]:
    """Prefixes grow by a token at a time; the `width` likeliest of each line stay."""
    lines = len(memory.tokens)
    growing: list[list[Hypothesis]] = [[Hypothesis("", 0.0, ())] for _ in range(lines)]
    ended: list[list[Hypothesis]] = [[] for _ in range(lines)]
    while any(growing):
        scores = iter(next_scores(reader, memory, growing))
        for line in range(lines):
            grown = [
                Hypothesis(h.text + token, h.log_probability + step, (*h.steps, step))
                for h in growing[line]
                for token, step in allowed(h.text, next(scores), rules, reader.config.longest)
            ]
            grown.sort(key=lambda h: h.log_probability, reverse=True)
            # A string that ended has one step more than digits.
            over = [h for h in grown[:width] if len(h.steps) > len(h.text)]
            ended[line] += over
            growing[line] = [h for h in grown[:width] if len(h.steps) == len(h.text)]
            if len(ended[line]) >= width:
                worst = sorted((h.log_probability for h in ended[line]), reverse=True)[width - 1]
                growing[line] = [h for h in growing[line] if h.log_probability > worst]
    return [sorted(h, key=lambda h: h.log_probability, reverse=True)[:width] for h in ended]


def allowed(
    text: str, scores: Sequence[float], rules: Rules, longest: int
) -> list[tuple[str, float]]:
    """Each token that may follow this prefix, "" for the end, with its log-probability."""
    tokens = []
    if rules.may_go_on(text, longest):
        tokens += [(digit, scores[value]) for value, digit in enumerate(DIGITS)]
    if rules.may_stop(text):
        tokens.append(("", scores[STOP]))
    return tokens


def next_scores(
    reader: Reader, memory: Memory, growing: list[list[Hypothesis]]
) -> list[list[float]]:
    """Log-probabilities of the next token for every growing prefix, line after line."""
    rows = [line for line, several in enumerate(growing) for _ in several]
    before = prefixes([h.text for several in growing for h in several], memory.tokens.device)
    chosen = Memory(memory.tokens[rows], memory.real[rows])
    return log_softmax(reader.write(chosen, before)[:, -1]).tolist()


def log_softmax(scores: Float[Tensor, "*b classes"]) -> Float[Tensor, "*b classes"]:
    """In float64, so that sums over steps do not depend on their order."""
    return scores.double().log_softmax(dim=-1)


def prefixes(texts: Sequence[str], device: torch.device | None = None) -> Int[Tensor, "b q"]:
    """START and the digits of each string; shorter ones are filled with START, never read."""
    longest = max((len(text) for text in texts), default=0)
    rows = [[START, *map(int, text), *[START] * (longest - len(text))] for text in texts]
    return torch.tensor(rows, dtype=torch.long, device=device).view(len(texts), longest + 1)


@torch.no_grad()
def log_probabilities(reader: Reader, memory: Memory, texts: Sequence[str]) -> list[Hypothesis]:
    """The decoder's probability of one given string for each line, in one pass."""
    before = prefixes(texts, memory.tokens.device)
    scores = log_softmax(reader.write(memory, before))
    result = []
    for row, text in enumerate(texts):
        tokens = [*map(int, text), STOP]
        steps = tuple(scores[row, range(len(tokens)), tokens].tolist())
        result.append(Hypothesis(text, sum(steps), steps))
    return result


@torch.no_grad()
def best_path(scores: Float[Tensor, "b n classes"], real: Bool[Tensor, "b n"]) -> list[str]:
    """CTC's quick answer: the likeliest class of each patch, repeats and blanks dropped."""
    texts = []
    for best, width in zip(scores.argmax(dim=-1).tolist(), real.sum(dim=1).tolist(), strict=True):
        path = best[:width]
        kept = [
            value for value, before in zip(path, [BLANK, *path], strict=False) if value != before
        ]
        texts.append("".join(DIGITS[value] for value in kept if value != BLANK))
    return texts


@torch.no_grad()
def ctc_log_probabilities(
    scores: Float[Tensor, "b n classes"], real: Bool[Tensor, "b n"], texts: Sequence[str]
) -> list[float]:
    """CTC's log-probability of one given string for each line, over all alignments."""
    lengths = torch.tensor([len(text) for text in texts], device=scores.device)
    digits = prefixes(texts, scores.device)[:, 1:].clamp(max=9)
    return string_log_probability(scores, real, digits, lengths).tolist()


def align(scores: Float[Tensor, "n classes"], text: str) -> list[float]:
    """Where each digit of a string is: the middle of its patches in CTC's best alignment.

    Digits that do not fit are spread evenly. In patches from the left edge.
    """
    count = len(scores)
    states = [BLANK]
    for digit in text:
        states += [int(digit), BLANK]
    logp = scores.float().log_softmax(dim=-1)[:, states].tolist()
    path = viterbi(logp, states)
    if path is None:
        return [(place + 0.5) * count / len(text) for place in range(len(text))]
    return [
        sum(where) / len(where) + 0.5
        for state in range(1, len(states), 2)
        if (where := [column for column, here in enumerate(path) if here == state])
    ]


def viterbi(logp: list[list[float]], states: list[int]) -> list[int] | None:
    """The likeliest way through blank, digit, blank, ...; none where there are too few columns."""
    none = float("-inf")
    best = [logp[0][0], *logp[0][1:2], *[none] * (len(states) - 2)]
    came: list[list[int]] = []
    for row in logp[1:]:
        new, back = [], []
        for state in range(len(states)):
            reach = [state, state - 1] if state else [state]
            if state > 1 and states[state] not in (BLANK, states[state - 2]):
                reach.append(state - 2)
            source = max(reach, key=lambda s: best[s])
            new.append(best[source] + row[state])
            back.append(source)
        best = new
        came.append(back)
    state = max(range(max(0, len(states) - 2), len(states)), key=lambda s: best[s])
    if best[state] == none:
        return None
    path = [state]
    for back in reversed(came):
        path.append(back[path[-1]])
    return path[::-1]


@torch.no_grad()
def looks(reader: Reader, memory: Memory, texts: Sequence[str]) -> list[Float[Tensor, "q n"]]:
    """How much the last block read each patch while it wrote each digit: the mean over heads."""
    seen: list[tuple[Tensor, Tensor]] = []
    attend = reader.decoder.blocks[-1].get_submodule("cross_attn.attend")
    handle = attend.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[:2]))
    try:
        reader.write(memory, prefixes(texts, memory.tokens.device))
    finally:
        handle.remove()
    weights = attention_weights(*seen[0], memory.real[:, None, None]).mean(dim=1)
    return [weights[row, : len(text)] for row, text in enumerate(texts)]
