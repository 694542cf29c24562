"""The names of timm in other hands: DINOv2, DINOv3 and MAE, with what each adds to them."""

from collections.abc import Callable
from dataclasses import replace

import torch
from einops import rearrange
from torch import Tensor

from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.interop.asked import IMAGENET, Asked, Format, Found
from vitreous.interop.pieces import Pieces, Tensors
from vitreous.interop.timm import plain, pooled_as, read_timm, with_gammas, with_heads

__all__ = ["DECODER", "FORMATS", "MASK", "turn_rows"]

MASK = "the token of masked patches, for training only"
DECODER = "the decoder, for training only"
PERIODS = "rope_embed.periods"


def read_dinov2(asked: Asked) -> Found:
    """DINOv2's own names; registers have no positions, and blocks may stand in chunks."""
    tensors = asked.tensors.renamed(
        (r"^blocks\.\d+\.(\d+\.)", r"blocks.\1"),
        ("^register_tokens$", "reg_token"),
        (r"\.mlp\.w12\.", ".mlp.fc1."),
        (r"\.mlp\.w3\.", ".mlp.fc2."),
    )
    resize = "bicubic_antialias" if "reg_token" in tensors else "bicubic_offset"
    config, pieces = plain(replace(asked, tensors=tensors), resize=resize, rows_before=[1])
    pieces.leave(["mask_token"], MASK)
    pieces.linear("encoder.norm", "norm")
    config = with_heads(config, tensors, pieces)
    return Found(config, pieces, IMAGENET)


def read_mae(asked: Asked) -> Found:
    """The encoder of MAE's pre-training; its table is fixed sines that were stored."""
    config, pieces = plain(asked, resize="bicubic")
    pieces.leave_all("decoder_", DECODER)
    pieces.leave(["mask_token"], MASK)
    pieces.linear("encoder.norm", "norm")
    return Found(config, pieces, IMAGENET)


def read_dinov3(asked: Asked) -> Found:
    """DINOv3, its own names or timm's: no table, but rotations within the unit square."""
    timms = "reg_token" in asked.tensors
    tensors = asked.tensors.renamed(
        ("^storage_tokens$", "reg_token"),
        (r"\.mlp\.fc1_g\.", ".mlp.w1."),
        (r"\.mlp\.fc1_x\.", ".mlp.w2."),
    )
    tensors = with_gammas(tensors)
    joined = {}
    if "blocks.0.mlp.w1.weight" in tensors:
        tensors, joined = gated(tensors)
    asked = replace(asked, tensors=tensors)
    arguments = asked.said("model_args", {})
    heads = heads_of_periods(tensors) or arguments.get("num_heads")
    said = arguments.get("img_size", 224)
    config, pieces = plain(asked, norm_eps=1e-5, said_heads=heads, said_grid=said)
    for ours, theirs in joined.items():
        pieces.join(ours, theirs)
    if PERIODS in tensors:
        pieces.take("pos_embed.periods", PERIODS)
    biased = "blocks.0.attn.qkv.bias" in tensors or "blocks.0.attn.q_bias" in tensors
    for i in range(config.depth):
        qkv = f"encoder.blocks.{i}.attn.qkv"
        bias_without_keys(pieces, f"blocks.{i}.attn", qkv)
        turn_rows(pieces, qkv, config)
    pieces.leave(["mask_token"], MASK)
    config = replace(config, qkv_bias=biased)
    if timms:
        usual = {"global_pool": "avg"}  # of timm's class for these models
        config = pooled_as(
            config, tensors, replace(asked, settings=usual | dict(asked.settings)), pieces
        )
    else:
        pieces.linear("encoder.norm", "norm")
        config = with_heads(config, tensors, pieces)
    notes = ["mean pooling, as timm builds it"] if timms and config.pooling == "mean" else []
    return Found(config, pieces, IMAGENET, notes)


def heads_of_periods(tensors: Tensors) -> int | None:
    """Heads by the number of periods, of which a head has four times as many numbers."""
    if PERIODS not in tensors:
        return None
    width = tensors.shape("patch_embed.proj.weight", 4)[0]
    quarter = tensors.shape(PERIODS, 1)[0]
    if width % (4 * quarter):
        raise CheckpointError(f"{PERIODS} has {quarter} numbers, and the width is {width}")
    return width // (4 * quarter)


