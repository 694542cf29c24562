import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from vitreous import ShapeError
from vitreous.nn.patches import patchify
from vitreous.nn.positions import (
    RESIZES,
    Learned,
    LearnedAxes,
    NoPositions,
    Rotary,
    SinCos,
    angles,
    grid_coords,
    resize_table,
    rotate,
    sincos,
)

NOTHING = torch.zeros(())
TIMM = "bicubic_antialias"
offsets = st.tuples(st.integers(0, 30), st.integers(0, 30))


def kernel(mode: str, distance: np.ndarray, sharpness: float) -> np.ndarray:
    """The weight of a source cell at this distance: a triangle, or Keys' cubic."""
    t, a = np.abs(distance), sharpness
    if mode == "bilinear":
        return np.maximum(0, 1 - t)
    near = (a + 2) * t**3 - (a + 3) * t**2 + 1
    far = a * t**3 - 5 * a * t**2 + 8 * a * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0.0))


def stretching(source: int, target: int, convention: str) -> np.ndarray:
    """(target, source): resampling along one axis as a matrix, written from the definitions."""
    mode, _, variant = convention.partition("_")
    ratio = source / (target + 0.1) if variant == "offset" else source / target
    matrix = np.zeros((target, source))
    for i in range(target):
        if variant == "antialias":
            wide = max(ratio, 1.0)
            weights = kernel(mode, (np.arange(source) + 0.5 - (i + 0.5) * ratio) / wide, -0.5)
            matrix[i] = weights / weights.sum()
            continue
        corners = i * (source - 1) / max(target - 1, 1)
        place = corners if variant == "corners" else (i + 0.5) * ratio - 0.5
        if mode == "bilinear":
            place = max(place, 0.0)
        for j in range(math.floor(place) - 1, math.floor(place) + 3):
            matrix[i, min(max(j, 0), source - 1)] += kernel(mode, np.array(place - j), -0.75)
    return matrix


def stretched_by_hand(table, source, target, convention):
    """The table as a picture, stretched along rows and along columns by those matrices."""
    if convention == "google":
        square = source[0] == source[1] and target[0] == target[1]
        convention = "bilinear_corners" if square else "bilinear"
    picture = table.double().numpy().reshape(*source, -1)
    rows = stretching(source[0], target[0], convention)
    columns = stretching(source[1], target[1], convention)
    result = np.einsum("ir,jc,rcd->ijd", rows, columns, picture)
    return torch.from_numpy(result.reshape(target[0] * target[1], -1)).float()


# coordinates


def test_coordinates_run_along_rows_first():
    """POS-05."""
    y, x = grid_coords(3, 4).unbind(-1)
    assert x.tolist() == [0, 1, 2, 3] * 3
    assert y.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_a_coordinate_names_the_patch_it_belongs_to():
    planes = torch.stack(torch.meshgrid(torch.arange(6.0), torch.arange(12.0), indexing="ij"))
    corners = patchify(planes[None], (2, 3))[0, :, [0, 6]]
    assert_close(corners / torch.tensor([2.0, 3.0]), grid_coords(3, 4))


# resizing


