"""From one number a token to a map over the grid of patches, or over the pixels of the image."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from vitreous.config import Pair, pair
from vitreous.inspection.layout import Layout
from vitreous.nn.patches import to_map

__all__ = ["TokenMap", "over_grid", "over_pixels"]


@dataclass(frozen=True)
class TokenMap:
    """How much each patch has to do with the answer, by one method, for a batch of images."""

    method: str
    values: Float[Tensor, "b row col"]
    image_shape: Pair
    patch_shape: Pair

    @property
    def pixels(self) -> Float[Tensor, "b y x"]:
        """The same for every pixel of the image."""
        return over_pixels(self.values, self.image_shape, self.patch_shape)

    def _repr_html_(self) -> str:
        from vitreous.inspection.pictures import token_map_html

        return token_map_html(self)


def over_grid(tokens: Float[Tensor, "b n"], layout: Layout) -> Float[Tensor, "b row col"]:
    """The numbers of the patch tokens, where they stand; prefix tokens have no place in it.

    Raises ShapeError where the sequence is of another layout.
    """
    layout.fill(tokens.shape[1])
    return to_map(tokens[:, layout.prefix :, None], layout.grid)[:, 0]


def over_pixels(
    values: Float[Tensor, "b row col"], image_shape: int | Pair, patch_shape: int | Pair
) -> Float[Tensor, "b y x"]:
    """Every pixel gets the number of its patch; what overhangs the image is cut off."""
    (y, x), (py, px) = pair(image_shape), pair(patch_shape)
    return values.repeat_interleave(py, dim=1).repeat_interleave(px, dim=2)[:, :y, :x]
