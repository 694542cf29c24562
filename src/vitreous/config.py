"""Every knob of a model and of a training run, and nothing that needs torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd
from typing import Literal, TypeAlias

from vitreous import settings
from vitreous.errors import ConfigError

__all__ = ["PRESETS", "RECIPES", "Recipe", "ViTConfig", "preset", "recipe"]

Pair: TypeAlias = tuple[int, int]
Positions: TypeAlias = Literal[
    "none", "learned", "learned_axes", "sincos", "sincos_1d", "rotary", "rotary_unit"
]
Activation: TypeAlias = Literal["gelu", "gelu_tanh", "quick_gelu", "swiglu"]
Resize: TypeAlias = Literal[
    "bicubic_antialias",
    "bicubic",
    "bicubic_corners",
    "bicubic_offset",
    "bilinear_antialias",
    "bilinear",
    "bilinear_corners",
    "google",
]


@dataclass(frozen=True, kw_only=True)
class ViTConfig:
    """The shape of one Vision Transformer; `dataclasses.replace` makes the variant.

    Sizes are one number for a square or (rows, columns). Raises ConfigError, with the numbers,
    for a combination that cannot be built.
    """

    image_size: int | Pair = 28
    """Pixels: one number for a square, or (rows, columns)."""
    channels: int = 1
    patch_size: int | Pair = 4
    """Pixels per patch; with a convolution stem the total stride, a power of two."""
    stem: Literal["linear", "convolution"] = "linear"
    """How pixels become tokens: one Linear over each patch, or 3×3 convolutions of stride 2."""
    patch_bias: bool = True
    """Whether the linear stem has a bias; CLIP's has none."""
    patch_norm: bool = False
    """LayerNorm of each patch's pixels, and of its token, as vit-pytorch has them."""
    width: int = 128
    """Numbers per token, through the whole encoder (`embed_dim` in timm)."""
    depth: int = 6
    """Blocks. None at all makes a convolution stem a small convolutional network."""
    heads: int = 8
    attention_width: int | None = None
    """Numbers of all heads together; none is the width."""
    mlp_ratio: float = 4.0
    activation: Activation = "gelu"
    qkv_bias: bool = True
    norm: Literal["pre", "post"] = "pre"
    """LayerNorm before each branch, or after each sum."""
    norm_eps: float = 1e-6
    embed_norm: bool = False
    """LayerNorm of the tokens that enter the first block, as in CLIP."""
    final_norm: bool = True
    positions: Positions = "learned"
    position_resize: Resize = "bicubic_antialias"
    """How a learned table is stretched to another grid; see `nn.positions.RESIZES`."""
    token_std: float = 0.02
    """Deviation of the numbers that learned positions and prefix tokens start as."""
    class_token: bool = True
    distillation_token: bool = False
    """A second token that reads, after the class token. Source: DeiT (arXiv 2012.12877)."""
    register_tokens: int = 0
    pooling: Literal["cls", "mean", "attention", "map", "distilled"] = "cls"
    """Which tokens become the features; `map` is SigLIP's attention with an MLP behind it, and
    `distilled` the mean of class and distillation token, each with a head of its own."""
    pooled_norm: bool = False
    """LayerNorm of the features, in place of or after the tokens' own."""
    pre_logits: bool = False
    """A linear map and tanh over the features (BERT's pooler, ViT's representation layer)."""
    projection: int = 0
    """Numbers of a space shared with another modality, as in CLIP; 0 has none."""
    head_reads: Literal["features", "cls_and_mean"] = "features"
    """What the head sees: the features, or class token and mean patch, as in DINOv2's."""
    layer_scale: float | None = None
    """What LayerScale starts at; none leaves it out."""
    dropout: float = 0.0
    attention_dropout: float = 0.0
    drop_path: float = 0.0
    """Stochastic depth at the last block; earlier blocks get proportionally less."""
    classes: int = 10
    """Class scores; 0 has no head, and the model answers with its features."""

    def __post_init__(self) -> None:
        settings.check(self)
        self._check_sizes()
        self._check_tiling()
        self._check_heads()
        self._check_readers()

    def _check_sizes(self) -> None:
        at_least_one = ["channels", "width", "heads"]
        if self.depth or self.stem == "linear":
            at_least_one.append("depth")
        sides = {"image_size": self.image_shape, "patch_size": self.patch_shape}
        low = [name for name in at_least_one if getattr(self, name) < 1]
        low += [name for name, pair in sides.items() if min(pair) < 1]
        if low:
            raise ConfigError(f"{low[0]}={getattr(self, low[0])} must be at least 1")
        for name in ("register_tokens", "projection", "classes"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}={getattr(self, name)} must not be negative")
        if self.mlp_width < 1 or self.norm_eps <= 0:
            raise ConfigError("mlp_ratio and norm_eps must be greater than zero")
        if self.token_std < 0:
            raise ConfigError(f"token_std={self.token_std} must not be negative")
        for name in ("dropout", "attention_dropout", "drop_path"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 0 and below 1")

    def _check_tiling(self) -> None:
        if self.stem == "convolution":
            rows, columns = self.patch_shape
            if rows != columns or rows < 2 or rows & (rows - 1):
                raise ConfigError(
                    f"patch_size={self.patch_size} is no total stride of stride-2 convolutions; "
                    "use 2, 4, 8, 16 or 32"
                )
            return
        for side, patch in zip(self.image_shape, self.patch_shape, strict=True):
            if side % patch:
                raise ConfigError(does_not_tile(self.patch_size, self.image_size, side, patch))

    def _check_readers(self) -> None:
        reads_class = self.pooling in ("cls", "distilled") or self.head_reads == "cls_and_mean"
        if reads_class and not self.class_token:
            name = "pooling" if self.head_reads == "features" else "head_reads"
            raise ConfigError(
                f'{name}="{getattr(self, name)}" reads a class token: set class_token=true'
            )
        if self.pooling == "distilled" and not self.distillation_token:
            raise ConfigError(
                'pooling="distilled" reads a distillation token: set distillation_token=true'
            )
        past = self.pooling == "distilled" or self.head_reads == "cls_and_mean"
        if past and (self.pooled_norm or self.pre_logits):
            raise ConfigError(
                "pooled_norm and pre_logits change the features, and the head of this model "
                "reads tokens: leave them out"
            )
        if self.head_reads == "cls_and_mean" and (self.pooling != "cls" or not self.classes):
            raise ConfigError('head_reads="cls_and_mean" needs pooling="cls" and classes')
        if self.distillation_token and not self.class_token:
            raise ConfigError(
                "a distillation token stands after a class token: set class_token=true"
            )

    def _check_heads(self) -> None:
        whole = ["attention_width"] if self.attention_width is not None else ["width"]
        if self.pooling in ("attention", "map"):
            whole.append("width")  # of its pooling, whose heads are as many
        for name in whole:
            size = getattr(self, name)
            if size < 1 or size % self.heads:
                raise ConfigError(f"{name}={size} does not split over heads={self.heads}")
        # Each axis of each pair (sin, cos) or rotation needs a whole number of speeds.
        numbers = {
            "sincos": (self.width, 4, "width"),
            "sincos_1d": (self.width, 2, "width"),
            "rotary": (self.head_dim, 4, "head_dim"),
            "rotary_unit": (self.head_dim, 4, "head_dim"),
        }
        if self.positions in numbers:
            size, share, name = numbers[self.positions]
            if size % share:
                raise ConfigError(
                    f"positions={self.positions!r} needs a {name} that is a multiple of {share}; "
                    f"{name} is {size}"
                )

    @property
    def image_shape(self) -> Pair:
        """Pixel rows and columns."""
        return pair(self.image_size)

    @property
    def patch_shape(self) -> Pair:
        """Pixel rows and columns of one patch."""
        return pair(self.patch_size)

    @property
    def grid(self) -> Pair:
        """Rows and columns of patches; a convolution stem rounds up, so no pixel is lost."""
        (y, x), (py, px) = self.image_shape, self.patch_shape
        return -(-y // py), -(-x // px)

    @property
    def prefix_tokens(self) -> int:
        """Tokens before the patches: the class token, the distillation token, then registers."""
        return self.class_token + self.distillation_token + self.register_tokens

    @property
    def tokens(self) -> int:
        """Length of the sequence that the encoder reads."""
        rows, columns = self.grid
        return self.prefix_tokens + rows * columns

    @property
    def head_dim(self) -> int:
        """Numbers per head."""
        return self.inner // self.heads

    @property
    def inner(self) -> int:
        """Numbers of all heads together."""
        return self.attention_width or self.width

    @property
    def mlp_width(self) -> int:
        """Hidden numbers of the MLP."""
        return int(self.width * self.mlp_ratio)


def pair(size: int | Pair) -> Pair:
    """One number is a square.

    >>> pair(28)
    (28, 28)
    """
    return (size, size) if isinstance(size, int) else size


def does_not_tile(patch_size: int | Pair, image_size: int | Pair, side: int, patch: int) -> str:
    """The sentence for a patch that does not tile an image, with what would."""
    # One number for the patch has to tile both sides.
    whole = gcd(*pair(image_size)) if isinstance(patch_size, int) else side
    good = [size for size in range(1, whole + 1) if whole % size == 0]
    patches = [max(size for size in good if size < patch), *(s for s in good if s > patch)][:2]
    sides = [size for size in (side - side % patch, side + -side % patch) if size]
    return (
        f"patch_size {patch_size} does not tile image_size {image_size}: {side % patch} of {side} "
        f"pixels are left over; use patch_size {' or '.join(map(str, patches))}, "
        f"or a side of {' or '.join(map(str, sides))}"
    )


_PUBLISHED_DIGITS = ViTConfig(norm="post", final_norm=False)
_FAST_DIGITS = replace(
    _PUBLISHED_DIGITS,
    patch_size=8,
    stem="convolution",
    depth=2,
    heads=4,
    class_token=False,
    pooling="mean",
)
_IMAGENET = ViTConfig(image_size=224, channels=3, patch_size=16, depth=12, classes=1000)

PRESETS: Mapping[str, ViTConfig] = {
    # the published digit recogniser, and the small one of its position study
    "digits": _PUBLISHED_DIGITS,
    # (which, from 6,000 digits, hardly learns positions that start at 0.02: studies/positions.py)
    "digits-small": replace(
        _PUBLISHED_DIGITS, patch_size=7, width=64, depth=2, heads=4, token_std=1.0
    ),
    # ours, for one minute of two CPU cores
    "digits-fast": _FAST_DIGITS,
    # one block more, for the longer recipe
    "digits-best": replace(_FAST_DIGITS, depth=3),
    "ti16": replace(_IMAGENET, width=192, heads=3),
    "s16": replace(_IMAGENET, width=384, heads=6),
    "b16": replace(_IMAGENET, width=768, heads=12),
    "l16": replace(_IMAGENET, width=1024, depth=24, heads=16),
    "h14": replace(_IMAGENET, patch_size=14, width=1280, depth=32, heads=16),
    "textbook": ViTConfig(
        image_size=96,
        channels=3,
        patch_size=16,
        width=512,
        depth=2,
        class_token=False,
        pooling="mean",
    ),
}


def preset(name: str) -> ViTConfig:
    """The config of a named model; raises ConfigError with the nearest name.

    >>> preset("b16").tokens
    197
    """
    return settings.named("preset", name, PRESETS)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is trained. It never changes the model: that is the preset's."""

    optimizer: Literal["adamw", "muon"] = "muon"
    """Muon takes the hidden matrices and leaves the rest to AdamW."""
    learning_rate: float = 1e-3
    """Of AdamW."""
    matrix_rate: float = 0.02
    """Of Muon; not used by AdamW alone."""
    weight_decay: float = 0.01
    decay_everything: bool = False
    """Decay biases, norms, tokens and positions too."""
    batch_size: int = 128
    epochs: int = 3
    leave_out_last_batch: bool = False
    max_steps: int | None = None
    """Stop after this many steps, whatever `epochs` says."""
    warmup: float = 0.1
    """The fraction of all steps in which rates rise from zero."""
    schedule: Literal["constant", "linear", "cosine"] = "linear"
    """How rates fall to zero after the warm-up; constant does not."""
    clip: float | None = 1.0
    """Largest norm of the gradient."""
    label_smoothing: float = 0.0
    rotate: float = 0.0
    """Augmentation: largest turn in degrees."""
    shift: float = 0.0
    """Augmentation: largest move as a fraction of the side."""
    scale: float = 0.0
    """Augmentation: largest change of size as a fraction."""
    shear: float = 0.0
    """Augmentation: largest slant (columns moved per row)."""
    precision: Literal["float32", "bfloat16"] = "bfloat16"
    """Of the working weights and activations; the weights that are kept are float32."""
    average: float = 0.0
    """Decay of the moving average of the weights that is scored and kept; 0 keeps none."""
    patience: int | None = None
    """Stop after this many epochs in a row without a better validation loss."""
    min_delta: float = 0.0
    keep: Literal["best", "last"] = "last"
    """Which epoch's weights are kept: of the lowest validation loss, or the last."""

    def __post_init__(self) -> None:
        settings.check(self)
        for name in ("batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 1")
        for name in ("max_steps", "patience"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 1, or none")
        for name in ("warmup", "label_smoothing", "average", "shift", "scale", "shear"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 0 and below 1")
        for name in ("learning_rate", "matrix_rate", "weight_decay", "min_delta", "rotate"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}={getattr(self, name)} must not be negative")
        if self.clip is not None and self.clip <= 0:
            raise ConfigError(f"clip={self.clip} must be greater than 0, or none")


RECIPES: Mapping[str, Recipe] = {
    "fast": Recipe(),
    "best": Recipe(epochs=12, rotate=15.0, shift=0.08, scale=0.15, shear=0.25, average=0.998),
    "published": Recipe(
        optimizer="adamw",
        learning_rate=1e-4,
        weight_decay=1e-4,
        decay_everything=True,
        batch_size=64,
        epochs=100,
        leave_out_last_batch=True,
        warmup=0.0,
        schedule="constant",
        precision="float32",
        patience=15,
    ),
}


def recipe(name: str) -> Recipe:
    """A named recipe; raises ConfigError with the nearest name."""
    return settings.named("recipe", name, RECIPES)
