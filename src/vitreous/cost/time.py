"""How long a training step and an answer will take on a machine that was measured."""

from collections.abc import Iterator
from typing import NamedTuple

from vitreous.config import Recipe, ViTConfig
from vitreous.cost.calibration import HEAD_DIMS, Calibration, Number
from vitreous.cost.flops import first_map, pixels_per_patch
from vitreous.cost.parameters import count_parameters, hidden_matrices
from vitreous.cost.tokens import convolutions, made_tokens, patch_tokens

__all__ = ["Times", "predict"]


class Work(NamedTuple):
    """So many units of one kind of work, of one size."""

    kind: str
    size: Number
    units: Number


class Times(NamedTuple):
    """Seconds, on the machine that was measured."""

    step: Number
    """One optimizer step of a batch, from images to changed weights; reading data is left out."""
    image: Number
    """One image's share of a forward pass of a batch, in float32."""


def predict(config: ViTConfig, recipe: Recipe, calibration: Calibration) -> Times:
    """Seconds of a training step and of an image, as the sum of all their parts."""
    batch, precision = recipe.batch_size, recipe.precision
    there = [*layers(config, train=True), *attentions(config, train=True)]
    ways = ("forward", "backward")
    images = sum(spent(there, way, precision, calibration) for way in ways)
    images -= pixel_gradients(config, precision, calibration)
    fixed = sum(overhead(config, way, precision, calibration) for way in ways)
    answers = spent(layers(config, train=False), "forward", "float32", calibration)
    answers += spent(attentions(config, train=False), "inference", "float32", calibration)
    return Times(
        step=batch * images + fixed + optimizer(config, recipe, calibration),
        image=answers + overhead(config, "forward", "float32", calibration) / batch,
    )


def spent(works: Iterator[Work] | list[Work], way: str, precision: str, by: Calibration) -> Number:
    """Seconds of these works, one way."""
    return sum(units * by.seconds(f"{kind}.{way}.{precision}", size) for kind, size, units in works)


def layers(config: ViTConfig, *, train: bool) -> Iterator[Work]:
    """Everything but attention itself, for one image."""
    width, hidden, tokens = config.width, config.mlp_width, config.tokens
    made = made_tokens(config, train=train)
    whole = (config.depth - 1) * tokens
    yield from stem(config)
    yield Work("linear", width, (whole * 4 + 2 * tokens + 2 * made) * width * width)
    ways_in = 2 if config.activation == "swiglu" else 1
    yield Work("linear", min(width, hidden), (whole + made) * (ways_in + 1) * width * hidden)
    yield Work(config.activation, 1, (whole + made) * hidden)
    norms = 2 * whole + made + (made if config.norm == "post" else tokens)
    yield Work("norm", 1, (norms + config.final_norm * made) * width)
    yield Work("linear", min(width, config.classes), width * config.classes)
    if config.pooling == "attention":
        yield Work("linear", width, (2 * tokens + 2) * width * width)


def stem(config: ViTConfig) -> Iterator[Work]:
    """Pixels to tokens."""
    for layer in convolutions(config):
        yield Work("convolution", layer.wide, 9 * layer.wide * layer.narrow * layer.places)
        yield Work("gelu", 1, layer.narrow * layer.places)
    read = config.width if config.stem == "convolution" else pixels_per_patch(config)
    yield Work("linear", min(read, config.width), patch_tokens(config) * read * config.width)


def attentions(config: ViTConfig, *, train: bool) -> Iterator[Work]:
    """Queries, keys and values to what was read, for one image; a unit is one weight.

    Between the head widths that were measured the cost is shared out by their logarithms.
    """
    tokens, made = config.tokens, made_tokens(config, train=train)
    rows = (config.depth - 1) * tokens + made + (config.pooling == "attention")
    weights = rows * tokens * config.heads
    narrow, wide = HEAD_DIMS
    share = min(max((config.head_dim - narrow) / (wide - narrow), 0.0), 1.0)
    yield Work(f"attention{narrow}", tokens, (1 - share) * weights)
    yield Work(f"attention{wide}", tokens, share * weights)


def pixel_gradients(config: ViTConfig, precision: str, by: Calibration) -> Number:
    """Seconds of the gradient of the pixels, which nobody asks for: half of the first map's."""
    layers = convolutions(config)
    kind, size = ("convolution", layers[0].wide) if layers else ("linear", 1)
    size = size if layers else min(pixels_per_patch(config), config.width)
    return 0.5 * first_map(config) * by.seconds(f"{kind}.backward.{precision}", size)


def overhead(config: ViTConfig, way: str, precision: str, by: Calibration) -> Number:
    """Seconds of calling every operation, however small its tensors are."""
    return config.depth * by.seconds(f"block.{way}.{precision}", 1)


def optimizer(config: ViTConfig, recipe: Recipe, by: Calibration) -> Number:
    """Seconds of handing gradients over, clipping them and moving the weights."""
    parameters = count_parameters(config)
    seconds = parameters * by.seconds(f"handling.{recipe.precision}", 1)
    if recipe.optimizer == "adamw":
        return seconds + parameters * by.seconds("adamw", 1)
    rest = parameters - hidden_matrices(config)
    return seconds + rest * by.seconds("adamw", 1) + config.depth * orthogonalised(config, by)


def orthogonalised(config: ViTConfig, by: Calibration) -> Number:
    """Seconds of Muon on the matrices of one block."""
    width, hidden = config.width, config.mlp_width
    ways_in = 2 if config.activation == "swiglu" else 1
    shapes = ((width, 3 * width), (width, width), (width, ways_in * hidden), (hidden, width))
    return sum(newton_schulz(*shape) * by.seconds("muon", min(shape)) for shape in shapes)


def newton_schulz(one: int, other: int) -> int:
    """Multiply-adds of five rounds of Newton and Schulz on a matrix (Muon's default)."""
    short, long = sorted((one, other))
    return 5 * (2 * short * short * long + short**3)
