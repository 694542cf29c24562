import inspect

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch import nn
from torch.testing import assert_close

from vitreous import ShapeError, ViTConfig
from vitreous.nn.patches import (
    ConvolutionStem,
    PatchEmbed,
    patch_grid,
    patchify,
    to_map,
    unpatchify,
)

sides = st.tuples(st.integers(1, 4), st.integers(1, 4))


def numbered(channels: int, y: int, x: int) -> torch.Tensor:
    """An image whose pixels are 0, 1, 2 … row by row, and 100 more in each further channel."""
    plane = torch.arange(float(y * x)).view(1, y, x)
    return torch.cat([plane + 100 * c for c in range(channels)])[None]


def test_patches_are_cut_out_and_not_read_off():
    """PAT-01 (a)."""
    assert patchify(numbered(1, 4, 4), 2).tolist() == [
        [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    ]


def test_a_patch_holds_channel_then_row_then_column():
    """PAT-01 (b)."""
    first = patchify(numbered(2, 4, 4), 2)[0, 0]
    assert first.tolist() == [0, 1, 4, 5, 100, 101, 104, 105]


@pytest.mark.parametrize("size", [(4, 6), (6, 4)])
def test_patches_come_back_as_the_image_when_the_grid_is_given(size):
    """PAT-02."""
    images = torch.randn(2, 3, *size)
    grid = (size[0] // 2, size[1] // 2)
    assert torch.equal(unpatchify(patchify(images, 2), 2, grid), images)
    assert not torch.equal(
        unpatchify(patchify(images, 2), 2, grid[::-1]).flatten(), images.flatten()
    )


def test_a_grid_is_never_guessed():
    """PAT-02: six patches are no square, and four patches are not a grid of six."""
    with pytest.raises(ShapeError, match="6 patches do not fill a grid of 2×2 = 4"):
        unpatchify(torch.zeros(1, 6, 4), 2, (2, 2))
    with pytest.raises(ShapeError, match="10 numbers do not hold whole channels of 2×2"):
        unpatchify(torch.zeros(1, 6, 10), 2, (2, 3))


def test_patches_stand_row_by_row():
    """PAT-03."""
    assert patchify(numbered(1, 4, 6), 2)[0, :, 0].tolist() == [0, 2, 4, 12, 14, 16]


@pytest.mark.parametrize("cut", [patchify, patch_grid, lambda i, p: PatchEmbed(p, 1, 8)(i)])
@pytest.mark.parametrize(("size", "left"), [((30, 30), "2 of 30"), ((28, 30), "2 of 30")])
def test_an_image_that_does_not_tile_is_refused_with_its_numbers(cut, size, left):
    """PAT-05: the nearest good sides are named."""
    with pytest.raises(ShapeError, match=f"patch_size .*4.* {left} pixels .* side of 28 or 32"):
        cut(torch.zeros(1, 1, *size), 4)


def test_the_convolution_refuses_what_the_linear_refuses():
    """PAT-05: a bare strided convolution would leave out two rows."""
    with pytest.raises(ShapeError, match="2 of 30 pixels are left over"):
        PatchEmbed(4, 1, 8).convolve(torch.zeros(1, 1, 30, 28))


@pytest.mark.parametrize("bad", [0, -2, (2, 0)])
def test_a_patch_without_pixels_is_refused(bad):
    with pytest.raises(ShapeError, match="must be at least 1"):
        patchify(torch.zeros(1, 1, 4, 4), bad)


def test_images_without_a_batch_are_refused():
    """The checked package meets the wrong rank at the signature, the plain one in the body."""
    with pytest.raises(TypeCheckError):
        patch_grid(torch.zeros(3, 8, 8), 4)
    with pytest.raises(ShapeError, match="these have 3 axes"):
        inspect.unwrap(patch_grid)(torch.zeros(3, 8, 8), 4)


def test_a_map_has_the_width_for_channels():
    """PAT-06."""
    tokens = torch.tensor([[[float(k), 10.0 + k] for k in range(6)]])
    assert to_map(tokens, (2, 3)).tolist() == [
        [[[0, 1, 2], [3, 4, 5]], [[10, 11, 12], [13, 14, 15]]]
    ]
    with pytest.raises(ShapeError, match="6 tokens do not fill a grid of 2×2"):
        to_map(tokens, (2, 2))


@given(channels=st.integers(1, 4), patch=sides, grid=sides)
@settings(deadline=None, max_examples=40)
def test_any_image_is_its_patches(channels, patch, grid):
    images = torch.rand(2, channels, patch[0] * grid[0], patch[1] * grid[1])
    patches = patchify(images, patch)
    assert torch.equal(unpatchify(patches, patch, grid), images)
    by_hand = [
        images[:, :, r * patch[0] : (r + 1) * patch[0], c * patch[1] : (c + 1) * patch[1]]
        for r in range(grid[0])
        for c in range(grid[1])
    ]
    assert torch.equal(patches, torch.stack([cut.flatten(1) for cut in by_hand], dim=1))


def test_the_textbook_shape():
    images = torch.randn(4, 3, 96, 96)
    assert PatchEmbed(16, 3, 512)(images).shape == (4, 36, 512)


@pytest.mark.parametrize("patch", [4, (2, 6)])
def test_linear_on_patches_is_a_strided_convolution(patch):
    embed = PatchEmbed(patch, 3, 16)
    conv = nn.Conv2d(3, 16, kernel_size=patch, stride=patch)
    images = torch.randn(2, 3, 8, 12)
    conv.weight.data = embed.proj.weight.data.reshape(conv.weight.shape)
    conv.bias.data = embed.proj.bias.data
    assert_close(embed(images), conv(images).flatten(2).mT)
    assert_close(embed.convolve(images), embed(images))


@pytest.mark.parametrize("patch", [4, (2, 6)])
def test_weights_of_a_convolution_move_in_by_reshape_alone(patch):
    conv = nn.Conv2d(3, 16, kernel_size=patch, stride=patch)
    embed = PatchEmbed(patch, 3, 16)
    images = torch.randn(2, 3, 12, 6 * 4)
    embed.proj.weight.data = conv.weight.data.reshape(embed.proj.weight.shape)
    embed.proj.bias.data = conv.bias.data
    assert torch.equal(embed.kernel(embed.proj.weight), conv.weight)
    assert_close(embed(images), conv(images).flatten(2).mT)


@pytest.mark.parametrize("size", [(16, 16), (8, 24), (17, 13), (9, 30)])
@pytest.mark.parametrize("stem", [ConvolutionStem, PatchEmbed])
def test_every_pixel_is_seen_or_the_image_is_refused(stem, size):
    """PAT-05."""
    images = torch.randn(1, 2, *size, requires_grad=True)
    embed = stem(8, 2, 16)
    if stem is PatchEmbed and (size[0] % 8 or size[1] % 8):
        with pytest.raises(ShapeError):
            embed(images)
        return
    (embed(images) * torch.randn(16)).sum().backward()
    assert images.grad.ne(0).all()


@given(y=st.integers(1, 40), x=st.integers(1, 40), halvings=st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_a_convolution_stem_fills_the_grid_that_the_config_promises(y, x, halvings):
    stride = 1 << halvings
    config = ViTConfig(image_size=(y, x), patch_size=stride, stem="convolution")
    stem, images = ConvolutionStem(stride, 1, 16), torch.zeros(1, 1, y, x)
    assert stem.grid(images) == config.grid == tuple(stem.convolutions(images).shape[2:])
    assert stem(images).shape[1] == config.grid[0] * config.grid[1]


def test_tokens_of_a_convolution_stem_stand_row_by_row():
    """A pixel in the lower left corner is far from every token of the upper row."""
    stem, images = ConvolutionStem(4, 1, 8), torch.zeros(1, 1, 16, 24)
    blank = stem(images)
    images[0, 0, 15, 0] = 1.0
    changed = (stem(images) - blank)[0].abs().sum(-1) > 1e-6
    assert changed[3 * 6]
    assert not changed[:12].any()
    assert not changed[3 * 6 + 2 :].any()


def test_stem_channels_double_up_to_the_width():
    stem = ConvolutionStem(8, 3, 64)
    widths = [layer.out_channels for layer in stem.convolutions if isinstance(layer, nn.Conv2d)]
    assert widths == [16, 32, 64]
