"""vit-pytorch's ViT.

cls_token  pos_embedding  to_patch_embedding.{1 norm, 2 linear, 3 norm}  transformer.norm  mlp_head
transformer.layers.N.0.{norm, to_qkv, to_out.0}   transformer.layers.N.1.net.{0 norm, 1, 4}
"""

from collections.abc import Callable
from dataclasses import replace

from einops import rearrange
from torch import Tensor

from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.interop.asked import Asked, Format, Found, ratio
from vitreous.interop.pieces import Pieces, Tensors, grid_of

__all__ = ["FORMATS"]

EARLIER = (
    (r"^(transformer\.layers\.\d+\.[01])\.fn\.", r"\1."),
    (r"^(transformer\.layers\.\d+\.1)\.norm\.", r"\1.net.0."),
)


def read(asked: Asked) -> Found:
    """The plain ViT. Its patches are laid out (row, column, channel), and are put in our order."""
    tensors = asked.tensors.renamed(*EARLIER)
    pieces = Pieces(tensors)
    linear = "to_patch_embedding.2"
    if f"{linear}.weight" not in tensors:
        raise CheckpointError("to_patch_embedding.2.weight is missing: releases before 1.0 differ")
    width, pixels = tensors.shape(f"{linear}.weight", 2)
    channels, side = patch(pixels)
    for i in range(tensors.depth("transformer.layers.")):
        block(pieces, f"encoder.blocks.{i}", f"transformer.layers.{i}")
    inner = tensors.shape("transformer.layers.0.0.to_qkv.weight", 2)[0] // 3
    hidden = tensors.shape("transformer.layers.0.1.net.1.weight", 2)[0]
    rows = tensors["pos_embedding"].shape[-2]
    grid = grid_of(rows - 1, "pos_embedding", asked.grid((side, side), None))
    put = channels_first(channels, side)
    pieces.make("patch_embed.proj.weight", f"{linear}.weight", put, "reordered")
    pieces.take("patch_embed.proj.bias", f"{linear}.bias")
    for part in ("weight", "bias"):
        before = f"to_patch_embedding.1.{part}"
        pieces.make(f"patch_embed.norm1.{part}", before, put, "reordered")
        pieces.take(f"patch_embed.norm2.{part}", f"to_patch_embedding.3.{part}")
    pieces.make("cls_token", "cls_token", lambda token: token.reshape(1, 1, -1), "reshaped")
    pieces.make("pos_embed.table", "pos_embedding", two_axes, "reshaped")
    pieces.linear("encoder.norm", "transformer.norm")
    heads = asked.head_count(inner, inner // 64 if inner % 64 == 0 and not asked.heads else None)
    config = ViTConfig(
        image_size=(grid[0] * side, grid[1] * side),
        channels=channels,
        patch_size=side,
        patch_norm=True,
        width=width,
        depth=tensors.depth("transformer.layers."),
        heads=heads,
        attention_width=None if inner == width else inner,
        mlp_ratio=ratio(hidden, width),
        qkv_bias=False,
        norm_eps=1e-5,
        classes=0,
    )
    config = with_head(config, tensors, pieces)
    notes = ["class pooling, vit-pytorch's default, which no tensor shows"]
    return Found(config, pieces, None, notes)


def with_head(config: ViTConfig, tensors: Tensors, pieces: Pieces) -> ViTConfig:
    """The head; earlier releases have a norm before it."""
    name = "mlp_head"
    if "mlp_head.1.weight" in tensors:
        pieces.linear("fc_norm", "mlp_head.0")
        config, name = replace(config, pooled_norm=True), "mlp_head.1"
    if not tensors.has("mlp_head"):
        return config
    pieces.linear("head", name)
    return replace(config, classes=tensors.shape(f"{name}.weight", 2)[0])


def block(pieces: Pieces, ours: str, theirs: str) -> None:
    """One block."""
    pieces.linear(f"{ours}.norm1", f"{theirs}.0.norm")
    pieces.take(f"{ours}.attn.qkv.weight", f"{theirs}.0.to_qkv.weight")
    pieces.linear(f"{ours}.attn.proj", f"{theirs}.0.to_out.0")
    pieces.linear(f"{ours}.norm2", f"{theirs}.1.net.0")
    pieces.linear(f"{ours}.mlp.fc1", f"{theirs}.1.net.1")
    pieces.linear(f"{ours}.mlp.fc2", f"{theirs}.1.net.4")


def patch(pixels: int) -> tuple[int, int]:
    """Channels and side of a square patch of so many numbers: three channels, or one.

    A number that is a square as well as three times one cannot be told apart, which does not occur.
    """
    for channels in (3, 1):
        side = round((pixels / channels) ** 0.5)
        if side * side * channels == pixels:
            return channels, side
    raise CheckpointError(f"patches of {pixels} numbers are no square of one or three channels")


def channels_first(channels: int, side: int) -> Callable[[Tensor], Tensor]:
    """A last axis of (row, column, channel) as (channel, row, column)."""

    def put(tensor: Tensor) -> Tensor:
        return rearrange(tensor, "... (py px c) -> ... (c py px)", c=channels, py=side)

    return put


def two_axes(table: Tensor) -> Tensor:
    """A table that may have an axis for the batch before it."""
    return table.reshape(table.shape[-2:])


FORMATS = (
    Format(
        "vit-pytorch",
        lambda tensors: tensors.has("to_patch_embedding.") and tensors.has("transformer.layers.0."),
        read,
    ),
)