@pytest.mark.parametrize("convention", RESIZES)
@pytest.mark.parametrize("target", [(7, 5), (6, 4), (2, 9), (3, 3), (1, 1), (1, 4), (7, 1), (2, 1)])
def test_a_stretched_table_is_what_its_convention_says(convention, target):
    table = torch.randn(25, 3)
    for source in ((4, 6), (5, 5)):
        ours = resize_table(table[: source[0] * source[1]], source, target, convention)
        by_hand = stretched_by_hand(table[: source[0] * source[1]], source, target, convention)
        assert_close(ours, by_hand, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("convention", RESIZES)
def test_a_column_is_stretched_like_a_row(convention):
    """torch 2.13 itself returns the first row again and again where it antialiases one column."""
    table = torch.randn(4, 3)
    for length in (2, 3, 7):
        column = resize_table(table, (4, 1), (length, 1), convention)
        assert_close(column, resize_table(table, (1, 4), (1, length), convention))


def test_conventions_disagree_and_so_must_be_named():
    table = torch.randn(196, 4)
    named = [name for name in RESIZES if name != "google"]
    results = [resize_table(table, (14, 14), (10, 12), convention) for convention in named]
    for i, one in enumerate(results):
        assert all((one - other).norm() / one.norm() > 0.02 for other in results[:i])


@pytest.mark.parametrize(("grid", "width"), [((4, 6), 8), ((50, 63), 2)])
def test_no_square_root_of_the_token_count_is_taken(grid, width):
    """POS-02: neither 24 nor 3150 is a square."""
    learned = Learned(grid, width, class_row=False, others=0, resize=TIMM)
    assert learned(grid, like=NOTHING).added is learned.table
    turned = learned(grid[::-1], like=NOTHING).added
    assert_close(turned, stretched_by_hand(learned.table.detach(), grid, grid[::-1], TIMM))
    assert not torch.allclose(turned, learned.table)


def test_google_stretches_squares_by_their_corners_and_has_no_word_for_others():
    table = torch.randn(16, 3)
    square = resize_table(table, (4, 4), (6, 6), "google")
    assert_close(square, resize_table(table, (4, 4), (6, 6), "bilinear_corners"))
    for target in ((3, 6), (2, 8)):
        wide = resize_table(table, (4, 4), target, "google")
        assert_close(wide, resize_table(table, (4, 4), target, "bilinear"))


@pytest.mark.parametrize("side", [14, 37])
def test_a_stretched_grid_has_exactly_the_size_asked_for(side):
    """POS-03: with a scale factor one row is lost at 61, 115 and 122 from 14."""
    table = torch.randn(side * side, 1)
    for n in range(1, 140):
        assert len(resize_table(table, (side, side), (n, n), "bilinear")) == n * n


@pytest.mark.parametrize(
    ("convention", "expected"),
    [("bilinear_corners", [0, 0.5, 1, 1.5, 2]), ("bilinear", [0, 0.4, 1, 1.6, 2])],
)
def test_corners_are_kept_only_by_name(convention, expected):
    """POS-06."""
    row = torch.tensor([[0.0], [1.0], [2.0]])
    assert_close(resize_table(row, (1, 3), (1, 5), convention).flatten(), torch.tensor(expected))


@pytest.mark.parametrize("prefix", [0, 1, 2])
def test_leading_rows_are_kept_and_the_rest_is_stretched(prefix):
    """POS-07."""
    table = torch.randn(prefix + 196, 192)
    result = resize_table(table, (14, 14), (10, 14), TIMM)
    assert result.shape == (prefix + 140, 192)
    assert torch.equal(result[:prefix], table[:prefix])
    by_hand = stretched_by_hand(table[prefix:], (14, 14), (10, 14), TIMM)
    assert_close(result[prefix:], by_hand, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("convention", RESIZES)
def test_what_is_constant_stays_constant_and_rows_stay_rows(convention):
    """POS-07."""
    flat = resize_table(torch.full((197, 2), 3.0), (14, 14), (10, 17), convention)
    assert_close(flat, torch.full((171, 2), 3.0))
    by_row = torch.randn(14, 1, 2).expand(14, 14, 2).flatten(0, 1)
    rows = resize_table(by_row, (14, 14), (10, 17), convention).unflatten(0, (10, 17))
    assert_close(rows, rows[:, :1].expand_as(rows))
    assert rows.std(dim=0).gt(0.1).all()


def test_a_table_that_is_too_short_for_its_grid_is_refused():
    with pytest.raises(ShapeError, match=r"a table of 195 rows does not hold a grid of \(14, 14\)"):
        resize_table(torch.zeros(195, 2), (14, 14), (10, 14), TIMM)


def test_a_table_in_bfloat16_is_stretched_in_float32():
    table = torch.randn(16, 4).bfloat16()
    precise = resize_table(table.float(), (4, 4), (5, 7), TIMM)
    assert torch.equal(resize_table(table, (4, 4), (5, 7), TIMM), precise.bfloat16())


# learned tables


def test_a_learned_table_is_used_as_it_is_on_its_own_grid():
    learned = Learned((2, 3), 4, class_row=True, others=0, resize=TIMM)
    assert torch.equal(learned((2, 3), like=NOTHING).added, learned.table)
    axes = LearnedAxes((2, 3), 4, prefix=1, resize=TIMM)
    expected = [axes.rows[r] + axes.columns[c] for r in range(2) for c in range(3)]
    placed = axes((2, 3), like=NOTHING).added
    assert torch.equal(placed, torch.stack([torch.zeros(4), *expected]))


def test_tables_are_saved_with_the_shape_of_their_grid():
    learned = Learned((2, 6), 4, class_row=True, others=0, resize=TIMM)
    axes = LearnedAxes((2, 6), 4, prefix=0, resize=TIMM)
    assert learned.state_dict()["grid"].tolist() == axes.state_dict()["grid"].tolist() == [2, 6]


@pytest.mark.parametrize("class_row", [True, False])
def test_registers_own_no_row(class_row):
    learned = Learned((2, 3), 4, class_row=class_row, others=3, resize=TIMM)
    assert len(learned.table) == class_row + 6
    for grid in [(2, 3), (4, 5)]:
        added = learned(grid, like=NOTHING).added
        first, registers, patches = added.split([int(class_row), 3, grid[0] * grid[1]])
        assert torch.equal(first, learned.table[:class_row])
        assert torch.equal(registers, torch.zeros(3, 4))
        own = learned.table[class_row:]
        assert torch.equal(patches, resize_table(own, (2, 3), grid, TIMM))


@pytest.mark.parametrize("convention", [name for name in RESIZES if name != "bicubic_offset"])
def test_stretching_the_axes_is_stretching_their_sum(convention):
    axes = LearnedAxes((4, 6), 8, prefix=0, resize=convention)
    whole = axes((4, 6), like=NOTHING).added
    for grid in [(7, 5), (2, 6), (3, 11)]:
        placed = axes(grid, like=NOTHING).added
        assert_close(placed, resize_table(whole, (4, 6), grid, convention))


# sines and cosines


def test_sines_and_cosines_are_concatenated_unless_told():
    """POS-10."""
    place = torch.tensor([[1.0]])
    assert_close(sincos(place, 4), torch.tensor([[0.841471, 0.010000, 0.540302, 0.999950]]))
    in_turn = sincos(place, 4, layout="interleaved")
    assert_close(in_turn, torch.tensor([[0.841471, 0.540302, 0.010000, 0.999950]]))


def test_a_width_that_does_not_hold_pairs_is_refused():
    """POS-10."""
    with pytest.raises(ShapeError, match="width 5 is odd"):
        sincos(torch.tensor([[1.0]]), 5)
    with pytest.raises(ShapeError, match="3 angles do not split over 2 coordinate axes"):
        sincos(torch.tensor([[1.0, 2.0]]), 6)


def test_sincos_is_the_formula_of_the_paper():
    by_hand = [
        [wave(k / 10_000 ** (2 * i / 8)) for wave in (math.sin, math.cos) for i in range(4)]
        for k in range(6)
    ]
    placed = SinCos(8, prefix=0, axes=1)((2, 3), like=NOTHING).added
    assert_close(placed, torch.tensor(by_hand))


def test_in_two_dimensions_rows_and_columns_share_the_width():
    placed = SinCos(16, prefix=0)((3, 5), like=NOTHING).added.view(3, 5, 2, 2, 4)
    row, column = placed.unbind(-2)  # of sines and of cosines
    assert_close(row, row[:, :1].expand_as(row))
    assert_close(column, column[:1].expand_as(column))
    assert_close(row[:, 0].flatten(1), sincos(torch.arange(3.0)[:, None], 8))
    assert_close(column[0].flatten(1), sincos(torch.arange(5.0)[:, None], 8))


@pytest.mark.parametrize("axes", [1, 2])
def test_sincos_gives_every_place_a_name_of_its_own(axes):
    placed = SinCos(16, prefix=0, axes=axes)((14, 15), like=NOTHING).added
    apart = torch.cdist(placed, placed) + torch.eye(210)
    assert apart.min() > 0.1


@pytest.mark.parametrize("axes", [1, 2])
def test_sincos_adds_zeros_to_prefix_tokens(axes):
    bare = SinCos(16, prefix=0, axes=axes)((2, 3), like=NOTHING).added
    placed = SinCos(16, prefix=5, axes=axes)((2, 3), like=NOTHING).added
    assert torch.equal(placed, torch.cat([torch.zeros(5, 16), bare]))


def test_positions_follow_the_dtype_of_the_tokens():
    like = torch.zeros((), dtype=torch.bfloat16)
    assert SinCos(16, prefix=1)((2, 3), like=like).added.dtype == torch.bfloat16
    # Angles stay in float32: at 8 bits neighbours of the fast pairs would be one.
    assert Rotary(16, prefix=1)((2, 3), like=like).angle.dtype == torch.float32


# rotations


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("interleaved", [-1.142640, 1.922076, 2.959851, 4.029800]),
        ("halves", [-1.984111, 1.959901, 2.462378, 4.019800]),
    ],
)
def test_a_layout_turns_its_own_pairs(layout, expected):
    """POS-08."""
    x, angle = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), angles(torch.tensor([[1.0]]), 2, 10_000.0)
    turned = rotate(x, angle, layout=layout)
    assert_close(turned, torch.tensor([expected]))
    assert_close(turned.norm(), torch.tensor(30.0).sqrt())


