"""Our models under the names of timm, Hugging Face and torchvision.

Each writer refuses, with the setting, what its library cannot build, and says in a note what the
library's files cannot hold.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from einops import rearrange
from torch import Tensor

from vitreous.checkpoints.files import write_bytes, write_json
from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.models.classifier import Classifier

__all__ = ["WRITERS", "Written", "write_weights"]

PLAIN: Mapping[str, Any] = {
    "stem": "linear",
    "patch_norm": False,
    "attention_width": None,
    "norm": "pre",
    "positions": "learned",
    "pre_logits": False,
}
"""What every one of these libraries asks for."""


class Written(NamedTuple):
    """Tensors and config of another library, and what its files cannot say."""

    tensors: dict[str, Tensor]
    config: dict[str, Any]
    notes: list[str]


def write_weights(model: Classifier, folder: str | Path, library: str) -> list[str]:
    """Write `model.safetensors` and `config.json` as another library does; returns notes.

    `library` names one of `WRITERS`. Each file is whole or absent. Raises CheckpointError for a
    model that the library cannot build.
    """
    written = WRITERS[library](model)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().contiguous() for name, tensor in written.tensors.items()}
    content = safetensors.torch.save(tensors, metadata={"format": "pt"})
    write_bytes(folder / "model.safetensors", content)
    write_json(folder / "config.json", written.config)
    return written.notes


def require(config: ViTConfig, library: str, **wanted: Any) -> None:
    """Raise CheckpointError, naming the setting, for a model that the library has no place for."""
    for name, value in {**PLAIN, **wanted}.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if getattr(config, name) not in allowed:
            raise CheckpointError(
                f"{library} cannot build {name}={getattr(config, name)!r}; "
                f"it can {' or '.join(map(repr, allowed))}"
            )


def kernel(model: Classifier) -> Tensor:
    """The patch embedding as a convolution's kernel."""
    py, px = model.config.patch_shape
    weight = model.state_dict()["patch_embed.proj.weight"]
    return rearrange(weight, "d (c py px) -> d c py px", py=py, px=px)


def table(model: Classifier) -> Tensor:
    """The position table with a row for every prefix token: zeros but for the class token's."""
    rows, config = model.state_dict()["pos_embed.table"], model.config
    others = config.prefix_tokens - config.class_token
    first, patches = rows[: config.class_token], rows[config.class_token :]
    return torch.cat([first, first.new_zeros(others, rows.shape[1]), patches])[None]


