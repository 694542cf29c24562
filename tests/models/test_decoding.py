"""Laws of the search, for readers of random weights."""

import itertools
import math

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.models.tiny_reader import memory_of, tiny_reader
from vitreous.errors import ConfigError
from vitreous.models.decoding import (
    Rules,
    align,
    beam,
    best_path,
    ctc_log_probabilities,
    greedy,
    log_probabilities,
    looks,
    luhn,
    prefixes,
    viterbi,
)
from vitreous.models.reader import BLANK, STOP, Memory

quick = settings(deadline=None, max_examples=4)
seeds = st.integers(0, 1000)
texts = st.text("0123456789", max_size=6)


@quick
@given(seed=seeds, text=texts)
@example(seed=0, text="0017")
def test_a_prefix_costs_the_same_whatever_follows(seed: int, text: str):
    """Prefix consistency: the steps of a string begin with the steps of each of its prefixes."""
    reader = tiny_reader(seed % 7)
    memory = memory_of(reader, 1, seed)
    whole = log_probabilities(reader, memory, [text])[0]
    for length in range(len(text)):
        part = log_probabilities(reader, memory, [text[:length]])[0]
        assert part.steps[:length] == pytest.approx(whole.steps[:length], abs=1e-5)


@quick
@given(seed=seeds, width=st.integers(1, 6), power=st.sampled_from([0.0, 0.5, 1.0]))
@example(seed=1, width=2, power=0.0)
@example(seed=3, width=3, power=1.0)
def test_beam_search_is_never_worse_than_greedy(seed: int, width: int, power: float):
    reader = tiny_reader(seed % 11, sharpness=2.0)
    memory = memory_of(reader, 2, seed)
    for several, one in zip(
        beam(reader, memory, width, length_power=power), greedy(reader, memory), strict=True
    ):
        assert one is not None
        worth = lambda h: h.log_probability / (len(h.text) + 1) ** power
        assert worth(several[0]) >= worth(one) - 1e-9
        assert len({h.text for h in several}) == len(several) <= width


@quick
@given(seed=seeds, width=st.integers(1, 5))
@example(seed=0, width=3)
def test_a_found_string_has_the_probability_that_the_model_gives_it(seed: int, width: int):
    reader = tiny_reader(seed % 5)
    memory = memory_of(reader, 1, seed)
    for found in beam(reader, memory, width)[0]:
        judged = log_probabilities(reader, memory, [found.text])[0]
        assert found.log_probability == pytest.approx(judged.log_probability, abs=1e-4)
        assert found.log_probability == pytest.approx(sum(found.steps))
        assert len(found.steps) == len(found.text) + 1


def test_a_reader_that_never_wants_to_stop_stops():
    reader = tiny_reader()
    with torch.no_grad():
        reader.head.bias[STOP] = -1e9
    memory = memory_of(reader)
    for one in greedy(reader, memory):
        assert one is not None
        assert len(one.text) == reader.config.longest
    assert all(len(h.text) <= reader.config.longest for h in beam(reader, memory, 3)[0])


def test_a_reader_that_stops_at_once_writes_nothing():
    reader = tiny_reader()
    with torch.no_grad():
        reader.head.bias[STOP] = 1e3
    assert [one.text for one in greedy(reader, memory_of(reader)) if one] == ["", "", ""]


def test_the_wide_beam_finds_the_likeliest_of_all_short_strings():
    reader = tiny_reader(2, sharpness=1.0)
    memory = memory_of(reader, 1)
    every = ["".join(t) for n in range(3) for t in itertools.product("0123456789", repeat=n)]
    context = Memory(memory.tokens.expand(len(every), -1, -1), memory.real.expand(len(every), -1))
    judged = log_probabilities(reader, context, every)
    best = max(judged, key=lambda h: h.log_probability)
    found = beam(reader, memory, 120)[0][0]
    assert found.log_probability >= best.log_probability - 1e-6


@pytest.mark.parametrize("length", [0, 1, 4, 6])
def test_a_known_length_is_kept(length: int):
    reader = tiny_reader(4)
    found = beam(reader, memory_of(reader), 3, Rules(length=length))
    assert {len(h.text) for several in found for h in several} == {length}


def test_rules_never_change_what_a_string_costs():
    reader = tiny_reader(4)
    memory = memory_of(reader, 1)
    (found,) = beam(reader, memory, 1, Rules(length=3))
    free = log_probabilities(reader, memory, [found[0].text])[0]
    assert found[0].log_probability == pytest.approx(free.log_probability, abs=1e-4)


