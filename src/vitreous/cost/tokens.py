"""How many tokens there are at each place of a model, and how large the maps before them are."""

from typing import NamedTuple

from vitreous.config import ViTConfig

__all__ = ["Convolution", "convolutions", "head_width", "heads", "made_tokens", "patch_tokens"]


class Convolution(NamedTuple):
    """One 3×3 convolution of a stem."""

    wide: int
    """Channels that it reads."""
    narrow: int
    """Channels that it makes."""
    places: int
    """Rows × columns of what it makes."""


def patch_tokens(config: ViTConfig) -> int:
    """Tokens that stand for a patch.

    >>> from vitreous.config import preset
    >>> patch_tokens(preset("b16"))
    196
    """
    rows, columns = config.grid
    return rows * columns


def made_tokens(config: ViTConfig, *, train: bool) -> int:
    """Tokens that the last block makes: training asks for those only that are pooled.

    Without blocks nothing is left out: sums of `depth - 1` whole blocks and this one are nothing.
    """
    few = {"cls": 1, "distilled": 2}.get(config.pooling)
    if few is None or not train or not config.depth or config.head_reads == "cls_and_mean":
        return config.tokens
    return few


def heads(config: ViTConfig) -> int:
    """Linear heads: a distilled model scores with two."""
    return (2 if config.pooling == "distilled" else 1) if config.classes else 0


def head_width(config: ViTConfig) -> int:
    """Numbers that one head reads."""
    return config.width * (2 if config.head_reads == "cls_and_mean" else 1)


def convolutions(config: ViTConfig) -> list[Convolution]:
    """The convolutions of a stem, from pixels on; none for a linear one.

    Each halves rows and columns, rounding up, and all but the first double the channels.
    """
    if config.stem == "linear":
        return []
    halvings = config.patch_shape[0].bit_length() - 1
    (rows, columns), wide, layers = config.image_shape, config.channels, []
    for left in reversed(range(halvings)):
        rows, columns = -(-rows // 2), -(-columns // 2)
        narrow = max(config.width >> left, 1)
        layers.append(Convolution(wide, narrow, rows * columns))
        wide = narrow
    return layers
