"""Made-up strings: functions of seed and index, from the digits of one split, and nothing else."""

import io
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vitreous.data.lines import pad
from vitreous.data.pen import WAYS, draw_digit
from vitreous.data.shards import pack, read_shard, shard_name, write_shard
from vitreous.data.sources import load_source
from vitreous.data.strings import Bank, draw_hand, draw_string, draw_text, glyph, make_bank
from vitreous.errors import DataError


@pytest.fixture(scope="module")
def bank() -> Bank:
    data = load_source("mnist")
    return make_bank(data.test_images[:500], data.test_labels[:500])


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 9), index=st.integers(0, 10**6))
@example(seed=0, index=3)
def test_a_string_is_a_function_of_seed_and_index(bank: Bank, seed: int, index: int):
    one, two = draw_string(bank, seed, index), draw_string(bank, seed, index)
    assert one.text == two.text
    assert (one.levels == two.levels).all()
    assert dict(one.knobs) == dict(two.knobs)


def test_other_seeds_and_indices_are_other_strings(bank):
    seen = {
        draw_string(bank, seed, index).levels.tobytes() for seed in (0, 1) for index in range(9)
    }
    assert len(seen) == 18


def test_a_strip_is_as_a_reader_takes_it(bank):
    for index in range(40):
        levels = draw_string(bank, 0, index).levels
        assert levels.dtype == np.uint8
        assert levels.shape[0] == 32
        assert levels.shape[1] % 4 == 0
        assert levels.shape[1] <= 520


def test_lengths_run_from_none_to_eight_and_odd_cases_come_often(bank):
    texts = [draw_string(bank, 5, index).text for index in range(400)]
    lengths = Counter(map(len, texts))
    assert set(lengths) == set(range(9))
    assert min(lengths.values()) > 8
    assert np.mean([text.startswith("0") for text in texts]) > 0.12
    assert np.mean([any(a == b for a, b in itertools.pairwise(t)) for t in texts]) > 0.3


def test_strings_can_be_of_chosen_lengths_only(bank):
    only = (0.0,) * 9 + (0.5, 0.0, 0.0, 0.5)
    lengths = {len(draw_string(bank, 0, index, lengths=only).text) for index in range(20)}
    assert lengths == {9, 12}


def test_the_digits_of_a_string_come_from_its_bank_alone():
    """Every image shows full ink but those of 3: a string of threes shows how it was drawn."""
    images = np.zeros((10, 28, 28), np.uint8)
    images[:, 6:22, 10:18] = 255
    images[3, 6:22, 4:24] = 255
    own = make_bank(images, np.arange(10))
    rng = np.random.default_rng(0)
    hand = next(h for h in iter(lambda: draw_hand(rng), None) if not h.pen_drawn)
    wide, narrow = glyph(own, 3, hand, rng), glyph(own, 7, hand, rng)
    assert wide.shape[1] > 1.7 * narrow.shape[1]


def test_one_hand_writes_a_whole_string(bank):
    rng = np.random.default_rng(1)
    knobs = draw_text(bank, "1234", rng).knobs
    assert {"gap", "slant", "noise", "blur", "rules", "stroke", "rise", "jpeg"} <= knobs.keys()


def test_an_empty_string_is_no_blank_strip(bank):
    """Something is there that is no digit: a blank strip would teach nothing."""
    empty = [d for i in range(120) if not (d := draw_string(bank, 2, i)).text]
    assert empty
    assert all(one.levels.max() > 100 for one in empty)


@pytest.mark.parametrize("digit", range(10))
def test_every_way_of_the_pen_draws_one_connected_looking_digit(digit: int):
    rng = np.random.default_rng(digit)
    for way in range(len(WAYS[digit])):
        image = draw_digit(digit, way, rng, height=32, aspect=0.6, pen=3.0)
        rows = np.flatnonzero((image > 128).any(axis=1))
        assert 26 <= rows[-1] - rows[0] + 1 <= 36
        assert 0.02 < (image > 128).mean() < 0.6


def test_a_shard_is_drawn_once_and_read_back(bank, tmp_path):
    write_shard(tmp_path, bank, 0, 2, count=5)
    strips = read_shard(tmp_path, 2)
    wanted = [draw_string(bank, 0, index) for index in range(10, 15)]
    assert strips.texts == tuple(one.text for one in wanted)
    for index, one in enumerate(wanted):
        assert (strips.strip(index) == one.levels).all()
    (tmp_path / shard_name(2)).write_bytes(b"kept")
    write_shard(tmp_path, bank, 0, 2, count=5)
    assert (tmp_path / shard_name(2)).read_bytes() == b"kept"
    assert [path.name for path in tmp_path.iterdir()] == [shard_name(2)]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a file of arrays"])
def test_a_damaged_shard_is_named(tmp_path, content):
    (tmp_path / shard_name(0)).write_bytes(content)
    with pytest.raises(DataError, match="strings-0000"):
        read_shard(tmp_path, 0)


def test_a_shard_without_its_texts_is_named(tmp_path):
    file = io.BytesIO()
    np.savez(file, levels=np.zeros((32, 4), np.uint8))
    (tmp_path / shard_name(0)).write_bytes(file.getvalue())
    with pytest.raises(DataError, match="strings-0000"):
        read_shard(tmp_path, 0)


def test_padding_a_batch_keeps_each_strip_and_says_where_it_ends(bank):
    drawn = [draw_string(bank, 0, index) for index in range(6)]
    images, widths = pad([one.levels for one in drawn])
    for row, one in enumerate(drawn):
        width = one.levels.shape[1]
        assert int(widths[row]) == width
        assert (images[row, 0, :, :width].numpy() * 255).round() == pytest.approx(one.levels)
        assert not images[row, 0, :, width:].any()


def test_packing_nothing_is_allowed():
    assert pack([]).texts == ()
