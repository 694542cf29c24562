"""How many numbers a model learns, counted on paper."""

from vitreous.config import ViTConfig
from vitreous.cost.tokens import convolutions, head_width, heads

__all__ = ["count_parameters", "hidden_matrices"]


def count_parameters(config: ViTConfig) -> int:
    """Parameters of the classifier of a config; equal to those of the built model.

    >>> from vitreous.config import preset
    >>> count_parameters(preset("b16"))
    86567656
    """
    return (
        stem(config)
        + config.prefix_tokens * config.width
        + positions(config)
        + config.depth * block(config)
        + (config.embed_norm + config.final_norm + config.pooled_norm) * norm(config)
        + pooling(config)
        + config.pre_logits * linear(config.width, config.width)
        + heads(config) * linear(head_width(config), config.classes)
        + linear(config.width, config.projection, bias=False)
    )


def hidden_matrices(config: ViTConfig) -> int:
    """Parameters of the matrices of the blocks, which Muon moves where a recipe asks for it."""
    ways_in = 2 if config.activation == "swiglu" else 1
    return config.depth * config.width * (4 * config.inner + (ways_in + 1) * config.mlp_width)


def linear(wide: int, narrow: int, *, bias: bool = True) -> int:
    """A matrix and its bias."""
    return wide * narrow + bias * narrow


def norm(config: ViTConfig) -> int:
    """Weight and bias of a LayerNorm."""
    return 2 * config.width


def stem(config: ViTConfig) -> int:
    """Pixels to tokens."""
    rows, columns = config.patch_shape
    if config.stem == "linear":
        pixels = config.channels * rows * columns
        norms = config.patch_norm * 2 * (pixels + config.width)
        return linear(pixels, config.width, bias=config.patch_bias) + norms
    kernels = sum(linear(9 * layer.wide, layer.narrow) for layer in convolutions(config))
    return kernels + linear(config.width, config.width)


def positions(config: ViTConfig) -> int:
    """Rows of a learned table; everything else is computed."""
    rows, columns = config.grid
    learned = {"learned": config.class_token + rows * columns, "learned_axes": rows + columns}
    return learned.get(config.positions, 0) * config.width


def block(config: ViTConfig) -> int:
    """Two norms, attention, the MLP, and LayerScale where there is one."""
    scales = 0 if config.layer_scale is None else 2 * config.width
    looks = attention(config.width, config.inner, bias=config.qkv_bias)
    return 2 * norm(config) + looks + mlp(config) + scales


def attention(width: int, inner: int, *, bias: bool) -> int:
    """Queries, keys and values, and the projection back."""
    return linear(width, 3 * inner, bias=bias) + linear(inner, width)


def mlp(config: ViTConfig) -> int:
    """In and out; SwiGLU has a gate beside the way in."""
    ways_in = 2 if config.activation == "swiglu" else 1
    return linear(config.width, ways_in * config.mlp_width) + linear(config.mlp_width, config.width)


def pooling(config: ViTConfig) -> int:
    """Attention pooling has a query and an attention of its own, and `map` an MLP behind it."""
    if config.pooling not in ("attention", "map"):
        return 0
    looks = config.width + attention(config.width, config.width, bias=True)
    return looks + (config.pooling == "map") * (norm(config) + mlp(config))
