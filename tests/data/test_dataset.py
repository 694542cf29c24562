"""A data set says what it holds, and the same arrays are the same data set."""

from dataclasses import replace

import numpy as np
import pytest

from vitreous.data.dataset import Dataset, fixed_order, from_arrays, input_for
from vitreous.data.sources import load_source
from vitreous.errors import DataError
from vitreous.frontends.image import MNIST_INPUT

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (20, 4, 5, 3), dtype=np.uint8)
GREY = RNG.integers(0, 256, (20, 4, 5), dtype=np.uint8)
LABELS = np.arange(20) % 4
MIXED = (GREY, LABELS)


def dataset(images: np.ndarray = GREY, labels: np.ndarray = LABELS, **options) -> Dataset:
    return from_arrays("here", (images, labels), (GREY[:5], LABELS[:5]), **options)


def sorted_by_class(images: np.ndarray = GREY) -> Dataset:
    """The labels 0 0 0 0 0 1 1 …, each written into the first pixel of its image."""
    images, labels = images.copy(), np.sort(LABELS)
    images[:, 0, 0] = labels
    return dataset(images, labels)


def test_every_layout_of_the_pixels_is_the_same_data_set():
    grey = [GREY, GREY[:, None], GREY[..., None], GREY.astype(np.int64), GREY.astype(">u2")]
    assert len({dataset(images).hashes["train_images"] for images in grey}) == 1
    colour = [
        from_arrays("here", (images, LABELS), (images, LABELS))
        for images in (COLOUR, COLOUR.transpose(0, 3, 1, 2))
    ]
    assert colour[0].hashes == colour[1].hashes
    np.testing.assert_array_equal(colour[0].train_images[3, 1], COLOUR[3, :, :, 1])


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_are_read_as_shares_of_255_and_it_is_noted(kind):
    shares = dataset((GREY / 255).astype(kind))
    np.testing.assert_array_equal(shares.train_images, dataset().train_images)
    assert "multiplied by 255" in shares.note
    assert not dataset().note


def test_labels_of_any_whole_type_and_of_one_column_are_the_same():
    for labels in (LABELS.astype(np.uint8), LABELS[:, None], LABELS.astype(">i4")):
        assert dataset(labels=labels).hashes == dataset().hashes


def test_training_images_sorted_by_class_are_mixed_with_their_labels():
    data = sorted_by_class()
    np.testing.assert_array_equal(data.train_images[:, 0, 0, 0], data.train_labels)
    assert np.bincount(data.train_labels).tolist() == [5, 5, 5, 5]
    assert (np.diff(data.train_labels) < 0).any()
    assert "fixed order" in data.note


def test_the_last_fifth_of_a_sorted_set_holds_every_class():
    labels = np.arange(10).repeat(100)
    data = dataset(np.zeros((1000, 4, 5), np.uint8), labels)
    assert set(data.train_labels[-200:]) == set(range(10))


def test_training_images_in_any_other_order_stay_in_it():
    np.testing.assert_array_equal(dataset().train_images[:, 0], GREY)
    falling = np.sort(LABELS)[::-1].copy()
    np.testing.assert_array_equal(dataset(labels=falling).train_labels, falling)


def test_test_images_stay_in_their_order():
    test = (GREY, np.sort(LABELS))
    data = from_arrays("here", MIXED, test)
    np.testing.assert_array_equal(data.test_images[:, 0], GREY)
    np.testing.assert_array_equal(data.test_labels, test[1])


def test_the_fixed_order_is_a_permutation_that_never_changes():
    assert sorted(fixed_order(1000)) == list(range(1000))
    np.testing.assert_array_equal(fixed_order(50), fixed_order(50))
    np.random.default_rng().random()
    assert fixed_order(8).tolist() == FIXED_ORDER_OF_8


FIXED_ORDER_OF_8 = [1, 5, 6, 0, 2, 3, 4, 7]
"""Recorded results depend on it: whoever changes this list changes every folder's test set."""


