"""The architecture as a drawing, from the config alone: what flows, how wide, at what cost."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from vitreous import config as configs
from vitreous.config import ViTConfig
from vitreous.cost import parameters
from vitreous.cost.flops import block, forward
from vitreous.cost.parameters import count_parameters
from vitreous.cost.sizes import in_count
from vitreous.cost.tokens import convolutions, patch_tokens
from vitreous.figures.sketch import Sketch

__all__ = ["Diagram", "Part", "draw", "parts_of"]

ACTIVATIONS = {
    "gelu": "GELU",
    "gelu_tanh": "GELU (tanh)",
    "quick_gelu": "quick GELU",
    "swiglu": "SwiGLU",
}


class Part(NamedTuple):
    """What one part of a model holds and calculates, all its copies together."""

    name: str
    parameters: int
    flops: int
    """Of one image: 2 × multiply-adds, as in a plan."""

    @property
    def cost(self) -> str:
        """Both, in a few words."""
        if not self.parameters and not self.flops:
            return "nothing to learn"
        count = in_count(self.flops) if self.flops >= 100_000 else f"{self.flops:,}"
        work = f" · {count} FLOPs" if self.flops else ""
        return f"{self.parameters:,} parameters{work}"


@dataclass(frozen=True)
class Diagram:
    """An architecture, drawn; a notebook shows it."""

    config: ViTConfig
    parts: tuple[Part, ...]
    """Their parameters and FLOPs add up to the model's."""
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg


def draw(config: ViTConfig | str) -> Diagram:
    """The architecture of a config, or of a named preset, as an SVG; nothing is built.

    Every arrow bears the length of the sequence and the width of its tokens; every part its
    parameters and the FLOPs of one image (2 × multiply-adds). Raises ConfigError for an unknown
    name.

    >>> sum(part.parameters for part in draw("b16").parts)
    86567656
    """
    config = configs.preset(config) if isinstance(config, str) else config
    parts = parts_of(config)
    return Diagram(config, tuple(parts.values()), drawn(config, parts))


def parts_of(config: ViTConfig) -> dict[str, Part]:
    """Every part that the config has, in the order in which an image meets them."""
    work = forward(config)
    norms = config.depth * 2 * parameters.norm(config)
    representation = config.pre_logits * parameters.linear(config.width, config.width)
    scales = 0 if config.layer_scale is None else 2 * config.depth * config.width
    attention = config.depth * parameters.attention(
        config.width, config.inner, bias=config.qkv_bias
    )
    known = [
        Part("patch embedding", parameters.stem(config), 2 * work.patch_embedding),
        Part("prefix tokens", config.prefix_tokens * config.width, 0),
        Part("positions", parameters.positions(config), 0),
        Part("norms of the blocks", norms, 0),
        Part("attention", attention, 2 * (work.attention_projections + work.attention_products)),
        Part("MLP", config.depth * parameters.mlp(config), 2 * work.mlp),
        Part("LayerScale", scales, 0),
        Part("first norm", config.embed_norm * parameters.norm(config), 0),
        Part("last norm", config.final_norm * parameters.norm(config), 0),
        Part("pooling", parameters.pooling(config), 2 * work.pooling),
        Part("norm of the features", config.pooled_norm * parameters.norm(config), 0),
        Part("representation layer", representation, 2 * config.pre_logits * config.width**2),
        Part("projection", config.width * config.projection, 0),
    ]
    rest = count_parameters(config) - sum(part.parameters for part in known)
    scores = 2 * (work.head - config.pre_logits * config.width**2)
    return {part.name: part for part in [*known, Part("head", rest, scores)]}


def drawn(config: ViTConfig, parts: dict[str, Part]) -> str:
    """The whole drawing as SVG text."""
    (y, x), (py, px) = config.image_shape, config.patch_shape
    sketch = Sketch()
    sketch.heading(
        f"Vision Transformer, {y}×{x} pixels in patches of {py}×{px}",
        f"{count_parameters(config):,} parameters · {in_count(forward(config).flops)} FLOPs an "
        "image · arrows: tokens × width",
    )
    sketch.box("Image", f"{config.channels} × {y} × {x}", plain=True)
    embed(sketch, config, parts)
    if config.depth:
        blocks(sketch, config, parts)
    answer(sketch, config, parts)
    return sketch.svg(f"Architecture: {y}×{x} image, width {config.width}, depth {config.depth}")


