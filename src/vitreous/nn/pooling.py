"""Many tokens to one vector of features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.nn.attention import Attention
from vitreous.shapes import Tokens

__all__ = ["AttentionPool", "ClassPool", "DistilledPool", "MapPool", "MeanPool"]


class ClassPool(nn.Module):
    """The class token, which stands first."""

    reads = 1
    """How many tokens, from the first, it needs; none means all."""

    def forward(self, tokens: Tokens) -> Float[Tensor, "b d"]:
        return tokens[:, 0]


class DistilledPool(nn.Module):
    """The mean of class and distillation token. Source: DeiT, section 4 (arXiv 2012.12877)."""

    reads = 2

    def forward(self, tokens: Tokens) -> Float[Tensor, "b d"]:
        return (tokens[:, 0] + tokens[:, 1]) / 2


class MeanPool(nn.Module):
    """The mean of the patch tokens; prefix tokens are left out."""

    reads = None

    def __init__(self, prefix: int) -> None:
        super().__init__()
        self.prefix = prefix

    def forward(self, tokens: Tokens) -> Float[Tensor, "b d"]:
        return tokens[:, self.prefix :].mean(dim=1)


class AttentionPool(nn.Module):
    """One learned query reads every token.

    Source: Set Transformer, section 3.2 (arXiv 1810.00825).
    """

    reads = None

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(1, 1, width))
        nn.init.normal_(self.query, std=0.02)
        self.attn = Attention(width, heads)

    def forward(self, tokens: Tokens) -> Float[Tensor, "b d"]:
        return self.attn(self.query.expand(len(tokens), -1, -1), tokens)[:, 0]


class MapPool(AttentionPool):
    """Attention pooling over the patches, then what an MLP adds to it: SigLIP's head.

    Source: Zhai et al., Scaling Vision Transformers, section 3.2 (arXiv 2106.04560).
    """

    def __init__(
        self, width: int, heads: int, *, norm: nn.Module, mlp: nn.Module, prefix: int
    ) -> None:
        super().__init__(width, heads)
        self.norm, self.mlp, self.prefix = norm, mlp, prefix

    def forward(self, tokens: Tokens) -> Float[Tensor, "b d"]:
        pooled = super().forward(tokens[:, self.prefix :])
        return pooled + self.mlp(self.norm(pooled)[:, None])[:, 0]