def test_a_hash_sees_every_pixel_label_and_shape():
    whole = dataset().hashes
    changed = GREY.copy()
    changed[7, 2, 1] ^= 1
    assert dataset(changed).hashes["train_images"] != whole["train_images"]
    assert dataset(changed).hashes["train_labels"] == whole["train_labels"]
    assert dataset(labels=(LABELS + 1) % 4).hashes["train_labels"] != whole["train_labels"]
    lying = from_arrays("here", (GREY.reshape(20, 5, 4), LABELS), (GREY.reshape(20, 5, 4), LABELS))
    assert lying.hashes["train_images"] != whole["train_images"]


def test_a_hash_does_not_see_how_the_array_lies_in_memory():
    backwards = replace(dataset(), train_images=dataset().train_images[::-1].copy()[::-1])
    assert backwards.hashes == dataset().hashes


def test_mean_and_deviation_are_those_of_all_training_pixels():
    data = from_arrays("here", (COLOUR, LABELS), (255 - COLOUR, LABELS))
    shares = COLOUR.astype(np.float64) / 255
    assert data.input.mean == pytest.approx(shares.mean(axis=(0, 1, 2)), abs=6e-5)
    assert data.input.std == pytest.approx(shares.std(axis=(0, 1, 2)), abs=6e-5)


def test_a_set_of_one_level_can_still_be_divided_by_its_deviation():
    data = dataset(np.full_like(GREY, 255))
    assert data.input.mean == (1.0,)
    assert data.input.std[0] > 0


def test_mnists_numbers_are_the_usual_ones():
    images = load_source("mnist").train_images
    assert (images.mean() / 255).round(4) == MNIST_INPUT.mean[0]
    assert (images.std() / 255).round(4) == MNIST_INPUT.std[0]


@pytest.mark.parametrize(
    ("shape", "names", "is_digit"),
    [
        ((1, 28, 28), "0123456789", True),
        ((1, 28, 28), "07", True),
        ((1, 28, 28), ["0", "10"], False),
        ((1, 28, 28), ["shirt", "0"], False),
        ((1, 28, 32), "0123456789", False),
        ((3, 28, 28), "0123456789", False),
    ],
)
def test_only_small_grey_digits_are_prepared_as_digits(shape, names, is_digit: bool):
    images = np.zeros((4, *shape), np.uint8)
    assert (input_for(images, names).kind == "digit") == is_digit


def test_classes_are_counted_from_the_training_labels_unless_they_are_named():
    assert dataset().class_names == ("0", "1", "2", "3")
    assert dataset(class_names=["a", "b", "c", "d", "never"]).class_names[-1] == "never"


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (GREY[:19], LABELS, r"labels are int64 \(20,\); int64 \(19,\) was wanted"),
        (GREY[:0], LABELS[:0], r"images of shape \(0, 4, 5\) hold no pixels"),
        (GREY[:, :0], LABELS, r"images of shape \(20, 0, 5\) hold no pixels"),
        (GREY, LABELS + 10**12, "a label is 1000000000003; classes without names end at 100000"),
        (GREY, LABELS - 1, "labels run from -1 to 2; there are 3 classes"),
        (GREY, LABELS / 4, "labels are float64"),
        (GREY, np.eye(20, dtype=int), r"labels are int64 \(20, 20\); whole numbers"),
        (GREY.astype(np.int16) - 1, LABELS, "run from -1 to 2"),
        (GREY.astype(np.float32), LABELS, "floats 0 to 1 are read"),
        (np.full(GREY.shape, np.nan), LABELS, "float64 images run from nan to nan"),
        (GREY > 9, LABELS, "images of type bool are no pixel levels"),
        (GREY[0], LABELS[:4], r"images of shape \(4, 5\)"),
        (np.zeros((20, 4, 5, 2), np.uint8), LABELS, r"\(20, 4, 5, 2\) are neither"),
        (np.zeros((20, 4, 6), np.uint8), LABELS, r"test images are uint8 \(5, 1, 4, 5\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_with_their_numbers(images, labels, message: str):
    with pytest.raises(DataError, match=f"^here.*{message}"):
        dataset(images, labels)


def test_a_test_label_that_was_never_trained_is_refused():
    with pytest.raises(DataError, match="test labels run from 0 to 4; there are 4 classes"):
        from_arrays("here", MIXED, (GREY, np.arange(20) % 5))


def test_two_classes_of_one_name_are_refused():
    with pytest.raises(DataError, match="two classes have one name"):
        dataset(class_names=["a", "b", "c", "a"])
