"""What attention within windows would cost: priced here, and not built.

Four stages of blocks; in each a token reads the 49 tokens of its 7×7 window. Between stages four
neighbours become one token of twice the width. Source: Swin Transformer (arXiv 2103.14030),
sections 3.1 and 3.2, of whose published counts these are: relative position tables are parameters
and no multiply-adds, and windows are exact at 224×224.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from vitreous import settings
from vitreous.cost.flops import MultiplyAdds
from vitreous.cost.parameters import linear
from vitreous.errors import ConfigError

__all__ = ["WINDOWED", "Windowed", "count_parameters", "forward", "windowed"]


class Stage(NamedTuple):
    """Blocks of one width over one grid."""

    depth: int
    width: int
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Windowed:
    """The shape of a model with windowed attention; raises ConfigError where windows do not fit."""

    width: int
    """Of the first stage; each next one doubles it."""
    depths: tuple[int, ...]
    """Blocks of each stage."""
    image_size: int = 224
    channels: int = 3
    patch_size: int = 4
    window: int = 7
    head_dim: int = 32
    mlp_ratio: int = 4
    classes: int = 1000

    def __post_init__(self) -> None:
        settings.check(self)
        sizes = {name: v for name, v in vars(self).items() if isinstance(v, int)}
        low = [name for name, value in sizes.items() if value < 1]
        if low or not self.depths or min(self.depths) < 1:
            name = low[0] if low else "depths"
            raise ConfigError(f"{name}={getattr(self, name)} must be at least 1")
        if self.width % self.head_dim:
            raise ConfigError(f"width={self.width} does not split into heads of {self.head_dim}")
        unit = self.patch_size * self.window << (len(self.depths) - 1)
        if self.image_size % unit:
            raise ConfigError(
                f"image_size={self.image_size} is no whole number of windows in every stage; "
                f"use a multiple of {unit}"
            )

    @property
    def stages(self) -> list[Stage]:
        """The stages, from fine to coarse."""
        side = self.image_size // self.patch_size
        return [
            Stage(depth, self.width << k, (side >> k) ** 2) for k, depth in enumerate(self.depths)
        ]


WINDOWED: Mapping[str, Windowed] = {
    "swin-t": Windowed(width=96, depths=(2, 2, 6, 2)),
    "swin-s": Windowed(width=96, depths=(2, 2, 18, 2)),
    "swin-b": Windowed(width=128, depths=(2, 2, 18, 2)),
}


def windowed(name: str) -> Windowed:
    """The shape of a named model; raises ConfigError with the nearest name."""
    return settings.named("windowed model", name, WINDOWED)


def count_parameters(shape: Windowed) -> int:
    """Matrices, biases, norms and relative position tables.

    >>> count_parameters(windowed("swin-t"))
    28288354
    """
    last = shape.stages[-1].width
    return (
        linear(shape.channels * shape.patch_size**2, shape.width)
        + 2 * shape.width  # a norm behind the patch embedding
        + sum(stage.depth * block_parameters(shape, stage) for stage in shape.stages)
        + sum(merging_parameters(stage) for stage in shape.stages[:-1])
        + 2 * last
        + linear(last, shape.classes)
    )


def block_parameters(shape: Windowed, stage: Stage) -> int:
    """Attention with its table of relative places, MLP, and two norms."""
    width, hidden = stage.width, shape.mlp_ratio * stage.width
    table = (2 * shape.window - 1) ** 2 * (width // shape.head_dim)
    attention = linear(width, 3 * width) + linear(width, width) + table
    return attention + linear(width, hidden) + linear(hidden, width) + 4 * width


def merging_parameters(stage: Stage) -> int:
    """Four tokens to one of twice the width: a norm, and a matrix without a bias."""
    return 2 * 4 * stage.width + linear(4 * stage.width, 2 * stage.width, bias=False)


def forward(shape: Windowed) -> MultiplyAdds:
    """Multiply-adds of one image; merging is counted with the patch embedding."""
    patches = shape.stages[0].tokens * shape.channels * shape.patch_size**2 * shape.width
    merging = sum(stage.tokens // 4 * 8 * stage.width**2 for stage in shape.stages[:-1])
    read = shape.window**2
    rows = [(stage.depth * stage.tokens, stage.width) for stage in shape.stages]
    return MultiplyAdds(
        patch_embedding=patches + merging,
        attention_projections=sum(4 * tokens * width**2 for tokens, width in rows),
        attention_products=sum(2 * tokens * read * width for tokens, width in rows),
        mlp=sum(2 * shape.mlp_ratio * tokens * width**2 for tokens, width in rows),
        pooling=0,
        head=shape.stages[-1].width * shape.classes,
    )