def renamed(state: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Tensors whose names begin so, under other beginnings; the first that fits is taken."""
    found = {}
    for name, tensor in state.items():
        for ours, theirs in names.items():
            if name == ours or name.startswith(f"{ours}."):
                found[theirs + name.removeprefix(ours)] = tensor
                break
    return found


def eps_note(config: ViTConfig, library: str, usual: float) -> list[str]:
    """A note where a library's file cannot hold the eps of its norms."""
    if config.norm_eps == usual:
        return []
    return [
        f"{library} computes with eps {usual}, and the model with {config.norm_eps}: say so there"
    ]


def to_timm(model: Classifier) -> Written:
    """timm's plain ViT, or its distilled one, with the arguments that build it."""
    config, state = model.config, model.state_dict()
    require(config, "timm", pooling=("cls", "mean", "map", "distilled"), head_reads="features")
    require(config, "timm", activation=("gelu", "gelu_tanh", "quick_gelu"))
    if config.pooling == "distilled" and config.register_tokens:
        raise CheckpointError("timm cannot build a distilled model with register tokens")
    names = {
        "cls_token": "cls_token",
        "dist_token": "dist_token",
        "reg_token": "reg_token",
        "patch_embed.proj.bias": "patch_embed.proj.bias",
        "norm_pre": "norm_pre",
        "encoder.blocks": "blocks",
        "encoder.norm": "norm",
        "fc_norm": "fc_norm",
        "head": "head",
        "head_dist": "head_dist",
        "pool.query": "attn_pool.latent",
        "pool.attn.proj": "attn_pool.proj",
        "pool.norm": "attn_pool.norm",
        "pool.mlp": "attn_pool.mlp",
    }
    tensors = renamed(state, names)
    tensors |= {"patch_embed.proj.weight": kernel(model), "pos_embed": table(model)}
    if config.pooling == "map":
        for part in ("weight", "bias"):
            q, kv = state[f"pool.attn.qkv.{part}"].split([config.width, 2 * config.width])
            tensors |= {f"attn_pool.q.{part}": q, f"attn_pool.kv.{part}": kv}
    notes = eps_note(config, "timm", 1e-5 if config.embed_norm else 1e-6)
    if config.projection:
        notes.append("timm has no place for the projection into a shared space: it is left out")
    return Written(tensors, timm_config(model), notes)


def timm_config(model: Classifier) -> dict[str, Any]:
    """What timm builds the model from: an architecture of its own, and every argument."""
    config, given = model.config, model.image_input
    distilled = config.pooling == "distilled"
    pooling = {"cls": "token", "mean": "avg", "map": "map", "distilled": "token"}[config.pooling]
    arguments: dict[str, Any] = {
        "img_size": list(config.image_shape),
        "patch_size": one_or_two(config.patch_shape),
        "in_chans": config.channels,
        "num_classes": config.classes,
        "global_pool": pooling,
        "embed_dim": config.width,
        "depth": config.depth,
        "num_heads": config.heads,
        "mlp_ratio": config.mlp_ratio,
        "qkv_bias": config.qkv_bias,
        "act_layer": config.activation,
    }
    special = {
        "class_token": (config.class_token, True),
        "reg_tokens": (config.register_tokens, 0),
        "pre_norm": (config.embed_norm, False),
        "fc_norm": (config.pooled_norm, pooling == "avg"),
        "init_values": (config.layer_scale and 1.0, None),
    }
    arguments |= {name: value for name, (value, usual) in special.items() if value != usual}
    size = [config.channels, *config.image_shape]
    pretrained: dict[str, Any] = {"input_size": size, "num_classes": config.classes}
    if given is not None:
        pretrained |= {"mean": list(given.mean), "std": list(given.std)}
    names = "deit_tiny_distilled_patch16_224", "vit_base_patch16_224"
    return {
        "architecture": names[0] if distilled else names[1],
        "num_classes": config.classes,
        "num_features": config.width,
        "global_pool": pooling,
        "model_args": arguments,
        "pretrained_cfg": pretrained,
    }


def one_or_two(pair: tuple[int, int]) -> int | list[int]:
    """A pair of equal numbers as one."""
    return pair[0] if pair[0] == pair[1] else list(pair)


HUGGING_FACE_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_pytorch_tanh",
    "quick_gelu": "quick_gelu",
}


def to_hugging_face(model: Classifier) -> Written:
    """ViT, DeiT, or DINOv2 where there is LayerScale; square images and patches."""
    config = model.config
    require(config, "Hugging Face", class_token=True, pooling=("cls", "distilled"))
    require(config, "Hugging Face", embed_norm=False, pooled_norm=False, final_norm=True)
    require(config, "Hugging Face", patch_bias=True, projection=0)
    if len(set(config.image_shape)) > 1 or len(set(config.patch_shape)) > 1:
        raise CheckpointError(
            f"Hugging Face builds squares; images are {config.image_shape}, "
            f"patches {config.patch_shape}"
        )
    if config.layer_scale is not None:
        return to_dinov2(model)
    require(config, "Hugging Face without LayerScale", register_tokens=0, head_reads="features")
    require(config, "Hugging Face without LayerScale", activation=tuple(HUGGING_FACE_ACTIVATIONS))
    distilled = config.distillation_token
    prefix = "deit" if distilled else "vit"
    tensors = hugging_face_encoder(
        model,
        prefix,
        {
            "norm1": "layernorm_before",
            "attn.proj": "attention.output.dense",
            "norm2": "layernorm_after",
            "mlp.fc1": "intermediate.dense",
            "mlp.fc2": "output.dense",
        },
    )
    heads = {"head": "classifier"}
    if config.pooling == "distilled":
        heads = {"head_dist": "distillation_classifier", "head": "cls_classifier"}
    tensors |= renamed(model.state_dict(), heads)
    scored = bool(config.classes)
    name = {"vit": "ViT", "deit": "DeiT"}[prefix]
    teacher = "WithTeacher" if config.pooling == "distilled" else ""
    settings = hugging_face_config(model) | {
        "architectures": [f"{name}ForImageClassification{teacher}" if scored else f"{name}Model"],
        "model_type": prefix,
        "intermediate_size": config.mlp_width,
    }
    if not scored:
        tensors = {name.removeprefix(f"{prefix}."): tensor for name, tensor in tensors.items()}
    return Written(tensors, settings, [])


