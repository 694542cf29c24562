"""The published digit architecture as others build it. Each peer says how it differs from ours."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from vitreous.config import ViTConfig


class Peer(NamedTuple):
    """Another's model of the same sizes."""

    build: Callable[[ViTConfig], nn.Module]
    extra: int
    """Parameters that it has more than ours has."""
    differs: str


class Frame(nn.Module):
    """Patches, class token, learned positions and a head, around blocks made elsewhere."""

    def __init__(self, block: Callable[[ViTConfig], nn.Module], config: ViTConfig) -> None:
        super().__init__()
        width, patch = config.width, config.patch_shape
        self.patch_embed = nn.Conv2d(config.channels, width, patch, patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(config.tokens, width) * 0.02)
        self.blocks = nn.Sequential(*(block(config) for _ in range(config.depth)))
        self.head = nn.Linear(width, config.classes)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patch_embed(images).flatten(2).mT
        tokens = torch.cat([self.cls_token.expand(len(patches), -1, -1), patches], dim=1)
        return self.head(self.blocks(tokens + self.pos_embed)[:, 0])


class MultiheadBlock(nn.Module):
    """A post-norm block around `torch.nn.MultiheadAttention`.

    Asking it for the weights makes it take its unfused path, which is faster on some machines.
    """

    def __init__(self, config: ViTConfig, *, weights: bool) -> None:
        super().__init__()
        width, self.weights = config.width, weights
        self.attn = nn.MultiheadAttention(width, config.heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, config.mlp_width), nn.GELU(), nn.Linear(config.mlp_width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        read, _ = self.attn(x, x, x, need_weights=self.weights, average_attn_weights=False)
        x = self.norm1(x + read)
        return self.norm2(x + self.mlp(x))


def encoder_layer(config: ViTConfig) -> nn.Module:
    """`torch.nn.TransformerEncoderLayer`: post-norm with GELU, as published."""
    return nn.TransformerEncoderLayer(
        config.width,
        config.heads,
        config.mlp_width,
        dropout=0.0,
        activation="gelu",
        batch_first=True,
    )


class Unfused(nn.Module):
    """A model whose attention must take torch's written-out path."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        with sdpa_kernel(SDPBackend.MATH):
            return self.model(images)


def vit_pytorch(config: ViTConfig) -> nn.Module:
    """The `ViT` of vit-pytorch, without the rest of its package, which wants torchvision."""
    return vit_file().ViT(
        image_size=config.image_shape,
        patch_size=config.patch_shape,
        channels=config.channels,
        num_classes=config.classes,
        dim=config.width,
        depth=config.depth,
        heads=config.heads,
        dim_head=config.head_dim,
        mlp_dim=config.mlp_width,
    )


def vit_file() -> ModuleType:
    """The module `vit_pytorch/vit.py`, by its path."""
    package = find_spec("vit_pytorch")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("vit_pytorch is not installed: see benchmarks/requirements.txt")
    spec = spec_from_file_location("vit_of_vit_pytorch", Path(package.origin).with_name("vit.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class HuggingFace(nn.Module):
    """The ViT of `transformers`, images in and logits out."""

    def __init__(self, attention: str, config: ViTConfig) -> None:
        super().__init__()
        library = import_module("transformers")
        sizes = library.ViTConfig(
            image_size=config.image_size,
            patch_size=config.patch_size,
            num_channels=config.channels,
            hidden_size=config.width,
            num_hidden_layers=config.depth,
            num_attention_heads=config.heads,
            intermediate_size=config.mlp_width,
            num_labels=config.classes,
            attn_implementation=attention,
        )
        self.model = library.ViTForImageClassification(sizes)

    def forward(self, images: Tensor) -> Tensor:
        return self.model(pixel_values=images).logits


SAME = "the same"
VIT_PYTORCH = "pre-norm; no qkv bias (−2,304), norms around the patch map (+288), final norm (+256)"

PEERS: Mapping[str, Peer] = {
    "nn.MultiheadAttention": Peer(partial(Frame, partial(MultiheadBlock, weights=False)), 0, SAME),
    "nn.MultiheadAttention, unfused": Peer(
        partial(Frame, partial(MultiheadBlock, weights=True)), 0, SAME
    ),
    "nn.TransformerEncoderLayer": Peer(partial(Frame, encoder_layer), 0, SAME),
    "nn.TransformerEncoderLayer, unfused": Peer(
        lambda config: Unfused(Frame(encoder_layer, config)), 0, SAME
    ),
    "vit-pytorch": Peer(vit_pytorch, -1760, VIT_PYTORCH),
    "transformers, sdpa": Peer(partial(HuggingFace, "sdpa"), 256, "pre-norm; final norm (+256)"),
    "transformers, eager": Peer(partial(HuggingFace, "eager"), 256, "pre-norm; final norm (+256)"),
}
