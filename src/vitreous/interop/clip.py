"""CLIP as OpenAI and OpenCLIP store it, and OpenCLIP's towers of timm.

visual.{class_embedding, positional_embedding, conv1, ln_pre, ln_post, proj}
visual.transformer.resblocks.N.{ln_1, attn.in_proj_weight, attn.out_proj, ln_2}
visual.transformer.resblocks.N.mlp.{c_fc, c_proj}
visual.trunk.*   with timm's names
"""

from dataclasses import replace

from torch import Tensor

from vitreous.config import Activation, ViTConfig
from vitreous.errors import CheckpointError
from vitreous.interop.asked import CLIP_COLOURS, Asked, Format, Found, ratio
from vitreous.interop.hugging_face import SCALE, TEXT, one_token
from vitreous.interop.pieces import Pieces, Tensors, grid_of
from vitreous.interop.timm import read_timm

__all__ = ["FORMATS"]

TOWER = ("token_embedding.", "transformer.", "ln_final.", "text.")
"""How the names of the text tower begin beside `visual.`."""
LOOSE = ("positional_embedding", "text_projection", "attn_mask")
COUNTS = ("input_resolution", "context_length", "vocab_size")


def read_openai(asked: Asked) -> Found:
    """OpenAI's vision tower; the activation is theirs unless a config says OpenCLIP's."""
    tensors, aside = tower(asked.tensors, "visual.")
    pieces = Pieces(tensors)
    pieces.left |= aside
    width, channels, py, px = tensors.shape("conv1.weight", 4)
    hidden = tensors.shape("transformer.resblocks.0.mlp.c_fc.weight", 2)[0]
    rows = tensors.shape("positional_embedding", 2)[0]
    said = asked.said("model_cfg", {}).get("vision_cfg", {})
    grid = grid_of(rows - 1, "positional_embedding", asked.grid((py, px), said.get("image_size")))
    depth = tensors.depth("transformer.resblocks.")
    for i in range(depth):
        block(pieces, f"encoder.blocks.{i}", f"transformer.resblocks.{i}")
    pieces.patches("conv1", bias=False)
    pieces.make("cls_token", "class_embedding", one_token, "reshaped")
    pieces.take("pos_embed.table", "positional_embedding")
    pieces.linear("norm_pre", "ln_pre")
    pieces.linear("fc_norm", "ln_post")
    projection = 0
    if "proj" in tensors:
        projection = tensors.shape("proj", 2)[1]
        pieces.make("projection.weight", "proj", transposed, "transposed")
    config = ViTConfig(
        image_size=(grid[0] * py, grid[1] * px),
        channels=channels,
        patch_size=(py, px),
        patch_bias=False,
        width=width,
        depth=depth,
        heads=asked.head_count(width, width // 64 if width % 64 == 0 else None),
        mlp_ratio=ratio(hidden, width),
        activation=activation(asked),
        norm_eps=1e-5,
        embed_norm=True,
        final_norm=False,
        pooled_norm=True,
        position_resize="bicubic_antialias",
        projection=projection,
        classes=0,
    )
    notes = []
    if not asked.settings:
        notes.append("no config: QuickGELU, as OpenAI trained; OpenCLIP's own weights have GELU")
    notes.append("the library resizes no positions: OpenCLIP's way (bicubic, antialias) is taken")
    return Found(config, pieces, CLIP_COLOURS, notes)


def activation(asked: Asked) -> Activation:
    """QuickGELU, unless OpenCLIP's config is there and does not say so."""
    config = asked.said("model_cfg")
    return "gelu" if config is not None and not config.get("quick_gelu") else "quick_gelu"


def block(pieces: Pieces, ours: str, theirs: str) -> None:
    """One block."""
    pieces.linear(f"{ours}.norm1", f"{theirs}.ln_1")
    for part in ("weight", "bias"):
        pieces.take(f"{ours}.attn.qkv.{part}", f"{theirs}.attn.in_proj_{part}")
    pieces.linear(f"{ours}.attn.proj", f"{theirs}.attn.out_proj")
    pieces.linear(f"{ours}.norm2", f"{theirs}.ln_2")
    pieces.linear(f"{ours}.mlp.fc1", f"{theirs}.mlp.c_fc")
    pieces.linear(f"{ours}.mlp.fc2", f"{theirs}.mlp.c_proj")


def transposed(matrix: Tensor) -> Tensor:
    """A matrix (in, out) as (out, in)."""
    return matrix.mT


def tower(tensors: Tensors, prefix: str) -> tuple[Tensors, dict[str, str]]:
    """The vision tower without its prefix, and why each other tensor is left."""
    if not tensors.has(prefix):
        return tensors, {}
    aside = {}
    for name in tensors:
        if name.startswith(prefix):
            continue
        if name.startswith(TOWER) or name in LOOSE:
            aside[f"beside.{name}"] = TEXT
        elif name in ("logit_scale", "logit_bias"):
            aside[f"beside.{name}"] = SCALE
        elif name in COUNTS:
            aside[f"beside.{name}"] = "a number of the text tower's size"
    # Names may be the same in both towers, as `positional_embedding` is.
    inside = tensors.renamed((rf"^(?!{prefix})", "beside."), (rf"^{prefix}", ""))
    return inside, aside


def read_trunk(asked: Asked) -> Found:
    """OpenCLIP's tower of timm, as SigLIP's are published."""
    tensors, aside = tower(asked.tensors, "visual.")
    trunk = tensors.renamed((r"^trunk\.", ""))
    if trunk.has("head."):
        raise CheckpointError("visual.head: a projection behind a timm tower is not built")
    vision = asked.said("model_cfg", {}).get("vision_cfg", {})
    settings = {"architecture": vision["timm_model_name"]} if "timm_model_name" in vision else {}
    found = read_timm(replace(asked, tensors=trunk, settings=settings))
    found.pieces.left |= aside
    return found


FORMATS = (
    Format(
        "OpenAI CLIP",
        lambda tensors: (
            "visual.conv1.weight" in tensors
            or {"conv1.weight", "class_embedding"} <= tensors.keys()
        ),
        read_openai,
    ),
    Format("OpenCLIP (timm tower)", lambda tensors: tensors.has("visual.trunk."), read_trunk),
)
