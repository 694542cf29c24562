"""The data of arms."""

import numpy as np
import pytest

from tests.training.small import digits
from vitreous.errors import ConfigError
from vitreous.studies import material as m


def cut(image: np.ndarray) -> list[bytes]:
    """The four quarters of an image, row by row."""
    half = image.shape[-1] // 2
    return [
        image[..., row : row + half, column : column + half].tobytes()
        for row in (0, half)
        for column in (0, half)
    ]


def test_quarters_are_the_same_strokes_and_only_their_places_tell_the_class():
    data = digits(40, 20)
    asked = m.quarters(data)
    for before, after, label in zip(
        data.test_images, asked.test_images, asked.test_labels, strict=True
    ):
        assert cut(after) == [cut(before)[quarter] for quarter in m.ORDERS[label]]
        assert sorted(cut(after)) == sorted(cut(before))


def test_orders_are_drawn_evenly_apart_from_the_class_and_the_same_again():
    data = digits(4000, 400)
    asked, again = m.quarters(data), m.quarters(data)
    counts = np.bincount(asked.train_labels, minlength=4)
    assert counts.min() > 900
    both = np.corrcoef(asked.train_labels, data.train_labels)[0, 1]
    assert abs(both) < 0.05
    assert asked.hashes == again.hashes
    assert (asked.train_labels[:400] != asked.test_labels).any()


def test_quarters_need_even_sides():
    with pytest.raises(ConfigError, match="7×7 pixels have no four equal quarters"):
        m.quarters(digits(size=7))


def test_fewer_images_are_the_first_ones_and_the_test_images_stay():
    data = digits(25)
    fewer = m.first(data, 10)
    assert np.array_equal(fewer.train_images, data.train_images[:10])
    assert np.array_equal(fewer.train_labels, data.train_labels[:10])
    assert fewer.test_images is data.test_images
    with pytest.raises(ConfigError, match="train_images=26 is more than the 25"):
        m.first(data, 26)


def test_stretching_keeps_even_pictures_even_and_their_order():
    images = np.stack([np.full((1, 8, 8), level, dtype=np.uint8) for level in (0, 100, 255)])
    wider = m.stretched(images, (4, 16))
    assert wider.shape == (3, 1, 4, 16)
    assert [set(image.ravel()) for image in wider] == [{0}, {100}, {255}]


def test_a_left_half_stays_on_the_left():
    images = np.zeros((1, 1, 8, 8), dtype=np.uint8)
    images[..., :4] = 200
    small = m.stretched(images, (4, 6))[0, 0]
    assert small[:, 0].min() > small[:, 5].max()


def test_material_of_the_models_size():
    data = m.load_material(m.Material(train_images=50), (14, 14))
    assert data.train_images.shape == (50, 1, 14, 14)
    assert data.test_images.shape == (10_000, 1, 14, 14)
    assert data.input.size == (14, 14)


def test_whole_material_is_the_source_itself():
    whole = m.load_material(m.Material(), (28, 28))
    assert whole.hashes == m.load_whole("mnist").hashes


@pytest.mark.parametrize("count", [4, 0, -1])
def test_too_few_images_are_refused(count: int):
    with pytest.raises(ConfigError, match=f"train_images={count} must be at least 5"):
        m.Material(train_images=count)