def to_dinov2(model: Classifier) -> Written:
    """DINOv2, with or without registers."""
    config = model.config
    require(config, "Hugging Face's DINOv2", distillation_token=False)
    gated = config.activation == "swiglu"
    prefix = "dinov2_with_registers" if config.register_tokens else "dinov2"
    one, two = ("weights_in", "weights_out") if gated else ("fc1", "fc2")
    tensors = hugging_face_encoder(
        model,
        prefix,
        {
            "norm1": "norm1",
            "attn.proj": "attention.output.dense",
            "ls1.gamma": "layer_scale1.lambda1",
            "norm2": "norm2",
            "mlp.fc1": f"mlp.{one}",
            "mlp.fc2": f"mlp.{two}",
            "ls2.gamma": "layer_scale2.lambda1",
        },
    )
    tensors[f"{prefix}.embeddings.mask_token"] = torch.zeros(1, config.width)
    notes = ["the mask token, which no classifier uses, is zero"]
    if config.classes and config.head_reads != "cls_and_mean":
        raise CheckpointError("Hugging Face's DINOv2 scores class token and mean patch together")
    tensors |= renamed(model.state_dict(), {"head": "classifier"})
    name = "Dinov2WithRegisters" if config.register_tokens else "Dinov2"
    settings = hugging_face_config(model) | {
        "architectures": [f"{name}{'ForImageClassification' if config.classes else 'Model'}"],
        "model_type": prefix,
        "mlp_ratio": gated_ratio(config) if gated else config.mlp_ratio,
        "use_swiglu_ffn": gated,
        "layerscale_value": 1.0,
    }
    if config.register_tokens:
        settings["num_register_tokens"] = config.register_tokens
    if not config.classes:
        tensors = {name.removeprefix(f"{prefix}."): tensor for name, tensor in tensors.items()}
    return Written(tensors, settings, notes)


def gated_ratio(config: ViTConfig) -> int:
    """The whole ratio from which DINOv2 derives its gated width: two thirds, up to a multiple of 8.

    Raises CheckpointError where no ratio does.
    """
    for ratio in range(1, 65):
        if (int(config.width * ratio * 2 / 3) + 7) // 8 * 8 == config.mlp_width:
            return ratio
    raise CheckpointError(f"Hugging Face's DINOv2 has no gated width of {config.mlp_width}")


def hugging_face_encoder(
    model: Classifier, prefix: str, parts: Mapping[str, str]
) -> dict[str, Tensor]:
    """Everything but the head, under the names that stand on disk."""
    config, state = model.config, model.state_dict()
    tensors = renamed(
        state,
        {
            "cls_token": f"{prefix}.embeddings.cls_token",
            "dist_token": f"{prefix}.embeddings.distillation_token",
            "reg_token": f"{prefix}.embeddings.register_tokens",
            "patch_embed.proj.bias": f"{prefix}.embeddings.patch_embeddings.projection.bias",
            "encoder.norm": f"{prefix}.layernorm",
        },
    )
    tensors[f"{prefix}.embeddings.patch_embeddings.projection.weight"] = kernel(model)
    rows = table(model)
    if config.register_tokens:  # which own no rows there
        rows = torch.cat([rows[:, :1], rows[:, config.prefix_tokens :]], dim=1)
    tensors[f"{prefix}.embeddings.position_embeddings"] = rows
    for i in range(config.depth):
        ours, theirs = f"encoder.blocks.{i}", f"{prefix}.encoder.layer.{i}"
        names = {f"{ours}.{part}": f"{theirs}.{name}" for part, name in parts.items()}
        tensors |= renamed(state, names)
        for part in ("weight", "bias")[: 1 + config.qkv_bias]:
            three = state[f"{ours}.attn.qkv.{part}"].chunk(3)
            for letter, tensor in zip(("query", "key", "value"), three, strict=True):
                tensors[f"{theirs}.attention.attention.{letter}.{part}"] = tensor
    return tensors


