"""torchvision's Vision Transformer.

class_token  conv_proj  encoder.pos_embedding  encoder.ln  heads.head
encoder.layers.encoder_layer_N.{ln_1, self_attention, ln_2, mlp.0, mlp.3}
"""

from dataclasses import replace

from torch import Tensor

from vitreous.config import ViTConfig
from vitreous.interop.asked import IMAGENET, Asked, Format, Found, ratio
from vitreous.interop.pieces import Pieces, Tensors, grid_of

__all__ = ["FORMATS"]


def read(asked: Asked) -> Found:
    """The whole model; old files name the MLP's maps `linear_1` and `linear_2`."""
    layers = r"^encoder\.layers\.encoder_layer_(\d+)\."
    tensors = asked.tensors.renamed(
        (layers, r"layer.\1."),
        (r"\.mlp\.linear_1\.", ".mlp.0."),
        (r"\.mlp\.linear_2\.", ".mlp.3."),
    )
    pieces = Pieces(tensors)
    width, channels, py, px = tensors.shape("conv_proj.weight", 4)
    hidden = tensors.shape("layer.0.mlp.0.weight", 2)[0]
    depth = tensors.depth("layer.")
    for i in range(depth):
        block(pieces, f"encoder.blocks.{i}", f"layer.{i}")
    rows = tensors.shape("encoder.pos_embedding", 3)[1]
    grid = grid_of(rows - 1, "encoder.pos_embedding", asked.grid((py, px), None))
    pieces.patches("conv_proj")
    pieces.take("cls_token", "class_token")
    pieces.make("pos_embed.table", "encoder.pos_embedding", first, "reshaped")
    pieces.linear("encoder.norm", "encoder.ln")
    config = ViTConfig(
        image_size=(grid[0] * py, grid[1] * px),
        channels=channels,
        patch_size=(py, px),
        width=width,
        depth=depth,
        heads=asked.head_count(width),
        mlp_ratio=ratio(hidden, width),
        position_resize="bicubic_corners",
        classes=0,
    )
    return Found(with_head(config, tensors, pieces), pieces, IMAGENET)


def with_head(config: ViTConfig, tensors: Tensors, pieces: Pieces) -> ViTConfig:
    """The head, and a representation layer where there is one."""
    if "heads.pre_logits.weight" in tensors:
        pieces.linear("pre_logits.0", "heads.pre_logits")
        config = replace(config, pre_logits=True)
    if not tensors.has("heads.head."):
        return config
    pieces.linear("head", "heads.head")
    return replace(config, classes=tensors.shape("heads.head.weight", 2)[0])


def block(pieces: Pieces, ours: str, theirs: str) -> None:
    """One block."""
    pieces.linear(f"{ours}.norm1", f"{theirs}.ln_1")
    for part in ("weight", "bias"):
        pieces.take(f"{ours}.attn.qkv.{part}", f"{theirs}.self_attention.in_proj_{part}")
    pieces.linear(f"{ours}.attn.proj", f"{theirs}.self_attention.out_proj")
    pieces.linear(f"{ours}.norm2", f"{theirs}.ln_2")
    pieces.linear(f"{ours}.mlp.fc1", f"{theirs}.mlp.0")
    pieces.linear(f"{ours}.mlp.fc2", f"{theirs}.mlp.3")


def first(table: Tensor) -> Tensor:
    """The only table of a batch of one."""
    return table.squeeze(0)


FORMATS = (Format("torchvision", lambda tensors: "conv_proj.weight" in tensors, read),)