def test_only_strings_that_pass_the_check_come_back():
    reader = tiny_reader(1)
    found = beam(reader, memory_of(reader), 40, Rules(length=3, check=luhn))
    passed = [h.text for several in found for h in several]
    assert passed
    assert all(map(luhn, passed))


def test_where_no_string_can_pass_there_is_none():
    reader = tiny_reader()
    never = Rules(check=lambda _: False)
    assert greedy(reader, memory_of(reader), never) == [None] * 3
    assert beam(reader, memory_of(reader), 2, never) == [[], [], []]


@given(text=st.text("0123456789", min_size=1, max_size=12))
@example(text="0")
def test_luhn_has_one_check_digit_for_every_string_and_notices_every_wrong_digit(text: str):
    passing = [text + last for last in "0123456789" if luhn(text + last)]
    assert len(passing) == 1
    for place in range(len(text)):
        wrong = str((int(text[place]) + 1) % 10)
        assert not luhn(passing[0][:place] + wrong + passing[0][place + 1 :])


def test_settings_of_the_search_that_cannot_work_are_refused():
    reader = tiny_reader()
    with pytest.raises(ConfigError, match="width=0"):
        beam(reader, memory_of(reader), 0)
    with pytest.raises(ConfigError, match="length=-1"):
        Rules(length=-1)


def test_leading_zeros_are_tokens_like_others():
    assert prefixes(["007", "1"])[:, 1:].tolist() == [[0, 0, 7], [1, 11, 11]]


def certain(path: list[int]) -> torch.Tensor:
    """Scores that leave no doubt about each column."""
    scores = torch.full((1, len(path), 11), -20.0)
    scores[0, range(len(path)), path] = 20.0
    return scores


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ([BLANK, 1, 1, BLANK, 1, 7, 7], "117"),
        ([0, BLANK, 0, BLANK, 7], "007"),
        ([BLANK, BLANK], ""),
        ([5], "5"),
        ([5, 5, 5], "5"),
    ],
)
def test_columns_are_read_with_repeats_joined_and_blanks_dropped(path, text):
    scores = certain(path)
    real = torch.ones(1, len(path), dtype=torch.bool)
    assert best_path(scores, real) == [text]
    assert ctc_log_probabilities(scores, real, [text])[0] == pytest.approx(0, abs=1e-5)


def collapse(path: tuple[int, ...]) -> str:
    kept = [value for value, _ in itertools.groupby(path)]
    return "".join(str(value) for value in kept if value != BLANK)


def test_the_probability_of_a_string_by_columns_sums_over_all_alignments():
    scores = torch.randn(1, 4, 11)
    logp = scores[0].log_softmax(-1)
    real = torch.ones(1, 4, dtype=torch.bool)
    total: dict[str, float] = {}
    for path in itertools.product((1, 2, BLANK), repeat=4):
        chance = math.exp(sum(float(logp[column, value]) for column, value in enumerate(path)))
        total[collapse(path)] = total.get(collapse(path), 0) + chance
    for text in ("", "1", "11", "121"):
        got = ctc_log_probabilities(scores, real, [text])[0]
        assert math.exp(got) == pytest.approx(total[text], rel=1e-4)


def test_the_best_alignment_is_the_best_of_all():
    scores = torch.randn(5, 11)
    logp = scores.log_softmax(-1)
    states = [BLANK, 3, BLANK, 3, BLANK]
    got = viterbi(logp[:, states].tolist(), states)
    assert got is not None
    best = max(
        (p for p in itertools.product((3, BLANK), repeat=5) if collapse(p) == "33"),
        key=lambda path: sum(float(logp[c, v]) for c, v in enumerate(path)),
    )
    assert tuple(states[state] for state in got) == best


def test_digits_are_placed_in_the_middle_of_their_columns():
    scores = certain([BLANK, 4, 4, BLANK, 4, BLANK, BLANK, 2])[0]
    assert align(scores, "442") == [2.0, 4.5, 7.5]
    assert align(scores[:2], "4444") == [0.25, 0.75, 1.25, 1.75]


def test_looking_leaves_the_reader_as_it_was_and_shares_sum_to_one():
    reader = tiny_reader()
    memory = memory_of(reader)
    before = reader.write(memory, prefixes(["12", "", "345"]))
    shares = looks(reader, memory, ["12", "", "345"])
    assert [len(one) for one in shares] == [2, 0, 3]
    for one, real in zip(shares, memory.real, strict=True):
        assert one.sum(dim=1).tolist() == pytest.approx([1.0] * len(one), abs=1e-5)
        assert not one[:, ~real].any()
    torch.testing.assert_close(reader.write(memory, prefixes(["12", "", "345"])), before)
    attend = reader.decoder.blocks[-1].get_submodule("cross_attn.attend")
    assert not attend._forward_pre_hooks