def test_the_layouts_are_one_rotation_of_reordered_numbers():
    x, angle = torch.randn(2, 5, 8), torch.randn(5, 4)
    halves_of = lambda t: t.unflatten(-1, (4, 2)).mT.flatten(-2)
    assert_close(
        halves_of(rotate(x, angle)), rotate(halves_of(x), angle, layout="halves"), atol=0, rtol=0
    )


def test_rotation_at_the_origin_is_the_identity():
    x = torch.randn(2, 1, 8)
    assert torch.equal(rotate(x, angles(torch.zeros(1, 2), 4, 100.0)), x)


def test_rotations_add_up():
    x, one, two = torch.randn(3, 6), torch.randn(3, 3), torch.randn(3, 3)
    assert_close(rotate(rotate(x, one), two), rotate(x, one + two))


@given(at=offsets, to=offsets, by=offsets, layout=st.sampled_from(["interleaved", "halves"]))
@settings(deadline=None, max_examples=40)
def test_rotary_scores_depend_on_offsets_only(at, to, by, layout):
    """POS-08."""
    q, k = torch.linspace(-1, 1, 8), torch.linspace(2, -1, 8).sin()

    def score(moved):
        places = torch.tensor([at, to], dtype=torch.float32) + torch.tensor(moved)
        one, two = rotate(torch.stack([q, k]), angles(places, 4, 100.0), layout=layout)
        return one @ two

    assert_close(score((0.0, 0.0)), score((float(by[0]), float(by[1]))), atol=1e-4, rtol=1e-4)


def test_rotary_scores_change_with_the_offset_along_either_axis():
    angle = Rotary(8, prefix=0)((2, 2), like=NOTHING).angle
    here, right, below, across = rotate(torch.ones(4, 8), angle)
    scores = torch.stack([here @ right, here @ below, here @ across])
    assert_close(scores[0], scores[1])  # the axes are alike, and are told apart by their numbers
    assert here @ here - scores[0] > 0.1
    assert scores[0] - scores[2] > 0.1
    assert_close(right[:4], here[:4])
    assert_close(below[4:], here[4:])


def test_rotary_leaves_prefix_tokens_as_they_are():
    angle = Rotary(8, prefix=3)((2, 3), like=NOTHING).angle
    x = torch.randn(1, 2, 9, 8)
    turned = rotate(x, angle)
    assert torch.equal(turned[:, :, :3], x[:, :, :3])
    bare = Rotary(8, prefix=0)((2, 3), like=NOTHING).angle
    assert torch.equal(turned[:, :, 3:], rotate(x[:, :, 3:], bare))


def test_no_positions_are_nothing_at_all():
    assert NoPositions()((2, 3), like=NOTHING) == (None, None)
