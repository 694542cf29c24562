"""timm's names, which DeiT and DINO share.

cls_token  dist_token  reg_token  pos_embed  patch_embed.proj  norm_pre
blocks.N.{norm1, attn.qkv, attn.proj, ls1, norm2, mlp.fc1, mlp.fc2, ls2}
norm  fc_norm  head  head_dist  attn_pool
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from vitreous.config import Activation, Pair, Resize, ViTConfig
from vitreous.errors import CheckpointError
from vitreous.interop.asked import (
    CLIP_COLOURS,
    HALF,
    Asked,
    Colours,
    Found,
    ratio,
)
from vitreous.interop.pieces import Pieces, Tensors, grid_of

__all__ = [
    "activation",
    "plain",
    "plus_rows",
    "pooled_as",
    "read_timm",
    "with_gammas",
    "with_heads",
    "without",
]

NAMED: Mapping[str, Activation] = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
}
TANH = "patch32_siglip|so400m_patch16_siglip|giantopt|large_patch16_siglip_(gap_)?512"
"""Which of timm's SigLIP towers are built with the tanh form of GELU; the others have erf's."""
POOLS = {"token": "cls", "avg": "mean", "map": "map"}


def read_timm(asked: Asked) -> Found:
    """timm's plain Vision Transformer, whatever options it was built with."""
    arguments = asked.said("model_args", {})
    named = str(asked.said("architecture", ""))
    tensors = with_gammas(asked.tensors)
    config, pieces = plain(
        replace(asked, tensors=tensors),
        said_grid=arguments.get("img_size"),
        norm_eps=1e-5 if "norm_pre.weight" in tensors else 1e-6,
        activation=activation(arguments, named),
        said_heads=arguments.get("num_heads"),
        rows_before=possible_rows(tensors, arguments),
    )
    config = pooled_as(config, tensors, asked, pieces)
    check_arguments(config, arguments)
    given = asked.said("pretrained_cfg", {})
    colours = Colours(tuple(given["mean"]), tuple(given["std"])) if "mean" in given else None
    notes = [] if "architecture" in asked.settings else [unsaid(config)]
    default = CLIP_COLOURS if config.embed_norm else HALF
    return Found(config, pieces, colours or default, notes)


def possible_rows(tensors: Tensors, arguments: Mapping[str, Any]) -> list[int] | None:
    """How many rows may stand before the patches': as many as tokens do, or none.

    None are usual with registers and in DeiT-III, which has LayerScale; elsewhere timm says so.
    """
    registers = tensors.shape("reg_token", 3)[1] if "reg_token" in tensors else 0
    all_of_them = ("cls_token" in tensors) + ("dist_token" in tensors) + registers
    said = arguments.get("no_embed_class")
    if said is not None:
        return [0 if said else all_of_them]
    usual = registers or "blocks.0.ls1.gamma" in tensors
    return sorted({0, all_of_them}) if usual else [all_of_them]


def unsaid(config: ViTConfig) -> str:
    """What a bare file leaves to its format's convention."""
    return (
        f"no config.json: eps {config.norm_eps}, {config.activation}, {config.pooling} pooling and "
        f"{config.heads} heads are the format's usual ones"
    )


def activation(arguments: Mapping[str, Any], named: str) -> Activation:
    """timm's activation: an argument, or a part of the architecture's name."""
    given = arguments.get("act_layer")
    if given is not None:
        if given not in NAMED:
            raise CheckpointError(f"act_layer={given!r} is not known; {', '.join(NAMED)} are")
        return NAMED[given]
    if "quickgelu" in named:
        return "quick_gelu"
    return "gelu_tanh" if re.search(TANH, named) else "gelu"


