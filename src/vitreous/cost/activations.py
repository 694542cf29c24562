"""What one image leaves in memory for the backward pass, and what it needs to pass without one.

A tensor that two operations keep is counted once, a view not at all; a test ties `saved` to what
autograd really saves.
"""

from dataclasses import replace
from typing import NamedTuple

from vitreous.config import Recipe, ViTConfig
from vitreous.cost.tokens import convolutions, made_tokens, patch_tokens

__all__ = ["BYTES", "Saved", "live", "saved", "takes_plain_path"]

BYTES = {"float32": 4, "bfloat16": 2}
"""Of one number."""
ROTATIONS = ("rotary", "rotary_unit")
"""Positions that turn queries and keys."""
HIDDEN = {"gelu": 2, "gelu_tanh": 2, "quick_gelu": 3, "swiglu": 4}
"""Layers as wide as the MLP's hidden one that each activation keeps."""


class Saved(NamedTuple):
    """Bytes of one image, from pixels to loss, by part of the model."""

    embedding: int
    attention: int
    mlp: int
    norms: int
    head: int

    @property
    def total(self) -> int:
        """All parts together."""
        return sum(self)


def saved(config: ViTConfig, recipe: Recipe) -> Saved:
    """Bytes that a training step keeps of one image for its backward pass, the image included.

    The last block makes only the tokens that are pooled, and keeps as much less.
    """
    size, made = BYTES[recipe.precision], made_tokens(config, train=True)
    plain, whole, before = takes_plain_path(config, recipe), config.tokens, config.depth - 1
    # One truth value for each branch of a block but the first, which drops none.
    branches = 2 * max(before, 0) * (config.drop_path > 0)
    return Saved(
        embedding=size * embedding(config),
        attention=before * attention(config, whole, size, plain=plain)
        + attention(config, made, size, plain=plain)
        + branches,
        mlp=size * (before * mlp(config, whole) + mlp(config, made)),
        norms=size * norms(config, made),
        head=pooling(config, size, plain=recipe.precision == "bfloat16")
        + size * config.width
        + 4 * config.classes,
    )


def takes_plain_path(config: ViTConfig, recipe: Recipe) -> bool:
    """Whether training on a CPU stores attention weights.

    `nn.attention.choose_path` says so in bfloat16, and torch's fused kernel steps aside where
    weights are to be dropped.
    """
    return recipe.precision == "bfloat16" or config.attention_dropout > 0


def embedding(config: ViTConfig) -> int:
    """Pixels, then patches or each convolution's map before and after its activation."""
    y, x = config.image_shape
    pixels = config.channels * y * x
    maps = 2 * sum(layer.narrow * layer.places for layer in convolutions(config))
    mask = config.tokens * config.width if config.dropout else 0
    return pixels + (maps or pixels) + mask


def attention(config: ViTConfig, made: int, size: int, *, plain: bool) -> int:
    """Bytes of what is projected, attended and projected back, where so many tokens are made."""
    rows = config.tokens + branch_end(config) * made
    weights = 3 if config.attention_dropout else 1  # before, mask, and after
    return size * rows * config.width + attend(config, made, size, plain and weights)


def attend(config: ViTConfig, made: int, size: int, weights: int) -> int:
    """Bytes of queries, keys, values and what was read; the plain path keeps the weights."""
    tokens, heads = config.tokens, config.heads
    rows = 2 * tokens + 2 * made
    if weights:
        return size * (rows * config.inner + weights * heads * made * tokens)
    if config.positions in ROTATIONS:
        # Turned copies; values hold the matrix that they are cut from, and several rows read in
        # this order are copied to be merged.
        rows += tokens if made < tokens else 3 * tokens
    return size * rows * config.inner + 4 * heads * made


def branch_end(config: ViTConfig) -> int:
    """Rows that dropout and LayerScale keep at the end of a branch."""
    return (config.dropout > 0) + (config.layer_scale is not None)


def mlp(config: ViTConfig, made: int) -> int:
    """Numbers of an MLP over so many tokens."""
    hidden = HIDDEN[config.activation] + (config.dropout > 0)
    return made * ((1 + branch_end(config)) * config.width + hidden * config.mlp_width)


def norms(config: ViTConfig, made: int) -> int:
    """Numbers of every LayerNorm: what it reads, with mean and deviation of each token."""
    first = made if config.norm == "post" else config.tokens
    rows = (config.depth - 1) * 2 * config.tokens + first + made + config.final_norm * made
    rows += config.embed_norm * config.tokens + config.pooled_norm
    return rows * (config.width + 2)


def pooling(config: ViTConfig, size: int, *, plain: bool) -> int:
    """Bytes of attention pooling; other poolings keep nothing. It never drops weights."""
    if config.pooling not in ("attention", "map"):
        return 0
    bare = replace(config, positions="none", attention_width=None)
    looks = size * config.tokens * config.width + attend(bare, 1, size, int(plain))
    thinks = mlp(replace(config, layer_scale=None), 1) + config.width + 2
    return looks + (config.pooling == "map") * size * thinks


def live(config: ViTConfig) -> int:
    """Numbers that one image needs at once to pass through in eval mode, nothing being kept.

    Callers hold what they handed down: the embedded tokens, what came into the block, the sum so
    far and what the branch reads.
    """
    y, x = config.image_shape
    widest = max(in_stem(config), in_attention(config), in_mlp(config))
    return config.channels * y * x + widest


def in_stem(config: ViTConfig) -> int:
    """Numbers while pixels become tokens."""
    (y, x), maps = config.image_shape, 0
    read = config.channels * y * x
    for layer in convolutions(config):
        made = layer.narrow * layer.places
        maps, read = max(maps, read + 2 * made), made
    return maps or read + patch_tokens(config) * config.width


def in_attention(config: ViTConfig) -> int:
    """Numbers while a block looks around: q, k and v, and what is read before and after `proj`."""
    wide = 4 + 2 * (config.positions in ROTATIONS)
    return config.tokens * (wide * config.inner + held(config) * config.width)


def in_mlp(config: ViTConfig) -> int:
    """Numbers while a block thinks."""
    hidden = HIDDEN[config.activation] * config.mlp_width
    return config.tokens * (held(config) * config.width + hidden)


def held(config: ViTConfig) -> int:
    """Tensors of the tokens' size that are held around an MLP."""
    return 2 + (config.depth > 1) + (config.norm == "pre")
