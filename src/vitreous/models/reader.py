"""A line of writing in, a string of digits out."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vitreous import settings
from vitreous.errors import ConfigError, ShapeError
from vitreous.nn.attention import Attention
from vitreous.nn.decoder import Decoder, DecoderBlock
from vitreous.nn.encoder import Block, Encoder
from vitreous.nn.mlp import Mlp
from vitreous.nn.positions import angles, grid_coords, sincos
from vitreous.shapes import Angles, Images, Tokens

__all__ = ["BLANK", "DIGITS", "START", "STOP", "Memory", "Reader", "ReaderConfig", "build_reader"]

DIGITS = "0123456789"
STOP = 10
"""The class that ends a string, behind the ten digits."""
START = 11
"""The token that every string begins with; it is read and never written."""
BLANK = 10
"""CTC's class for columns that show no digit."""


@dataclass(frozen=True, kw_only=True)
class ReaderConfig:
    """Every knob of a reader. Raises ConfigError."""

    height: int = 32
    """Pixel rows of a line."""
    patch_width: int = 4
    """Pixel columns of one patch, which is as high as the line."""
    stem: tuple[int, ...] = (32, 64, 128)
    """Channels of the convolutions before the patches: two halve the picture, one its rows."""
    width: int = 128
    depth: int = 4
    heads: int = 4
    mlp_ratio: float = 3.0
    decoder_depth: int = 2
    longest: int = 16
    """Digits after which a string ends, whatever the model says."""

    def __post_init__(self) -> None:
        settings.check(self)
        for name in ("height", "width", "depth", "heads", "decoder_depth", "longest"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be at least 1")
        if self.patch_width != 4 or self.height % 8 or len(self.stem) != 3:
            raise ConfigError(
                f"the stem halves rows three times and columns twice: height={self.height} must be "
                f"a multiple of 8, patch_width={self.patch_width} must be 4, and stem={self.stem} "
                "must hold three numbers"
            )
        if self.width % self.heads or self.width // self.heads % 2:
            raise ConfigError(
                f"width={self.width} over heads={self.heads} must be a whole, even number"
            )


class Memory(NamedTuple):
    """What the encoder saw of a batch of lines."""

    tokens: Tokens
    """One for each patch, from left to right."""
    real: Bool[Tensor, "b n"]
    """False for patches that are padding."""


class ColumnStem(nn.Module):
    """Pixels to one token for each patch of 4 columns, by 3×3 convolutions and one linear map."""

    def __init__(self, height: int, channels: tuple[int, ...], width: int) -> None:
        super().__init__()
        one, two, three = channels
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, one, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(one, two, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(two, three, 3, stride=(2, 1), padding=1),
            nn.GELU(),
        )
        self.proj = nn.Linear(three * (height // 8), width)

    def forward(self, images: Images, real: Bool[Tensor, "b n"]) -> Tokens:
        x, padded = images, not bool(real.all())
        for layer in self.convolutions:
            x = layer(x)
            if padded and isinstance(layer, nn.Conv2d):  # behind a line's end there is nothing
                x = x * columns(real, x.shape[3])[:, None, None].to(x.dtype)
        return self.proj(rearrange(x, "b c row col -> b col (c row)"))


def columns(real: Bool[Tensor, "b n"], width: int) -> Bool[Tensor, "b width"]:
    """Which pixel columns of a map of this width belong to real patches."""
    return real.repeat_interleave(width // real.shape[1], dim=1)


class Reader(nn.Module):
    """Encoder over the patches of a line, decoder that writes digit after digit, and a CTC head.

    Lines are (b, 1, 32, x), light ink on dark as 0..1, x a multiple of 4; `widths` says how many
    columns of each are real. `see` gives the memory, `write` the scores of every next token given
    the ones before (teacher forcing, or one step of a search), `columns` CTC's scores. Sources:
    Vaswani et al. (arXiv 1706.03762), TrOCR (arXiv 2109.10282), CTC (Graves et al. 2006).
    """

    def __init__(self, config: ReaderConfig) -> None:
        super().__init__()
        self.config = config
        self.temperature = 1.0
        """Divides log-probabilities of whole strings, so that they are true; fitted afterwards."""
        self.threshold = 0.0
        """Strings that are less likely right than this are rejected."""
        self.stem = ColumnStem(config.height, config.stem, config.width)
        self.encoder = Encoder(
            (encoder_block(config) for _ in range(config.depth)), nn.LayerNorm(config.width)
        )
        self.ctc = nn.Linear(config.width, len(DIGITS) + 1)
        self.token = nn.Embedding(len(DIGITS) + 2, config.width)
        self.decoder = Decoder(
            (decoder_block(config) for _ in range(config.decoder_depth)),
            nn.LayerNorm(config.width),
        )
        self.head = nn.Linear(config.width, len(DIGITS) + 1)

    def see(self, images: Images, widths: Int[Tensor, " b"]) -> Memory:
        """Encode lines. Raises ShapeError for lines of another height, or no whole patches."""
        _, channels, y, x = images.shape
        if channels != 1 or y != self.config.height or x % self.config.patch_width:
            raise ShapeError(
                f"this model reads lines of shape (b, 1, {self.config.height}, x), x a multiple "
                f"of {self.config.patch_width}; got {tuple(images.shape)}"
            )
        count = x // self.config.patch_width
        real = torch.arange(count, device=images.device) < widths[:, None] / self.config.patch_width
        images = images.masked_fill(~columns(real, x)[:, None, None], 0.0)
        mask = None if bool(real.all()) else real[:, None, None]
        tokens = self.stem(images, real)
        tokens = self.encoder(tokens, mask=mask, angle=self.angle(count, tokens))
        return Memory(tokens, real)

    def write(self, memory: Memory, before: Int[Tensor, "b q"]) -> Float[Tensor, "b q classes"]:
        """Scores of digits and STOP after each prefix; `before` begins with START."""
        x = self.token(before)
        places = sincos(grid_coords(memory.tokens.shape[1], device=x.device), x.shape[-1], 1000.0)
        context = memory.tokens + places.to(x.dtype)
        angle = self.angle(before.shape[1], x)
        return self.head(self.decoder(x, context, mask=memory.real, angle=angle))

    def columns(self, memory: Memory) -> Float[Tensor, "b n classes"]:
        """CTC's scores of digits and BLANK at each patch."""
        return self.ctc(memory.tokens)

    def forward(
        self, images: Images, widths: Int[Tensor, " b"], before: Int[Tensor, "b q"]
    ) -> tuple[Float[Tensor, "b q classes"], Float[Tensor, "b n classes"], Bool[Tensor, "b n"]]:
        """The decoder's scores, CTC's scores, and which patches are real."""
        memory = self.see(images, widths)
        return self.write(memory, before), self.columns(memory), memory.real

    def angle(self, count: int, like: Tensor) -> Angles:
        """Rotary angles of a row of tokens; any length works."""
        pairs = self.config.width // self.config.heads // 2
        return angles(grid_coords(count, device=like.device), pairs, 100.0)


def build_reader(config: ReaderConfig) -> Reader:
    """The reader of a config, with fresh weights from torch's global generator."""
    return Reader(config)


def encoder_block(config: ReaderConfig) -> Block:
    """One block of the encoder."""
    return Block(
        nn.LayerNorm(config.width),
        Attention(config.width, config.heads),
        nn.LayerNorm(config.width),
        Mlp(config.width, int(config.width * config.mlp_ratio)),
    )


def decoder_block(config: ReaderConfig) -> DecoderBlock:
    """One block of the decoder."""
    mlp = Mlp(config.width, int(config.width * config.mlp_ratio))
    return DecoderBlock(config.width, config.heads, mlp)