def gated(tensors: Tensors) -> tuple[Tensors, dict[str, list[str]]]:
    """SwiGLU whose gate `w1` and value `w2` are apart: what is joined to one way in."""
    tensors = tensors.renamed((r"\.mlp\.w3\.", ".mlp.fc2."))
    joined = {}
    for i in range(tensors.depth("blocks.")):
        for part in ("weight", "bias"):
            apart = [f"blocks.{i}.mlp.{name}.{part}" for name in ("w1", "w2")]
            joined[f"encoder.blocks.{i}.mlp.fc1.{part}"] = apart
    return tensors, joined


def turn_rows(pieces: Pieces, ours: str, config: ViTConfig) -> None:
    """Queries and keys whose pairs lie in halves, as pairs of neighbours.

    Turning first and second half of a head is turning neighbours, once its rows are put in that
    order: in queries and keys alike, so that no product changes.
    """
    put = reorder(neighbours(config.heads, config.head_dim))
    for name in (f"{ours}.weight", f"{ours}.bias"):
        if name in pieces.pieces:
            pieces.then(name, put, "reordered", "pairs of a rotation become neighbours")


def bias_without_keys(pieces: Pieces, theirs: str, ours: str) -> None:
    """DINOv3's keys have no bias: a mask says so, or only queries and values have one."""
    mask, queries = f"{theirs}.qkv.bias_mask", f"{theirs}.q_bias"
    if mask in pieces.tensors:
        pieces.left[mask] = "zero for keys and one for others, which is known"
        pieces.then(f"{ours}.bias", keyless, "reordered", "keys have no bias")
    elif queries in pieces.tensors:
        pieces.make(f"{ours}.bias", (queries, f"{theirs}.v_bias"), stacked, "joined")


def stacked(q: Tensor, v: Tensor) -> Tensor:
    """The bias of queries and values, with zeros for keys between them."""
    return torch.cat([q, torch.zeros_like(q), v])


def neighbours(heads: int, head_dim: int) -> Tensor:
    """Where each number of queries or keys comes from: (half, pair) becomes (pair, half)."""
    rows = torch.arange(heads * head_dim)
    return rearrange(rows, "(h half pair) -> (h pair half)", h=heads, half=2)


def reorder(order: Tensor) -> Callable[[Tensor], Tensor]:
    """Queries and keys in a new order; values stay."""

    def put(stacked: Tensor) -> Tensor:
        q, k, v = stacked.chunk(3)
        return torch.cat([q[order], k[order], v])

    return put


def keyless(bias: Tensor) -> Tensor:
    """A stacked bias without the part of the keys, whatever stands there."""
    q, _, v = bias.chunk(3)
    return stacked(q, v)


def names_timm(tensors: Tensors) -> bool:
    """The names that all of them share."""
    return "patch_embed.proj.weight" in tensors and tensors.has("blocks.")


def names_mae(tensors: Tensors) -> bool:
    return names_timm(tensors) and tensors.has("decoder_")


def names_dinov3(tensors: Tensors) -> bool:
    own = "storage_tokens" in tensors or "rope_embed.periods" in tensors
    timms = "pos_embed" not in tensors and "blocks.0.gamma_1" in tensors
    return names_timm(tensors) and (own or timms)


def names_dinov2(tensors: Tensors) -> bool:
    own = ("register_tokens", "mask_token", "blocks.0.mlp.w12.weight")
    there = any(name in tensors for name in own) or tensors.has("blocks.0.0.")
    return names_timm(tensors) and there and not names_mae(tensors) and not names_dinov3(tensors)


def names_other(tensors: Tensors) -> bool:
    others = (names_mae, names_dinov2, names_dinov3)
    return names_timm(tensors) and not any(knows(tensors) for knows in others)


FORMATS = (
    Format("timm", names_other, read_timm),
    Format("DINOv2", names_dinov2, read_dinov2),
    Format("DINOv3", names_dinov3, read_dinov3),
    Format("MAE", names_mae, read_mae),
)
