"""Image in, class scores out."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.config import ViTConfig
from vitreous.errors import ShapeError
from vitreous.frontends.image import MNIST_INPUT, ImageInput
from vitreous.nn.attention import Attention
from vitreous.nn.encoder import Block, Encoder, LayerScale
from vitreous.nn.mlp import Mlp, SwiGLU
from vitreous.nn.patches import ConvolutionStem, PatchEmbed
from vitreous.nn.pooling import AttentionPool, ClassPool, MeanPool
from vitreous.nn.positions import Learned, LearnedAxes, NoPositions, Rotary, SinCos
from vitreous.shapes import Images, Tokens

__all__ = ["Classifier", "build"]


class Classifier(nn.Module):
    """A Vision Transformer: patches, positions, encoder, one vector, class scores.

    `model(images)` gives logits (b, classes), `model.encode(images)` features (b, width),
    `model.tokens(images)` the final tokens (b, n, width). Images of another size work: learned
    positions are stretched by the config's named convention. Raises ShapeError for images that do
    not fit. Source: ViT (arXiv 2010.11929).
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.class_names = [str(index) for index in range(config.classes)]
        self.image_input = image_input(config)
        self.patch_embed = patch_embed(config)
        self.cls_token = token(config, int(config.class_token))
        self.reg_token = token(config, config.register_tokens)
        self.pos_embed = positions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = encoder(config)
        self.pool = pool(config)
        self.head = nn.Linear(config.width, config.classes)
        self.apply(initialise)

    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        return self.head(self.encode(images))

    def encode(self, images: Images) -> Float[Tensor, "b d"]:
        """Features (b, width): the pooled final tokens.

        In training those that are not pooled stay unmade; in eval mode whoever looks sees them all.
        """
        return self.pool(self.read(images, keep=self.pool.reads if self.training else None))

    def tokens(self, images: Images) -> Tokens:
        """Final tokens (b, n, width): class token, registers, then patches row by row."""
        return self.read(images)

    def read(self, images: Images, *, keep: int | None = None) -> Tokens:
        """The first so many final tokens, or all of them."""
        self.check(images)
        x = self.with_prefix(self.patch_embed(images))
        placed = self.pos_embed(self.patch_embed.grid(images), like=x)
        if placed.added is not None:
            x = x + placed.added
        return self.encoder(self.dropout(x), angle=placed.angle, keep=keep)

    def with_prefix(self, patches: Tokens) -> Float[Tensor, "b m d"]:
        """Put the class token and the registers before the patches."""
        prefix = [t for t in (self.cls_token, self.reg_token) if t is not None]
        return torch.cat([*(t.expand(len(patches), -1, -1) for t in prefix), patches], dim=1)

    def check(self, images: Images) -> None:
        """Raise ShapeError for images that this model cannot read."""
        if images.ndim != 4 or images.shape[1] != self.config.channels:
            y, x = self.config.image_shape
            raise ShapeError(
                f"this model reads images of shape (b, {self.config.channels}, {y}, {x}), "
                f"or of another height and width; got {tuple(images.shape)}"
            )


def build(config: ViTConfig) -> Classifier:
    """The model of a config, with fresh weights from torch's global generator."""
    return Classifier(config)


def image_input(config: ViTConfig) -> ImageInput | None:
    """How image files are prepared until data say otherwise: grey 28×28 as MNIST's digits are.

    Other pictures get mean and deviation 0.5, Google's convention; none where there are neither one
    nor three channels.
    """
    size, channels = config.image_shape, config.channels
    if (*size, channels) == (28, 28, 1):
        return MNIST_INPUT
    if channels not in (1, 3):
        return None
    half = (0.5,) * channels
    return ImageInput(
        size=size, channels=channels, kind="picture", resize="crop", mean=half, std=half
    )


def patch_embed(config: ViTConfig) -> PatchEmbed | ConvolutionStem:
    """Pixels to tokens."""
    if config.stem == "convolution":
        return ConvolutionStem(config.patch_shape[0], config.channels, config.width)
    return PatchEmbed(config.patch_shape, config.channels, config.width)


def token(config: ViTConfig, count: int) -> nn.Parameter | None:
    """Learned tokens (1, count, width), or none."""
    return nn.Parameter(torch.randn(1, count, config.width) * config.token_std) if count else None


def positions(config: ViTConfig) -> nn.Module:
    """The config's positions."""
    prefix = config.prefix_tokens
    kinds = {
        "none": NoPositions,
        "learned": partial(
            Learned,
            config.grid,
            config.width,
            class_row=config.class_token,
            registers=config.register_tokens,
            resize=config.position_resize,
            std=config.token_std,
        ),
        "learned_axes": partial(
            LearnedAxes,
            config.grid,
            config.width,
            prefix=prefix,
            resize=config.position_resize,
            std=config.token_std,
        ),
        "sincos": partial(SinCos, config.width, prefix=prefix),
        "sincos_1d": partial(SinCos, config.width, prefix=prefix, axes=1),
        "rotary": partial(Rotary, config.head_dim, prefix=prefix),
    }
    return kinds[config.positions]()


def encoder(config: ViTConfig) -> Encoder:
    """The config's blocks, with drop path growing from zero to its full rate, and last norm."""
    last = max(config.depth - 1, 1)
    blocks = (block(config, config.drop_path * layer / last) for layer in range(config.depth))
    return Encoder(blocks, norm(config) if config.final_norm else nn.Identity())


def norm(config: ViTConfig) -> nn.LayerNorm:
    """A LayerNorm over the width."""
    return nn.LayerNorm(config.width, eps=config.norm_eps)


def block(config: ViTConfig, drop_path: float) -> Block:
    """One block of the config."""
    attention = Attention(
        config.width,
        config.heads,
        bias=config.qkv_bias,
        dropout=config.dropout,
        weight_dropout=config.attention_dropout,
    )
    start = config.layer_scale
    return Block(
        norm(config),
        attention,
        norm(config),
        mlp(config),
        post_norm=config.norm == "post",
        scales=None
        if start is None
        else (LayerScale(config.width, start), LayerScale(config.width, start)),
        drop_path=drop_path,
    )


def mlp(config: ViTConfig) -> Mlp | SwiGLU:
    """The config's MLP."""
    if config.activation == "swiglu":
        return SwiGLU(config.width, config.mlp_width, dropout=config.dropout)
    return Mlp(config.width, config.mlp_width, activation=config.activation, dropout=config.dropout)


def pool(config: ViTConfig) -> ClassPool | MeanPool | AttentionPool:
    """The config's pooling."""
    kinds = {
        "cls": ClassPool,
        "mean": partial(MeanPool, config.prefix_tokens),
        "attention": partial(AttentionPool, config.width, config.heads),
    }
    return kinds[config.pooling]()


def initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices and zero biases, as in the ViT paper's own code."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
