"""How much a model calculates for one image, counted on paper.

The unit is the multiply-add: one multiplication and the addition that it belongs to, in matrix
products and convolutions. FLOPs are twice as many. Norms, softmax, activations and sums are left
out, as in the published figures.
"""

from dataclasses import asdict, dataclass
from typing import NamedTuple

from vitreous.config import ViTConfig
from vitreous.cost.tokens import convolutions, head_width, heads, made_tokens, patch_tokens

__all__ = ["MultiplyAdds", "backward", "forward"]


@dataclass(frozen=True, kw_only=True)
class MultiplyAdds:
    """Multiply-adds of one image, by part of the model."""

    patch_embedding: int
    """Pixels to tokens: one linear map, or the convolution stem."""
    attention_projections: int
    """Tokens to queries, keys and values, and back."""
    attention_products: int
    """Queries with keys, and weights with values: what grows with the square of the tokens."""
    mlp: int
    pooling: int
    """Attention pooling with its products and MLP; every other pooling has none."""
    head: int

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(asdict(self).values())

    @property
    def flops(self) -> int:
        """Multiplications and additions, each counted: 2 × multiply-adds."""
        return 2 * self.total

    @property
    def attention_share(self) -> float:
        """Attention products over everything; the projections are apart."""
        return self.attention_products / self.total


class Block(NamedTuple):
    """Multiply-adds of one block."""

    projections: int
    products: int
    mlp: int


def forward(config: ViTConfig, *, train: bool = False) -> MultiplyAdds:
    """Multiply-adds of one image through the whole model, as published figures count them.

    In training the last block makes only the tokens that are pooled. Equal to what torch counts on
    the plain path of attention.

    >>> from vitreous.config import preset
    >>> forward(preset("b16")).total, forward(preset("b16")).attention_products
    (17563828224, 715327488)
    """
    whole, last = block(config, config.tokens), block(config, made_tokens(config, train=train))
    before = config.depth - 1
    return MultiplyAdds(
        patch_embedding=patch_embedding(config),
        attention_projections=before * whole.projections + last.projections,
        attention_products=before * whole.products + last.products,
        mlp=before * whole.mlp + last.mlp,
        pooling=pooling(config),
        head=head(config),
    )


def backward(config: ViTConfig) -> MultiplyAdds:
    """Multiply-adds of one image's gradients in training.

    Every product has two: one for each factor. Pixels need no gradient, so that the first map has
    only that of its weights, unless a norm learns from it.
    """
    parts = asdict(forward(config, train=True))
    twice = {name: 2 * value for name, value in parts.items()}
    twice["patch_embedding"] -= (not config.patch_norm) * first_map(config)
    return MultiplyAdds(**twice)


def block(config: ViTConfig, made: int) -> Block:
    """One block that makes so many of its tokens; all the others are still read."""
    tokens, width = config.tokens, config.width
    return Block(
        projections=(2 * tokens + 2 * made) * width * config.inner,
        products=2 * made * tokens * config.inner,
        mlp=made * mlp(config),
    )


def patch_embedding(config: ViTConfig) -> int:
    """Pixels to tokens."""
    kernels = sum(9 * wide * narrow * places for wide, narrow, places in convolutions(config))
    proj = config.width if config.stem == "convolution" else pixels_per_patch(config)
    return kernels + patch_tokens(config) * proj * config.width


def first_map(config: ViTConfig) -> int:
    """The part of the patch embedding that reads pixels."""
    kernels = convolutions(config)
    if not kernels:
        return patch_embedding(config)
    return 9 * kernels[0].wide * kernels[0].narrow * kernels[0].places


def pixels_per_patch(config: ViTConfig) -> int:
    """Numbers in one patch, channels included."""
    rows, columns = config.patch_shape
    return config.channels * rows * columns


def pooling(config: ViTConfig) -> int:
    """One query over the tokens, where attention pools."""
    if config.pooling not in ("attention", "map"):
        return 0
    thinks = config.pooling == "map"
    tokens, width = config.tokens - thinks * config.prefix_tokens, config.width
    looks = (2 + 2 * tokens) * width * width + 2 * tokens * width
    return looks + thinks * mlp(config)


def mlp(config: ViTConfig) -> int:
    """One token through an MLP; SwiGLU has a gate beside the way in."""
    ways_in = 2 if config.activation == "swiglu" else 1
    return (ways_in + 1) * config.width * config.mlp_width


def head(config: ViTConfig) -> int:
    """Features to scores, representation layer included; the projection is asked for apart."""
    representation = config.pre_logits * config.width * config.width
    return representation + heads(config) * head_width(config) * config.classes