def plain(
    asked: Asked,
    *,
    said_grid: Any = None,
    said_heads: int | None = None,
    norm_eps: float = 1e-6,
    activation: Activation = "gelu",
    resize: Resize = "bicubic_antialias",
    rows_before: Sequence[int] | None = None,
) -> tuple[ViTConfig, Pieces]:
    """Everything between pixels and last block; poolings and heads are left to the caller."""
    tensors = asked.tensors
    pieces = Pieces(tensors)
    width, channels, py, px = tensors.shape("patch_embed.proj.weight", 4)
    bias = "patch_embed.proj.bias" in tensors
    pieces.patches("patch_embed.proj", bias=bias)
    registers = tensors.shape("reg_token", 3)[1] if "reg_token" in tensors else 0
    cls, dist = "cls_token" in tensors, "dist_token" in tensors
    prefix = Prefix(cls, dist, registers)
    possible = [prefix.total] if rows_before is None else rows_before
    grid, positions = place(asked, pieces, prefix, asked.grid((py, px), said_grid), possible)
    pieces_of_blocks(pieces)
    hidden, activation = hidden_layer(tensors, activation)
    if "norm_pre.weight" in tensors:
        pieces.linear("norm_pre", "norm_pre")
    config = ViTConfig(
        image_size=(grid[0] * py, grid[1] * px),
        channels=channels,
        patch_size=(py, px),
        patch_bias=bias,
        width=width,
        depth=tensors.depth("blocks."),
        heads=asked.head_count(width, said_heads),
        mlp_ratio=ratio(hidden, width),
        activation=activation,
        qkv_bias="blocks.0.attn.qkv.bias" in tensors,
        norm_eps=norm_eps,
        embed_norm="norm_pre.weight" in tensors,
        positions=positions,
        position_resize=resize,
        class_token=cls,
        distillation_token=dist,
        register_tokens=registers,
        pooling="cls" if cls else "mean",
        layer_scale=1.0 if "blocks.0.ls1.gamma" in tensors else None,
        classes=0,
    )
    return config, pieces


class Prefix(NamedTuple):
    """The tokens before the patches."""

    cls: bool
    dist: bool
    registers: int

    @property
    def others(self) -> dict[str, int]:
        """How many there are of each token but the class token."""
        counts = {"dist_token": int(self.dist), "reg_token": self.registers}
        return {name: count for name, count in counts.items() if count}

    @property
    def total(self) -> int:
        """How many there are."""
        return self.cls + self.dist + self.registers


def place(
    asked: Asked, pieces: Pieces, prefix: Prefix, grid: Pair | None, possible: Sequence[int]
) -> tuple[Pair, Literal["learned", "rotary_unit"]]:
    """Tokens and their positions; rows of prefix tokens but the class token's are folded."""
    for name in ["cls_token"] * prefix.cls + list(prefix.others):
        pieces.take(name, name)
    if "pos_embed" not in asked.tensors:
        if grid is None:
            raise CheckpointError("no position table says how large images are: say source_size")
        return grid, "rotary_unit"
    one, rows, _ = asked.tensors.shape("pos_embed", 3)
    if one != 1:
        raise CheckpointError(f"pos_embed holds {one} tables")
    before, grid = rows_and_grid(rows, grid, possible)
    if before < prefix.cls:
        pieces.make(
            "pos_embed.table", "pos_embed", padded, "reshaped", "the class token has no row"
        )
    else:
        cut = without(int(prefix.cls), before)
        pieces.make("pos_embed.table", "pos_embed", cut, "reshaped")
    if before > prefix.cls:
        fold_rows(pieces, prefix)
    return grid, "learned"


def fold_rows(pieces: Pieces, prefix: Prefix) -> None:
    """Add to each learned token its own row of the table: the sum is all that is ever used."""
    first = int(prefix.cls)
    for name, count in prefix.others.items():
        pieces.make(name, (name, "pos_embed"), plus_rows(first, count), "folded", "token + row")
        first += count


def rows_and_grid(rows: int, grid: Pair | None, possible: Sequence[int]) -> tuple[int, Pair]:
    """How many rows stand before those of the grid; one answer must fit, and only one."""
    fitting = {}
    for before in possible:
        with suppress(CheckpointError):
            fitting[before] = grid_of(rows - before, "pos_embed", grid)
    if len(fitting) == 1:
        return next(iter(fitting.items()))
    asks = f"a grid of {grid[0]}×{grid[1]}" if grid else "a square grid"
    raise CheckpointError(
        f"pos_embed has {rows} rows; {asks} with {' or '.join(map(str, possible))} rows before it "
        f"fits in {'more than one way' if fitting else 'no way'}: say source_size, the pixels of "
        "the images it was made for"
    )


def padded(table: Tensor) -> Tensor:
    """The table with a row of zeros before it."""
    return F.pad(table[0], (0, 0, 1, 0))


def without(keep: int, before: int) -> Callable[[Tensor], Tensor]:
    """The table without the rows from `keep` to `before`."""
    return lambda table: torch.cat([table[0, :keep], table[0, before:]])


