"""The decoder: tokens that read what came before them, and all of what an encoder saw."""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from vitreous.nn.attention import Attention
from vitreous.shapes import Angles, Tokens

__all__ = ["Decoder", "DecoderBlock", "causal_mask"]


def causal_mask(
    length: int, device: torch.device | None = None
) -> Bool[Tensor, "1 1 {length} {length}"]:
    """True where a token may read another: itself and those before it.

    >>> causal_mask(2)[0, 0].tolist()
    [[True, False], [True, True]]
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()[None, None]


class DecoderBlock(nn.Module):
    """Look back, look at the picture, then think; each adds what its branch says to the token.

    Pre-norm. Source: Vaswani et al., section 3.1 (arXiv 1706.03762).
    """

    def __init__(self, width: int, heads: int, mlp: nn.Module, *, norm_eps: float = 1e-6) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=norm_eps)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=norm_eps)
        self.cross_attn = Attention(width, heads)
        self.norm3 = nn.LayerNorm(width, eps=norm_eps)
        self.mlp = mlp

    def forward(
        self,
        x: Float[Tensor, "b q d"],
        context: Float[Tensor, "b k d"],
        *,
        past: Bool[Tensor, "1 1 q q"],
        mask: Bool[Tensor, "b 1 1 k"],
        angle: Angles | None = None,
    ) -> Float[Tensor, "b q d"]:
        x = x + self.attn(self.norm1(x), mask=past, angle=angle)
        x = x + self.cross_attn(self.norm2(x), context, mask=mask)
        return x + self.mlp(self.norm3(x))


class Decoder(nn.Module):
    """Decoder blocks in a row and a last norm. It knows neither letters nor images.

    `mask` says which tokens of the context are real: a padded one is set to zero at the entry, so
    that nothing in it, not even NaN, reaches a result.
    """

    def __init__(self, blocks: Iterable[DecoderBlock], norm: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm

    def forward(
        self,
        x: Tokens,
        context: Float[Tensor, "b k d"],
        *,
        mask: Bool[Tensor, "b k"],
        angle: Angles | None = None,
    ) -> Tokens:
        context = context.masked_fill(~mask[..., None], 0.0)
        past = causal_mask(x.shape[1], x.device)
        for block in self.blocks:
            x = block(x, context, past=past, mask=mask[:, None, None], angle=angle)
        return self.norm(x)
