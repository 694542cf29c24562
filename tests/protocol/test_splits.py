import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitreous.data.sources import load_source
from vitreous.errors import DataError
from vitreous.protocol.splits import floor, training_and_validation


@pytest.fixture(scope="module")
def mnist():
    return load_source("mnist")


def test_mnist_keeps_its_last_12_000_for_selection(mnist):
    training, validation = training_and_validation(mnist.train_labels)
    assert training.tolist() == list(range(48_000))
    assert validation.tolist() == list(range(48_000, 60_000))


@given(st.integers(5, 300))
def test_the_last_fifth_rounded_down_validates_and_nothing_is_in_both_or_lost(count: int):
    training, validation = training_and_validation(np.zeros(count, np.int64))
    assert len(validation) == count // 5
    assert [*training, *validation] == list(range(count))


@pytest.mark.parametrize("count", range(5))
def test_fewer_than_five_images_are_refused(count: int):
    with pytest.raises(DataError, match=f"{count} training images cannot be split"):
        training_and_validation(np.zeros(count, np.int64))


def test_sorted_labels_are_refused_with_the_class_and_what_to_do():
    with pytest.raises(DataError, match=r"class index 8 is in the last fifth .* shuffle them"):
        training_and_validation(np.repeat(np.arange(10), 6))


def test_two_sorted_halves_are_refused_though_both_classes_are_trained():
    with pytest.raises(DataError, match="sorted by class, so that the last fifth holds class"):
        training_and_validation(np.repeat([0, 1], 50))


def test_a_rare_class_may_be_on_the_training_side_only():
    labels = np.array([2, 0, 1, 0, 1, 0, 1, 0, 1, 0])
    assert len(training_and_validation(labels)[1]) == 2


def test_always_guessing_one_on_mnist_gets_0_1135(mnist):
    assert floor(mnist.test_labels) == 0.1135


@given(st.lists(st.integers(0, 5), min_size=1))
def test_the_floor_is_what_the_best_constant_answer_gets(labels: list[int]):
    best = max(sum(label == guess for label in labels) for guess in range(6))
    assert floor(labels) == best / len(labels)