def hugging_face_config(model: Classifier) -> dict[str, Any]:
    """The settings that all of them share."""
    config = model.config
    settings: dict[str, Any] = {
        "attention_probs_dropout_prob": config.attention_dropout,
        "dtype": "float32",
        "hidden_act": HUGGING_FACE_ACTIVATIONS.get(config.activation, "gelu"),
        "hidden_dropout_prob": config.dropout,
        "hidden_size": config.width,
        "image_size": config.image_shape[0],
        "layer_norm_eps": config.norm_eps,
        "num_attention_heads": config.heads,
        "num_channels": config.channels,
        "num_hidden_layers": config.depth,
        "patch_size": config.patch_shape[0],
        "qkv_bias": config.qkv_bias,
    }
    if config.classes:
        names = model.class_names
        settings["id2label"] = {str(index): name for index, name in enumerate(names)}
        settings["label2id"] = {name: index for index, name in enumerate(names)}
    return settings


def to_torchvision(model: Classifier) -> Written:
    """torchvision's VisionTransformer; its config.json holds the arguments of the class."""
    config = model.config
    require(config, "torchvision", class_token=True, distillation_token=False, register_tokens=0)
    require(config, "torchvision", pooling="cls", head_reads="features", activation="gelu")
    require(config, "torchvision", layer_scale=None, qkv_bias=True, patch_bias=True)
    require(config, "torchvision", embed_norm=False, final_norm=True, pooled_norm=False)
    require(config, "torchvision", projection=0)
    if not config.classes:
        raise CheckpointError("torchvision builds no model without a head, and this one has none")
    if len(set(config.image_shape)) > 1 or len(set(config.patch_shape)) > 1 or config.channels != 3:
        raise CheckpointError(
            f"torchvision builds squares of three channels; images are {config.image_shape} of "
            f"{config.channels}, patches {config.patch_shape}"
        )
    layers = "encoder.layers.encoder_layer_"
    names = {
        "cls_token": "class_token",
        "patch_embed.proj.bias": "conv_proj.bias",
        "encoder.norm": "encoder.ln",
        "head": "heads.head",
    }
    for i in range(config.depth):
        ours, theirs = f"encoder.blocks.{i}", f"{layers}{i}"
        names |= {
            f"{ours}.norm1": f"{theirs}.ln_1",
            f"{ours}.attn.qkv.weight": f"{theirs}.self_attention.in_proj_weight",
            f"{ours}.attn.qkv.bias": f"{theirs}.self_attention.in_proj_bias",
            f"{ours}.attn.proj": f"{theirs}.self_attention.out_proj",
            f"{ours}.norm2": f"{theirs}.ln_2",
            f"{ours}.mlp.fc1": f"{theirs}.mlp.0",
            f"{ours}.mlp.fc2": f"{theirs}.mlp.3",
        }
    tensors = renamed(model.state_dict(), names)
    tensors |= {"conv_proj.weight": kernel(model), "encoder.pos_embedding": table(model)}
    settings = {
        "image_size": config.image_shape[0],
        "patch_size": config.patch_shape[0],
        "num_layers": config.depth,
        "num_heads": config.heads,
        "hidden_dim": config.width,
        "mlp_dim": config.mlp_width,
        "num_classes": config.classes,
    }
    return Written(tensors, settings, eps_note(config, "torchvision", 1e-6))


WRITERS: Mapping[str, Callable[[Classifier], Written]] = {
    "timm": to_timm,
    "hugging-face": to_hugging_face,
    "torchvision": to_torchvision,
}
"""What can be written, by the name of the library."""
