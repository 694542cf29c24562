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
from vitreous.nn.patches import ConvolutionStem, NormedPatchEmbed, PatchEmbed
from vitreous.nn.pooling import AttentionPool, ClassPool, DistilledPool, MapPool, MeanPool
from vitreous.nn.positions import Learned, LearnedAxes, NoPositions, Rotary, RotaryUnit, SinCos
from vitreous.shapes import Images, Tokens

__all__ = ["Classifier", "build"]


class Classifier(nn.Module):
    """A Vision Transformer: patches, positions, encoder, one vector, class scores.

    `model(images)` gives logits (b, classes), or the features where there is no head;
    `model.encode(images)` features (b, width), `model.tokens(images)` the final tokens
    (b, n, width), `model.project(features)` their place in a shared space where there is one.
    Images of another size work: learned positions are stretched by the config's named convention.
    Raises ShapeError for images that do not fit. Source: ViT (arXiv 2010.11929).
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.class_names = [str(index) for index in range(config.classes)]
        self.image_input = image_input(config)
        self.patch_embed = patch_embed(config)
        self.cls_token = token(config, int(config.class_token))
        self.dist_token = token(config, int(config.distillation_token))
        self.reg_token = token(config, config.register_tokens)
        self.pos_embed = positions(config)
        self.dropout = nn.Dropout(config.dropout)
        self.norm_pre = norm(config) if config.embed_norm else nn.Identity()
        self.encoder = encoder(config)
        self.pool = pool(config)
        self.fc_norm = norm(config) if config.pooled_norm else nn.Identity()
        self.pre_logits = pre_logits(config)
        self.head = head(config)
        distilled = config.pooling == "distilled" and config.classes
        self.head_dist = head(config) if distilled else None
        self.projection = projection(config)
        self.apply(initialise)

    def forward(self, images: Images) -> Float[Tensor, "b classes"]:
        whole = self.config.head_reads == "cls_and_mean"
        tokens = self.read(images, keep=None if whole else self.needed)
        if self.head_dist is not None:
            return (self.head(tokens[:, 0]) + self.head_dist(tokens[:, 1])) / 2
        if whole:
            mean = tokens[:, self.config.prefix_tokens :].mean(dim=1)
            return self.head(torch.cat([tokens[:, 0], mean], dim=-1))
        return self.head(self.features(tokens))

    def encode(self, images: Images) -> Float[Tensor, "b d"]:
        """Features (b, width): the pooled final tokens.

        In training those that are not pooled stay unmade; in eval mode whoever looks sees them all.
        """
        return self.features(self.read(images, keep=self.needed))

    def project(self, features: Float[Tensor, "b d"]) -> Float[Tensor, "b shared"]:
        """Features in the space shared with another modality; raises ShapeError where none is."""
        if self.projection is None:
            raise ShapeError("this model has no projection into a shared space")
        return self.projection(features)

    def tokens(self, images: Images) -> Tokens:
        """Final tokens (b, n, width): class token, distillation token, registers, then patches."""
        return self.read(images)

    def features(self, tokens: Tokens) -> Float[Tensor, "b d"]:
        """One vector of the final tokens."""
        return self.pre_logits(self.fc_norm(self.pool(tokens)))

    @property
    def needed(self) -> int | None:
        """How many of the final tokens pooling reads, from the first; none means all."""
        return self.pool.reads if self.training else None

    def read(self, images: Images, *, keep: int | None = None) -> Tokens:
        """The first so many final tokens, or all of them."""
        self.check(images)
        x = self.with_prefix(self.patch_embed(images))
        placed = self.pos_embed(self.patch_embed.grid(images), like=x)
        if placed.added is not None:
            x = x + placed.added
        return self.encoder(self.norm_pre(self.dropout(x)), angle=placed.angle, keep=keep)

    def with_prefix(self, patches: Tokens) -> Float[Tensor, "b m d"]:
        """Put class token, distillation token and registers before the patches."""
        tokens = (self.cls_token, self.dist_token, self.reg_token)
        prefix = [t for t in tokens if t is not None]
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
    kind = partial(NormedPatchEmbed, eps=config.norm_eps) if config.patch_norm else PatchEmbed
    return kind(config.patch_shape, config.channels, config.width, bias=config.patch_bias)


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
            others=config.prefix_tokens - config.class_token,
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
        "rotary_unit": partial(RotaryUnit, config.head_dim, prefix=prefix),
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
        inner=config.attention_width,
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


def pool(config: ViTConfig) -> ClassPool | DistilledPool | MeanPool | AttentionPool:
    """The config's pooling."""
    if config.pooling == "map":
        parts = {"norm": norm(config), "mlp": mlp(config), "prefix": config.prefix_tokens}
        return MapPool(config.width, config.heads, **parts)
    kinds = {
        "cls": ClassPool,
        "distilled": DistilledPool,
        "mean": partial(MeanPool, config.prefix_tokens),
        "attention": partial(AttentionPool, config.width, config.heads),
    }
    return kinds[config.pooling]()


def pre_logits(config: ViTConfig) -> nn.Module:
    """The representation layer of the config, or nothing."""
    if not config.pre_logits:
        return nn.Identity()
    return nn.Sequential(nn.Linear(config.width, config.width), nn.Tanh())


def head(config: ViTConfig) -> nn.Linear | nn.Identity:
    """Features to class scores; nothing where there are no classes."""
    reads = 2 if config.head_reads == "cls_and_mean" else 1
    return nn.Linear(reads * config.width, config.classes) if config.classes else nn.Identity()


def projection(config: ViTConfig) -> nn.Linear | None:
    """Features to a shared space, where there is one."""
    return nn.Linear(config.width, config.projection, bias=False) if config.projection else None


def initialise(module: nn.Module) -> None:
    """Xavier-uniform matrices and zero biases, as in the ViT paper's own code."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
