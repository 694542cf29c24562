"""Google's npz files: vision_transformer (older names) and big_vision.

    embedding/kernel  cls  pos_embedding or Transformer/posembed_input/pos_embedding
    Transformer/encoderblock_N/{LayerNorm_0, MultiHeadDotProductAttention_1|0}
    Transformer/encoderblock_N/{LayerNorm_2|1, MlpBlock_3|0}
    Transformer/encoder_norm  pre_logits  head  MAPHead_0

Kernels are (in, out), heads apart; a convolution's is (row, column, in, out).
"""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from einops import rearrange
from torch import Tensor

from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.interop.asked import HALF, Asked, Format, Found, ratio
from vitreous.interop.clip import transposed
from vitreous.interop.hugging_face import SCALE, TEXT
from vitreous.interop.pieces import Pieces, Tensors, grid_of
from vitreous.interop.timm import padded

__all__ = ["FORMATS"]

OLDER = (
    (r"/LayerNorm_2/", "/LayerNorm_1/"),
    (r"/MultiHeadDotProductAttention_1/", "/MultiHeadDotProductAttention_0/"),
    (r"/MlpBlock_3/", "/MlpBlock_0/"),
    (r"^Transformer/posembed_input/", ""),
)
LOOKS, THINKS = "MultiHeadDotProductAttention_0", "MlpBlock_0"


def read(asked: Asked) -> Found:
    """Either repository's image model, blocks one by one or stacked on a first axis."""
    tensors = unstacked(asked.tensors.renamed(*prefixes(asked.tensors), *OLDER))
    pieces = Pieces(tensors)
    pieces.leave_all("txt/", TEXT)
    pieces.leave(["t", "b"], SCALE)
    for name in tensors:
        if re.match(r"(opt|state)/", name):
            pieces.left[name] = "state of the optimizer"
    py, px, channels, width = tensors.shape("embedding/kernel", 4)
    start = "Transformer/encoderblock_0"
    _, heads, head_dim = tensors.shape(f"{start}/{LOOKS}/query/kernel", 3)
    hidden = tensors.shape(f"{start}/{THINKS}/Dense_0/kernel", 2)[1]
    depth = blocks(tensors)
    for i in range(depth):
        block(pieces, f"encoder.blocks.{i}", f"Transformer/encoderblock_{i}")
    pieces.make("patch_embed.proj.weight", "embedding/kernel", flat_kernel, "transposed")
    pieces.take("patch_embed.proj.bias", "embedding/bias")
    norm(pieces, "encoder.norm", "Transformer/encoder_norm")
    config = ViTConfig(
        **positioned(asked, pieces, (py, px)),
        channels=channels,
        patch_size=(py, px),
        width=width,
        depth=depth,
        heads=asked.head_count(width, heads),
        attention_width=None if heads * head_dim == width else heads * head_dim,
        mlp_ratio=ratio(hidden, width),
        activation="gelu_tanh",
        position_resize="google",
        classes=0,
    )
    return Found(read_out(config, pieces), pieces, HALF)


def prefixes(tensors: Tensors) -> list[tuple[str, str]]:
    """What stands before the names of the image model."""
    found = [name for name in tensors if name.endswith("embedding/kernel")]
    if len(found) != 1:
        raise CheckpointError(f"one embedding/kernel was expected, and there are {len(found)}")
    start = found[0].removesuffix("embedding/kernel")
    whole = start.removesuffix("img/")
    return [(f"^{re.escape(start)}", ""), (f"^{re.escape(whole)}", "")] if start else []


def blocks(tensors: Tensors) -> int:
    """How many blocks there are."""
    return tensors.depth("Transformer/encoderblock_")


def unstacked(tensors: Tensors) -> Tensors:
    """Blocks that were stacked for a scan, one by one."""
    stacked = "Transformer/encoderblock/"
    if not tensors.has(stacked):
        return tensors
    apart, origins = {}, {}
    for name, tensor in tensors.items():
        parts = {name: tensor}
        if name.startswith(stacked):
            rest = name.removeprefix(stacked)
            if not tensor.ndim:
                raise CheckpointError(f"{name} has no axis of blocks")
            parts = {f"Transformer/encoderblock_{i}/{rest}": t for i, t in enumerate(tensor)}
        apart |= parts
        origins |= dict.fromkeys(parts, tensors.origin(name))
    return Tensors(apart, origins)


