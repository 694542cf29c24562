import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from vitreous.data.augment import affine, affine_matrices

NOTHING = {"rotate": 0.0, "shift": 0.0, "scale": 0.0, "shear": 0.0}


def drawing(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def largest(monkeypatch):
    """Let every draw from a generator be the largest there is."""
    chance = torch.rand
    draw = lambda *shape, generator=None: torch.ones(shape) if generator else chance(shape)
    monkeypatch.setattr(torch, "rand", draw)


@pytest.mark.parametrize("size", [(28, 28), (12, 30), (7, 5)])
def test_no_limit_is_no_change(size):
    images = torch.rand(8, 3, *size)
    assert_close(affine(images, drawing(), **NOTHING), images, atol=1e-5, rtol=0)


def test_a_quarter_turn_of_a_square_is_rot90(largest):
    images = torch.rand(2, 1, 9, 9)
    turned = affine(images, drawing(), **NOTHING | {"rotate": 90.0})
    assert_close(turned, images.rot90(1, (2, 3)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("size", [(9, 21), (21, 9)])
def test_a_quarter_turn_of_a_wide_image_keeps_its_shapes(largest, size):
    """A square in the middle comes out as the same square, turned: not squeezed, not stretched."""
    y, x = size
    images, patch = torch.zeros(1, 1, y, x), torch.rand(1, 1, 5, 5)
    middle = (..., slice(y // 2 - 2, y // 2 + 3), slice(x // 2 - 2, x // 2 + 3))
    images[middle] = patch
    turned = affine(images, drawing(), **NOTHING | {"rotate": 90.0})
    expected = torch.zeros_like(images)
    expected[middle] = patch.rot90(1, (2, 3))
    assert_close(turned, expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("change", [{"rotate": 40.0}, {"shear": 0.4}, {"scale": 0.3}])
@pytest.mark.parametrize("size", [(12, 20), (20, 12)])
def test_a_wide_image_is_changed_as_the_square_around_it(size, change):
    images = torch.rand(6, 1, *size)
    rows, columns = ((20 - side) // 2 for side in size)
    square = F.pad(images, (columns, columns, rows, rows))
    changed = affine(square, drawing(), **NOTHING | change)
    expected = changed[:, :, rows : 20 - rows, columns : 20 - columns]
    assert_close(affine(images, drawing(), **NOTHING | change), expected, atol=1e-4, rtol=0)


def test_the_largest_shift_is_its_fraction_of_each_side(largest):
    images = torch.rand(1, 1, 8, 12)
    moved = affine(images, drawing(), **NOTHING | {"shift": 0.25})
    assert_close(moved[..., :6, :9], images[..., 2:, 3:], atol=1e-5, rtol=0)
    assert not moved[..., 6:, :].any()
    assert not moved[..., 9:].any()


def test_the_largest_slant_moves_columns_by_rows(largest):
    images = torch.zeros(1, 1, 5, 15)
    images[..., 7] = torch.rand(5)
    slanted = affine(images, drawing(), **NOTHING | {"shear": 1.0})
    expected = torch.stack([images[0, 0, row].roll(2 - row) for row in range(5)])
    assert_close(slanted[0, 0], expected, atol=1e-5, rtol=0)


def test_the_largest_scale_makes_things_larger_by_it(largest):
    ramp = torch.linspace(-1, 1, 21).expand(1, 1, 21, 21)
    larger = affine(ramp, drawing(), **NOTHING | {"scale": 0.25})
    assert_close(larger, ramp / 1.25, atol=1e-5, rtol=0)


def test_changes_stay_within_their_limits_and_fill_them():
    limits = {"rotate": 20.0, "shift": 0.1, "scale": 0.2, "shear": 0.3}
    alone = lambda name: affine_matrices(2000, drawing(), **NOTHING | {name: limits[name]})
    shift = alone("shift")[:, :, 2] / 2
    turn = torch.rad2deg(torch.atan2(alone("rotate")[:, 1, 0], alone("rotate")[:, 0, 0]))
    size = 1 / alone("scale")[:, 0, 0] - 1
    slant = alone("shear")[:, 0, 1]
    for name, drawn in {"shift": shift, "rotate": turn, "scale": size, "shear": slant}.items():
        limit = limits[name]
        assert drawn.abs().max() <= limit * 1.0001, name
        assert drawn.max() > 0.98 * limit, name
        assert drawn.min() < -0.98 * limit, name
        assert_close(drawn.std(), torch.tensor(limit / 3**0.5), atol=0, rtol=0.1)


def test_the_centre_of_a_dot_moves_no_further_than_the_limit():
    images = torch.zeros(200, 1, 20, 30)
    images[..., 9:11, 14:16] = 1.0
    moved = affine(images, drawing(), **NOTHING | {"shift": 0.1})
    weight = moved.sum((1, 2, 3))
    y = (moved.sum((1, 3)) * torch.arange(20)).sum(1) / weight - 9.5
    x = (moved.sum((1, 2)) * torch.arange(30)).sum(1) / weight - 14.5
    assert 1.9 < y.abs().max() <= 2.001
    assert 2.8 < x.abs().max() <= 3.001


def test_every_image_has_a_change_of_its_own():
    same = torch.rand(1, 1, 12, 12).expand(16, 1, 12, 12)
    changed = affine(same, drawing(), rotate=10.0, shift=0.1, scale=0.1, shear=0.1)
    apart = torch.cdist(changed.flatten(1), changed.flatten(1)) + torch.eye(16)
    assert apart.min() > 0.01


def test_the_generator_decides_and_nothing_else_does():
    images = torch.rand(4, 1, 12, 12)
    limits = {"rotate": 10.0, "shift": 0.1, "scale": 0.1, "shear": 0.1}
    results = []
    for seed, other in ((1, 1), (1, 2), (3, 1)):
        torch.manual_seed(other)
        results.append(affine(images, drawing(seed), **limits))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_one_limit_does_not_move_the_draws_of_another():
    turned = affine_matrices(8, drawing(), **NOTHING | {"rotate": 10.0})
    both = affine_matrices(8, drawing(), **NOTHING | {"rotate": 10.0, "shift": 0.1})
    assert torch.equal(turned[:, :, :2], both[:, :, :2])


def test_images_are_not_changed_in_place():
    images = torch.rand(4, 1, 12, 12)
    before = images.clone()
    affine(images, drawing(), rotate=10.0, shift=0.1, scale=0.1, shear=0.1)
    assert torch.equal(images, before)
