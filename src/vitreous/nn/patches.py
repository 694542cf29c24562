"""Images to sequences of patches, and back."""

import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.config import Pair, does_not_tile, pair
from vitreous.errors import ShapeError
from vitreous.shapes import Grid, Images, Patches, Tokens

__all__ = [
    "ConvolutionStem",
    "NormedPatchEmbed",
    "PatchEmbed",
    "patch_grid",
    "patchify",
    "to_map",
    "unpatchify",
]


def patchify(images: Images, patch_size: int | Pair) -> Patches:
    """Cut images into disjoint patches, row by row; each patch becomes one flat vector.

    (b, c, y, x) -> (b, n, c·py·px). The vector is laid out (channel, row, column), so a Linear over
    it holds the same numbers as a Conv2d whose kernel and stride are the patch. Raises ShapeError
    where the patch does not tile the image. Source: ViT, section 3.1 (arXiv 2010.11929).

    >>> patchify(torch.arange(16.0).view(1, 1, 4, 4), 2)[0, 1].tolist()
    [2.0, 3.0, 6.0, 7.0]
    """
    row, col = patch_grid(images, patch_size)
    return rearrange(images, "b c (row py) (col px) -> b (row col) (c py px)", row=row, col=col)


def unpatchify(patches: Patches, patch_size: int | Pair, grid: Grid) -> Images:
    """Undo `patchify`: (b, n, c·py·px) -> (b, c, y, x), given the grid (rows, columns).

    Raises ShapeError where the grid does not hold n patches: a grid is never guessed.
    """
    (row, col), (py, px) = grid, pair(patch_size)
    _, n, size = patches.shape
    if n != row * col:
        raise ShapeError(f"{n} patches do not fill a grid of {row}×{col} = {row * col}")
    if size % (py * px):
        raise ShapeError(f"patches of {size} numbers do not hold whole channels of {py}×{px}")
    return rearrange(
        patches, "b (row col) (c py px) -> b c (row py) (col px)", row=row, col=col, py=py, px=px
    )


def patch_grid(images: Images, patch_size: int | Pair) -> Grid:
    """Rows and columns of patches in these images; raises ShapeError where pixels are left over."""
    if images.ndim != 4:
        raise ShapeError(f"images are (b, c, y, x); these have {images.ndim} axes")
    shape, patch_shape = (images.shape[2], images.shape[3]), pair(patch_size)
    for side, patch in zip(shape, patch_shape, strict=True):
        if patch < 1 or side % patch:
            raise ShapeError(
                does_not_tile(patch_size, shape, side, patch)
                if patch > 0
                else f"patch_size {patch_size} must be at least 1"
            )
    return shape[0] // patch_shape[0], shape[1] // patch_shape[1]


def to_map(tokens: Tokens, grid: Grid) -> Float[Tensor, "b d row col"]:
    """Patch tokens as a picture with `d` channels; raises ShapeError for another grid."""
    row, col = grid
    if tokens.shape[1] != row * col:
        raise ShapeError(f"{tokens.shape[1]} tokens do not fill a grid of {row}×{col}")
    return rearrange(tokens, "b (row col) d -> b d row col", row=row)


class PatchEmbed(nn.Module):
    """Patches to tokens: one linear map, shared by every patch.

    `forward` is the definition. `convolve` is the same map as a strided convolution, whose kernel
    is the Linear's weight, reshaped.
    """

    def __init__(
        self, patch_size: int | Pair, channels: int, width: int, *, bias: bool = True
    ) -> None:
        super().__init__()
        self.patch_size = pair(patch_size)
        py, px = self.patch_size
        self.proj = nn.Linear(channels * py * px, width, bias=bias)

    def forward(self, images: Images) -> Tokens:
        return self.proj(patchify(images, self.patch_size))

    def convolve(self, images: Images) -> Tokens:
        """`forward`, computed as a strided convolution."""
        patch_grid(images, self.patch_size)
        kernel = self.kernel(self.proj.weight)
        return F.conv2d(images, kernel, self.proj.bias, self.patch_size).flatten(2).mT

    def kernel(self, weight: Float[Tensor, "d patch"]) -> Float[Tensor, "d c py px"]:
        """A Linear's weight as the kernel of the equal convolution."""
        py, px = self.patch_size
        return rearrange(weight, "d (c py px) -> d c py px", py=py, px=px)

    def grid(self, images: Images) -> Grid:
        """Rows and columns of the tokens that `forward` makes of these images."""
        return patch_grid(images, self.patch_size)


class NormedPatchEmbed(PatchEmbed):
    """Patches to tokens between two LayerNorms: of the patch's pixels, and of its token.

    No convolution equals it: a patch is normalised as a whole. Source: Kumar et al., Dual PatchNorm
    (arXiv 2302.01327).
    """

    def __init__(
        self, patch_size: int | Pair, channels: int, width: int, *, eps: float, bias: bool = True
    ) -> None:
        super().__init__(patch_size, channels, width, bias=bias)
        self.norm1 = nn.LayerNorm(self.proj.in_features, eps=eps)
        self.norm2 = nn.LayerNorm(width, eps=eps)

    def forward(self, images: Images) -> Tokens:
        return self.norm2(self.proj(self.norm1(patchify(images, self.patch_size))))


class ConvolutionStem(nn.Module):
    """Pixels to tokens by 3×3 convolutions of stride 2, each doubling the channels.

    Each halves rows and columns, rounding up: 28 becomes 14, 7, 4, and every pixel is seen.
    Source: Xiao et al., Early Convolutions Help Transformers See Better (arXiv 2106.14881).
    """

    def __init__(self, stride: int, channels: int, width: int) -> None:
        super().__init__()
        self.halvings = stride.bit_length() - 1
        layers: list[nn.Module] = []
        for left in reversed(range(self.halvings)):
            wide = max(width >> left, 1)
            layers += [nn.Conv2d(channels, wide, 3, stride=2, padding=1), nn.GELU()]
            channels = wide
        self.convolutions = nn.Sequential(*layers)
        self.proj = nn.Linear(width, width)

    def forward(self, images: Images) -> Tokens:
        return self.proj(self.convolutions(images).flatten(2).mT)

    def grid(self, images: Images) -> Grid:
        """Rows and columns of the tokens that `forward` makes of these images."""
        stride = 1 << self.halvings
        return -(-images.shape[2] // stride), -(-images.shape[3] // stride)
