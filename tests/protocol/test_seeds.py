from itertools import product

from vitreous.protocol.seeds import stream


def test_streams_are_the_same_on_every_machine():
    assert stream(0, "init") == 3546334589
    assert stream(3, "augment", 7) == 3748803747


def test_no_two_of_a_thousand_streams_are_equal():
    purposes = ("init", "split", "shuffle", "augment", "dropout")
    keys = list(product(range(10), purposes, range(20)))
    assert len({stream(*key) for key in keys}) == len(keys)


def test_seed_and_index_cannot_be_mistaken_for_one_another():
    assert stream(1, "augment", 12) != stream(11, "augment", 2)
