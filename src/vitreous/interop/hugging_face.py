"""Hugging Face's encoders: ViT, DeiT, MAE, DINOv2, DINOv3, CLIP's and SigLIP's vision towers.

embeddings.{cls_token, patch_embeddings.projection, position_embeddings}
encoder.layer.N.attention.attention.{query, key, value}   on disk
layers.N.attention.{q,k,v,o}_proj                         in memory, from version 5 on
"""

from dataclasses import replace
from typing import Any

from torch import Tensor

from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.interop.asked import (
    CLIP_COLOURS,
    HALF,
    IMAGENET,
    Asked,
    Format,
    Found,
    ratio,
)
from vitreous.interop.dino import DECODER, MASK, turn_rows
from vitreous.interop.pieces import Pieces, Tensors, grid_of
from vitreous.interop.timm import plus_rows, without

__all__ = ["FORMATS"]

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_new": "gelu_tanh",
    "quick_gelu": "quick_gelu",
}
TEXT = "the text tower"
SCALE = "temperature of the contrastive loss"
EARLIER = (
    (r"^(vit|deit|dinov2|dinov2_with_registers|dinov3_vit)\.", ""),
    (r"^(vision_model|model\.vision_model)\.", ""),
    (r"^model\.(?=layer\.|embeddings\.|norm\.)", ""),
    (r"^(encoder\.)?layers?\.", "layer."),
    (r"\.attention\.attention\.query\.", ".attention.q_proj."),
    (r"\.attention\.attention\.key\.", ".attention.k_proj."),
    (r"\.attention\.attention\.value\.", ".attention.v_proj."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.self_attn\.out_proj\.", ".attention.o_proj."),
    (r"\.self_attn\.", ".attention."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"^(layer\.\d+)\.output\.dense\.", r"\1.mlp.fc2."),
    (r"\.(layernorm_before|layer_norm1)\.", ".norm1."),
    (r"\.(layernorm_after|layer_norm2)\.", ".norm2."),
    (r"\.mlp\.(weights_in|up_proj)\.", ".mlp.fc1."),
    (r"\.mlp\.(weights_out|down_proj)\.", ".mlp.fc2."),
    (r"\.layer_scale([12])\.lambda1$", r".ls\1.gamma"),
)
"""Every generation's names of a block, brought to one."""


def encoder(asked: Asked, *, eps: float, activation: str = "gelu") -> tuple[dict[str, Any], Pieces]:
    """Every block, and the settings that its tensors and the config say."""
    tensors, said = asked.tensors, asked.said
    pieces = Pieces(tensors)
    depth = tensors.depth("layer.")
    hidden, width = tensors.shape("layer.0.mlp.fc2.weight", 2)[::-1]
    gated = "layer.0.mlp.gate_proj.weight" in tensors
    wide = gated or tensors.shape("layer.0.mlp.fc1.weight", 2)[0] == 2 * hidden
    for i in range(depth):
        block(pieces, f"encoder.blocks.{i}", f"layer.{i}", gated=gated)
    named = said("hidden_act", activation)
    named = ACTIVATIONS.get(named, named)
    if not wide and named not in ACTIVATIONS.values():
        raise CheckpointError(f"hidden_act={named!r} is not known; {', '.join(ACTIVATIONS)} are")
    found = {"hidden_size": width, "num_hidden_layers": depth}
    for name, value in found.items():
        asked.check(name, value)
    return {
        "width": width,
        "depth": depth,
        "heads": asked.head_count(width, said("num_attention_heads")),
        "mlp_ratio": ratio(hidden, width),
        "activation": "swiglu" if wide else named,
        "qkv_bias": "layer.0.attention.q_proj.bias" in tensors,
        "norm_eps": float(said("layer_norm_eps", eps)),
        "layer_scale": 1.0 if "layer.0.ls1.gamma" in tensors else None,
        "classes": 0,
    }, pieces


def block(pieces: Pieces, ours: str, theirs: str, *, gated: bool) -> None:
    """One block."""
    bias = f"{theirs}.attention.q_proj.bias" in pieces.tensors
    pieces.joined_qkv(f"{ours}.attn.qkv", f"{theirs}.attention.{{}}_proj", bias=bias)
    pieces.linear(f"{ours}.attn.proj", f"{theirs}.attention.o_proj")
    for name in ("norm1", "norm2", "mlp.fc1", "mlp.fc2"):
        pieces.linear(f"{ours}.{name}", f"{theirs}.{name}")
    if gated:
        for part in ("weight", "bias"):
            ways_in = [f"{theirs}.mlp.{name}.{part}" for name in ("gate_proj", "fc1")]
            pieces.join(f"{ours}.mlp.fc1.{part}", ways_in)
    for name in ("ls1.gamma", "ls2.gamma"):
        if f"{theirs}.{name}" in pieces.tensors:
            pieces.take(f"{ours}.{name}", f"{theirs}.{name}")


def embedded(
    asked: Asked, pieces: Pieces, patches: str, table: str, rows_before: int
) -> dict[str, Any]:
    """Patches, and the grid of their table. Positions are two- or three-dimensional."""
    tensors = asked.tensors
    _, channels, py, px = tensors.shape(f"{patches}.weight", 4)
    bias = f"{patches}.bias" in tensors
    pieces.patches(patches, bias=bias)
    asked.check("num_channels", channels)
    grid = asked.grid((py, px), asked.said("image_size"))
    if table in tensors:
        rows = tensors[table].shape[-2] if tensors[table].ndim > 1 else 0
        grid = grid_of(rows - rows_before, tensors.origin(table), grid)
    elif grid is None:
        raise CheckpointError("no position table says how large images are: say source_size")
    return {
        "image_size": (grid[0] * py, grid[1] * px),
        "channels": channels,
        "patch_size": (py, px),
        "patch_bias": bias,
    }


def read_vit(asked: Asked) -> Found:
    """ViT, DeiT, MAE's encoder and DINOv2, with or without registers."""
    tensors = asked.tensors.renamed(*EARLIER)
    asked = replace(asked, tensors=tensors)
    dino = "layer.0.ls1.gamma" in tensors
    settings, pieces = encoder(asked, eps=1e-6 if dino else 1e-12)
    distilled = "embeddings.distillation_token" in tensors
    table = "embeddings.position_embeddings"
    sizes = embedded(asked, pieces, "embeddings.patch_embeddings.projection", table, 1 + distilled)
    pieces.take("cls_token", "embeddings.cls_token")
    pieces.make("pos_embed.table", table, without(1, 1 + distilled), "reshaped")
    if distilled:
        token = ("embeddings.distillation_token", table)
        pieces.make("dist_token", token, plus_rows(1, 1), "folded", "token + row")
    registers = "embeddings.register_tokens" in tensors
    if registers:
        pieces.take("reg_token", "embeddings.register_tokens")
        settings["register_tokens"] = tensors.shape("embeddings.register_tokens", 3)[1]
    pieces.linear("encoder.norm", "layernorm")
    pieces.leave(["embeddings.mask_token"], MASK)
    pieces.leave_all("decoder.", DECODER)
    resize = "bicubic_antialias" if registers else "bicubic"
    config = ViTConfig(**settings, **sizes, position_resize=resize, distillation_token=distilled)
    config = with_head(config, asked, pieces, dino=dino)
    colours = IMAGENET if dino or distilled or tensors.has("decoder.") else HALF
    return Found(config, pieces, colours, class_names=names_of(asked, config))


def with_head(config: ViTConfig, asked: Asked, pieces: Pieces, *, dino: bool) -> ViTConfig:
    """The head that there is: one, two of DeiT's teacher, DINOv2's over two vectors, or none."""
    tensors = asked.tensors
    if "pooler.dense.weight" in tensors:
        pieces.linear("pre_logits.0", "pooler.dense")
        config = replace(config, pre_logits=True)
    if "cls_classifier.weight" in tensors:
        pieces.linear("head", "cls_classifier")
        pieces.linear("head_dist", "distillation_classifier")
        classes = tensors.shape("cls_classifier.weight", 2)[0]
        return replace(config, classes=classes, pooling="distilled")
    if "classifier.weight" not in tensors:
        classify = [name for name in asked.said("architectures", []) if "Classif" in name]
        if classify:
            raise CheckpointError(f"classifier.weight is missing, and it is a {classify[0]}")
        return config
    pieces.linear("head", "classifier")
    classes, reads = tensors.shape("classifier.weight", 2)
    if "pooler.dense.weight" in tensors:
        raise CheckpointError("there are a pooler and a classifier: which is used is not known")
    both = dino and reads == 2 * config.width
    return replace(config, classes=classes, head_reads="cls_and_mean" if both else "features")


def names_of(asked: Asked, config: ViTConfig) -> list[str] | None:
    """The names of the classes, where the config has them all."""
    names = asked.said("id2label", {})
    if not config.classes or len(names) != config.classes:
        return None
    return [str(names.get(str(index), index)) for index in range(config.classes)]


def read_dinov3(asked: Asked) -> Found:
    """DINOv3: rotations within the unit square; keys have no bias."""
    asked = replace(
        asked,
        tensors=asked.tensors.renamed(*EARLIER),
        source_size=asked.source_size or asked.said("image_size", 224),
    )
    tensors = asked.tensors
    settings, pieces = encoder(asked, eps=1e-5)
    sizes = embedded(asked, pieces, "embeddings.patch_embeddings", "", 0)
    for ours, theirs in (("cls_token", "cls_token"), ("reg_token", "register_tokens")):
        if f"embeddings.{theirs}" in tensors:
            pieces.take(ours, f"embeddings.{theirs}")
    base = asked.said("rope_theta", 100.0)
    if base != 100.0:
        raise CheckpointError(f"rope_theta={base} is not built; 100 is")
    pieces.linear("encoder.norm", "norm")
    pieces.leave(["embeddings.mask_token"], MASK)
    registers = "embeddings.register_tokens"
    config = ViTConfig(
        **settings,
        **sizes,
        positions="rotary_unit",
        register_tokens=tensors.shape(registers, 3)[1] if registers in tensors else 0,
    )
    for i in range(config.depth):
        turn_rows(pieces, f"encoder.blocks.{i}.attn.qkv", config)
    return Found(config, pieces, IMAGENET)


def read_clip(asked: Asked) -> Found:
    """CLIP's vision tower, alone or in the whole model."""
    asked, tensors = vision(asked)
    settings, pieces = encoder(asked, eps=1e-5, activation="quick_gelu")
    other_tower(pieces)
    table = "embeddings.position_embedding.weight"
    sizes = embedded(asked, pieces, "embeddings.patch_embedding", table, 1)
    pieces.make("cls_token", "embeddings.class_embedding", one_token, "reshaped")
    pieces.take("pos_embed.table", table)
    pieces.linear("norm_pre", "pre_layrnorm")
    pieces.linear("fc_norm", "post_layernorm")
    config = ViTConfig(
        **settings,
        **sizes,
        embed_norm=True,
        final_norm=False,
        pooled_norm=True,
        position_resize="bicubic",
        projection=projected(tensors, pieces),
    )
    return Found(config, pieces, CLIP_COLOURS)


def projected(tensors: Tensors, pieces: Pieces) -> int:
    """Numbers of the shared space, where the file knows the way into it."""
    name = "visual_projection.weight"
    if name not in tensors:
        return 0
    pieces.take("projection.weight", name)
    return tensors.shape(name, 2)[0]


def read_siglip(asked: Asked) -> Found:
    """SigLIP's vision tower, alone or in the whole model, with its attention pooling."""
    asked, tensors = vision(asked)
    settings, pieces = encoder(asked, eps=1e-6, activation="gelu_pytorch_tanh")
    other_tower(pieces)
    table = "embeddings.position_embedding.weight"
    sizes = embedded(asked, pieces, "embeddings.patch_embedding", table, 0)
    pieces.take("pos_embed.table", table)
    pieces.linear("encoder.norm", "post_layernorm")
    pooled = "head.probe" in tensors
    if pooled:
        pieces.take("pool.query", "head.probe")
        for part in ("weight", "bias"):
            pieces.take(f"pool.attn.qkv.{part}", f"head.attention.in_proj_{part}")
        pieces.linear("pool.attn.proj", "head.attention.out_proj")
        pieces.linear("pool.norm", "head.layernorm")
        for name in ("fc1", "fc2"):
            pieces.linear(f"pool.mlp.{name}", f"head.mlp.{name}")
    config = ViTConfig(
        **settings,
        **sizes,
        class_token=False,
        pooling="map" if pooled else "mean",
        position_resize="bicubic",
    )
    notes = [] if pooled else ["no pooling head in the file: features are the mean of the tokens"]
    return Found(config, pieces, HALF, notes)


def vision(asked: Asked) -> tuple[Asked, Tensors]:
    """What belongs to the vision tower, under one generation's names, and its settings."""
    settings = asked.said("vision_config", asked.settings)
    tensors = asked.tensors.renamed(*EARLIER)
    return replace(asked, tensors=tensors, settings=settings), tensors


def one_token(token: Tensor) -> Tensor:
    """A vector as one token."""
    return token.reshape(1, 1, -1)


def other_tower(pieces: Pieces) -> None:
    """What a whole two-tower model has beside its vision tower."""
    pieces.leave_all("text_model.", TEXT)
    pieces.leave_all("text_projection", TEXT)
    pieces.leave(["logit_scale", "logit_bias"], SCALE)
    pieces.leave(["embeddings.position_ids"], "numbers of the positions, in order")


def ends(tensors: Tensors, *names: str) -> bool:
    """Whether some tensor ends in each of these names."""
    return all(any(name.endswith(end) for name in tensors) for end in names)


FORMATS = (
    Format(
        "Hugging Face ViT",
        lambda tensors: ends(tensors, "embeddings.patch_embeddings.projection.weight"),
        read_vit,
    ),
    Format(
        "Hugging Face DINOv3",
        lambda tensors: ends(tensors, "embeddings.patch_embeddings.weight"),
        read_dinov3,
    ),
    Format(
        "Hugging Face CLIP",
        lambda tensors: ends(
            tensors, "embeddings.class_embedding", "embeddings.patch_embedding.weight"
        ),
        read_clip,
    ),
    Format(
        "Hugging Face SigLIP",
        lambda tensors: (
            ends(tensors, "embeddings.position_embedding.weight", "patch_embedding.weight")
            and not ends(tensors, "class_embedding")
        ),
        read_siglip,
    ),
)