def plus_rows(first: int, count: int) -> Callable[[Tensor, Tensor], Tensor]:
    """A token with its rows of the table added."""
    return lambda token, table: token + table[:, first : first + count]


def pieces_of_blocks(pieces: Pieces) -> None:
    """Every block, under timm's names."""
    tensors = pieces.tensors
    for i in range(tensors.depth("blocks.")):
        theirs, ours = f"blocks.{i}", f"encoder.blocks.{i}"
        for name in ("norm1", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"):
            pieces.linear(f"{ours}.{name}", f"{theirs}.{name}")
        bias = "blocks.0.attn.qkv.bias" in tensors
        pieces.linear(f"{ours}.attn.qkv", f"{theirs}.attn.qkv", bias=bias)
        for name in ("ls1.gamma", "ls2.gamma"):
            if f"blocks.0.{name}" in tensors:
                pieces.take(f"{ours}.{name}", f"{theirs}.{name}")


def hidden_layer(tensors: Tensors, activation: Activation) -> tuple[int, Activation]:
    """Width of the hidden layer, and whether it is gated: then the way in is twice as wide."""
    hidden = tensors.shape("blocks.0.mlp.fc2.weight", 2)[1]
    name = "blocks.0.mlp.fc1.weight"
    gated = name not in tensors or len(tensors[name]) == 2 * hidden
    return hidden, "swiglu" if gated else activation


def pooled_as(config: ViTConfig, tensors: Tensors, asked: Asked, pieces: Pieces) -> ViTConfig:
    """Pooling, the norms about it, and heads, as timm's options and tensors say."""
    said = asked.said("global_pool", asked.said("model_args", {}).get("global_pool"))
    after = "fc_norm.weight" in tensors
    pooling = config.pooling
    if "attn_pool.latent" in tensors:
        pooling = "map"
        pieces_of_map(pieces)
    elif config.distillation_token:
        pooling = "distilled"
    elif said in POOLS or after:
        pooling = POOLS.get(said, "mean")
    if pooling == "cls" and not config.class_token:
        raise CheckpointError("global_pool='token' and there is no cls_token")
    name, target = ("fc_norm", "fc_norm") if after else ("norm", "encoder.norm")
    pieces.linear(target, name)
    config = replace(config, pooling=pooling, final_norm=not after, pooled_norm=after)
    return with_heads(config, tensors, pieces, asked.said("num_classes"))


def with_heads(
    config: ViTConfig, tensors: Tensors, pieces: Pieces, said: int | None = None
) -> ViTConfig:
    """The head of the file, or of both tokens; none where there is none."""
    if "head.weight" not in tensors:
        if said:
            raise CheckpointError(f"head.weight is missing: config.json says {said} classes")
        if "head.bias" in tensors:
            raise CheckpointError("head.weight is missing: there is a head.bias")
        return config
    classes = tensors.shape("head.weight", 2)[0]
    if said is not None and said != classes:
        raise CheckpointError(f"head.weight has {classes} rows; config.json says {said} classes")
    pieces.linear("head", "head")
    if config.pooling == "distilled":
        pieces.linear("head_dist", "head_dist")
    return replace(config, classes=classes)


def pieces_of_map(pieces: Pieces) -> None:
    """timm's `attn_pool`: a latent query, a matrix for it and one for keys and values."""
    pieces.take("pool.query", "attn_pool.latent")
    for part in ("weight", "bias"):
        pieces.join(f"pool.attn.qkv.{part}", [f"attn_pool.q.{part}", f"attn_pool.kv.{part}"])
    pieces.linear("pool.attn.proj", "attn_pool.proj")
    for name in ("norm", "mlp.fc1", "mlp.fc2"):
        pieces.linear(f"pool.{name}", f"attn_pool.{name}")


def with_gammas(tensors: Tensors) -> Tensors:
    """DeiT-III's and Eva's `gamma_1` under timm's later name."""
    return tensors.renamed((r"\.gamma_([12])$", r".ls\1.gamma"))


def check_arguments(config: ViTConfig, arguments: Mapping[str, Any]) -> None:
    """Raise CheckpointError where timm's arguments and the tensors disagree."""
    found = {
        "embed_dim": config.width,
        "depth": config.depth,
        "in_chans": config.channels,
        "reg_tokens": config.register_tokens,
    }
    for name, value in found.items():
        if arguments.get(name) not in (None, value):
            raise CheckpointError(
                f"config.json says {name}={arguments[name]}, and the tensors say {value}"
            )