def positioned(asked: Asked, pieces: Pieces, patch: tuple[int, int]) -> dict[str, Any]:
    """Class token, table and the images' size; big_vision's class token has no row."""
    tensors = pieces.tensors
    one, rows, _ = tensors.shape("pos_embedding", 3)
    if one != 1:
        raise CheckpointError(f"pos_embedding holds {one} tables")
    cls, grid = "cls" in tensors, asked.grid(patch, None)
    older = "posembed_input" in tensors.origin("pos_embedding")
    grid = grid_of(rows - (cls and older), "pos_embedding", grid)
    if cls:
        pieces.take("cls_token", "cls")
    if cls and not older:
        note = "the class token has no row"
        pieces.make("pos_embed.table", "pos_embedding", padded, "reshaped", note)
    else:
        pieces.make("pos_embed.table", "pos_embedding", lambda table: table[0], "reshaped")
    size = (grid[0] * patch[0], grid[1] * patch[1])
    return {"image_size": size, "class_token": cls, "pooling": "cls" if cls else "mean"}


def norm(pieces: Pieces, ours: str, theirs: str) -> None:
    """A LayerNorm, whose weight is called scale."""
    pieces.take(f"{ours}.weight", f"{theirs}/scale")
    pieces.take(f"{ours}.bias", f"{theirs}/bias")


def dense(pieces: Pieces, ours: str, theirs: str) -> None:
    """A linear map."""
    pieces.make(f"{ours}.weight", f"{theirs}/kernel", transposed, "transposed")
    pieces.take(f"{ours}.bias", f"{theirs}/bias")


def attention(pieces: Pieces, ours: str, theirs: str) -> None:
    """Query, key and value as (in, heads, numbers); the way back as (heads, numbers, out)."""
    maps = [f"{theirs}/{name}" for name in ("query", "key", "value")]
    kernels, biases = ([f"{name}/{part}" for name in maps] for part in ("kernel", "bias"))
    pieces.make(f"{ours}.qkv.weight", kernels, stack(ways_in), "transposed")
    pieces.make(f"{ours}.qkv.bias", biases, stack(torch.flatten), "joined")
    pieces.make(f"{ours}.proj.weight", f"{theirs}/out/kernel", way_back, "transposed")
    pieces.take(f"{ours}.proj.bias", f"{theirs}/out/bias")


def ways_in(kernel: Tensor) -> Tensor:
    """(in, heads, numbers) as rows of one head after the other."""
    return rearrange(kernel, "d h e -> (h e) d")


def way_back(kernel: Tensor) -> Tensor:
    """(heads, numbers, out) as a matrix (out, in)."""
    return rearrange(kernel, "h e d -> d (h e)")


def stack(change: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Each changed, then one below the other."""
    return lambda *tensors: torch.cat([change(tensor) for tensor in tensors])


def flat_kernel(kernel: Tensor) -> Tensor:
    """A convolution's kernel as rows of (channel, row, column)."""
    return rearrange(kernel, "py px c d -> d (c py px)")


def block(pieces: Pieces, ours: str, theirs: str) -> None:
    """One block."""
    norm(pieces, f"{ours}.norm1", f"{theirs}/LayerNorm_0")
    attention(pieces, f"{ours}.attn", f"{theirs}/{LOOKS}")
    norm(pieces, f"{ours}.norm2", f"{theirs}/LayerNorm_1")
    dense(pieces, f"{ours}.mlp.fc1", f"{theirs}/{THINKS}/Dense_0")
    dense(pieces, f"{ours}.mlp.fc2", f"{theirs}/{THINKS}/Dense_1")


def read_out(config: ViTConfig, pieces: Pieces) -> ViTConfig:
    """Attention pooling, representation layer and head, where they are."""
    tensors = pieces.tensors
    if tensors.has("MAPHead_0/"):
        pieces.take("pool.query", "MAPHead_0/probe")
        attention(pieces, "pool.attn", f"MAPHead_0/{LOOKS}")
        norm(pieces, "pool.norm", "MAPHead_0/LayerNorm_0")
        dense(pieces, "pool.mlp.fc1", f"MAPHead_0/{THINKS}/Dense_0")
        dense(pieces, "pool.mlp.fc2", f"MAPHead_0/{THINKS}/Dense_1")
        config = replace(config, pooling="map")
    if tensors.has("pre_logits/"):
        dense(pieces, "pre_logits.0", "pre_logits")
        config = replace(config, pre_logits=True)
    if tensors.has("head/"):
        dense(pieces, "head", "head")
        config = replace(config, classes=tensors.shape("head/kernel", 2)[1])
    return config


FORMATS = (
    Format(
        "Google npz",
        lambda tensors: any(
            name == "embedding/kernel" or name.endswith("/embedding/kernel") for name in tensors
        ),
        read,
    ),
)