def embed(sketch: Sketch, config: ViTConfig, parts: dict[str, Part]) -> None:
    """From pixels to the sequence that the first block reads."""
    patches, (rows, columns) = patch_tokens(config), config.grid
    if config.stem == "linear":
        numbers = config.channels * config.patch_shape[0] * config.patch_shape[1]
        sketch.arrow(f"{patches} × {numbers}")
        name = "Patch embedding: one Linear"
    else:
        sketch.arrow(f"{config.channels} × {config.image_shape[0]} × {config.image_shape[1]}")
        name = f"Patch embedding: {len(convolutions(config))} convolutions, one Linear"
    sketch.box(name, parts["patch embedding"].cost)
    sketch.arrow(f"{patches} × {config.width}", f"{rows} × {columns} patches")
    if config.prefix_tokens:
        sketch.box(" and ".join(prefix_names(config)) + " before them", parts["prefix tokens"].cost)
        sketch.arrow(f"{config.tokens} × {config.width}")
    rotary, none = config.positions.startswith("rotary"), config.positions == "none"
    if rotary:
        sketch.box("Rotary positions", "every block turns its queries and keys", plain=True)
    elif none:
        sketch.box("No positions", "the order of the patches is not known", plain=True)
    else:
        kind = config.positions.replace("_", ", ")
        sketch.box(f"Add positions: {kind}", parts["positions"].cost)
    if config.embed_norm:
        sketch.arrow(f"{config.tokens} × {config.width}")
        sketch.box("LayerNorm", parts["first norm"].cost)
    sketch.arrow(f"{config.tokens} × {config.width}", head=not config.depth)


def prefix_names(config: ViTConfig) -> Iterator[str]:
    """What stands before the patches."""
    if config.class_token:
        yield "Class token"
    if config.distillation_token:
        yield "distillation token"
    if config.register_tokens:
        yield f"{config.register_tokens} register{'s' if config.register_tokens > 1 else ''}"


def blocks(sketch: Sketch, config: ViTConfig, parts: dict[str, Part]) -> None:
    """One block, drawn once, with how often it is there."""
    flow, each = f"{config.tokens} × {config.width}", block(config, config.tokens)
    whole = Part("block", parameters.block(config), 2 * sum(each))
    looks = Part(
        "attention",
        parameters.attention(config.width, config.inner, bias=config.qkv_bias),
        2 * (each.projections + each.products),
    )
    thinks = Part("MLP", parameters.mlp(config), 2 * each.mlp)
    hidden = f"{config.width} → {config.mlp_width} → {config.width}"
    look = f"Attention: {config.heads} heads of {config.head_dim}"
    think = f"MLP, {ACTIVATIONS.get(config.activation, config.activation)}: {hidden}"
    every = sum(
        parts[name].parameters for name in ("norms of the blocks", "attention", "MLP", "LayerScale")
    )
    sketch.open_frame(f"block, × {config.depth}", f"each {whole.cost}", f"all {every:,} parameters")
    branch(sketch, config, flow, look, looks.cost)
    branch(sketch, config, flow, think, thinks.cost)
    sketch.close_frame()
    sketch.arrow(flow)


def branch(sketch: Sketch, config: ViTConfig, flow: str, name: str, cost: str) -> None:
    """One branch with the path that goes round it."""
    norm = f"{parameters.norm(config):,} parameters"
    sketch.leave()
    if config.norm == "pre":
        sketch.box("LayerNorm", norm)
        sketch.arrow(flow)
    sketch.box(name, cost)
    sketch.arrow(flow)
    if config.layer_scale is not None:
        sketch.box("LayerScale", f"{config.width:,} parameters")
        sketch.arrow(flow)
    sketch.join()
    sketch.arrow(flow, head=config.norm == "post")
    if config.norm == "post":
        sketch.box("LayerNorm", norm)
        sketch.arrow(flow, head=False)


def reads(config: ViTConfig) -> str:
    """What is read out of the tokens: one vector, or two."""
    if config.head_reads == "cls_and_mean":
        return f"1 × {2 * config.width}"
    return f"{2 if config.pooling == 'distilled' else 1} × {config.width}"


def answer(sketch: Sketch, config: ViTConfig, parts: dict[str, Part]) -> None:
    """From the last tokens to class scores, or to features where there are no classes."""
    if config.final_norm:
        sketch.box("LayerNorm", parts["last norm"].cost)
        sketch.arrow(f"{config.tokens} × {config.width}")
    pooled = {
        "cls": "Take the class token",
        "mean": f"Mean of the {patch_tokens(config)} patches",
        "attention": "Attention pooling: one query reads all",
        "map": "Attention pooling: one query reads the patches, then an MLP",
        "distilled": "Take class token and distillation token",
    }
    if config.head_reads == "cls_and_mean":
        pooled["cls"] = "Class token, and the mean of the patches"
    wide = reads(config)
    sketch.box(pooled[config.pooling], parts["pooling"].cost)
    sketch.arrow(wide)
    for name, part in (
        ("LayerNorm", "norm of the features"),
        ("Linear, tanh", "representation layer"),
    ):
        if parts[part].parameters:
            sketch.box(name, parts[part].cost)
            sketch.arrow(wide)
    if not config.classes:
        sketch.box("Features", f"{config.width} numbers", plain=True)
        return
    distilled = config.pooling == "distilled"
    name = "Two heads: one Linear each, averaged" if distilled else "Head: one Linear"
    sketch.box(name, parts["head"].cost)
    sketch.arrow(f"1 × {config.classes}")
    sketch.box("Class scores", f"{config.classes:,}", plain=True)
