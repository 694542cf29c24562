"""The encoder: a stack of blocks that knows tokens, a mask and angles, and nothing else."""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.nn.attention import read_mask
from vitreous.shapes import Angles, Tokens

__all__ = ["Block", "DropPath", "Encoder", "LayerScale"]


class LayerScale(nn.Module):
    """One learned factor for each number of a branch. Source: CaiT (arXiv 2103.17239)."""

    def __init__(self, width: int, start: float) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.full((width,), start))

    def forward(self, x: Tokens) -> Tokens:
        return x * self.gamma


class DropPath(nn.Module):
    """In training, drop the branch of each sample with this probability and rescale the rest.

    At rate 1 every branch is dropped: zeros. Source: stochastic depth (arXiv 1603.09382).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Float[Tensor, "b ..."]) -> Float[Tensor, "b ..."]:
        if not self.training or self.rate == 0:
            return x
        kept = torch.rand(len(x), *[1] * (x.ndim - 1), device=x.device) >= self.rate
        return x * kept / max(1 - self.rate, torch.finfo(x.dtype).tiny)


class Block(nn.Module):
    """Look around, then think; each adds what its branch says to the token.

    Pre-norm: x + attn(norm1(x)), then x + mlp(norm2(x)). Post-norm: norm1(x + attn(x)), then
    norm2(x + mlp(x)). `scales` are two modules on the branches (LayerScale), or none. With `keep`
    only the first so many tokens go on: they read all the others, which nobody will ask.
    """

    def __init__(
        self,
        norm1: nn.Module,
        attn: nn.Module,
        norm2: nn.Module,
        mlp: nn.Module,
        *,
        post_norm: bool = False,
        scales: tuple[nn.Module, nn.Module] | None = None,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm1, self.attn = norm1, attn
        self.norm2, self.mlp = norm2, mlp
        self.post_norm = post_norm
        self.ls1, self.ls2 = scales or (nn.Identity(), nn.Identity())
        self.drop_path = DropPath(drop_path)

    def forward(
        self,
        x: Tokens,
        *,
        mask: Tensor | None = None,
        angle: Angles | None = None,
        keep: int | None = None,
    ) -> Float[Tensor, "b kept d"]:
        if self.post_norm:
            x = self.norm1(x[:, :keep] + self.look(x, mask, angle, keep))
            return self.norm2(x + self.think(x))
        x = x[:, :keep] + self.look(self.norm1(x), mask, angle, keep)
        return x + self.think(self.norm2(x))

    def look(
        self, x: Tokens, mask: Tensor | None, angle: Angles | None, keep: int | None
    ) -> Float[Tensor, "b kept d"]:
        """The branch in which tokens read each other."""
        if keep is None:
            return self.drop_path(self.ls1(self.attn(x, mask=mask, angle=angle)))
        mask = None if mask is None else mask[:, :, :keep]
        return self.drop_path(self.ls1(self.attn(x[:, :keep], x, mask=mask, angle=angle)))

    def think(self, x: Tokens) -> Tokens:
        """The branch in which each token is by itself."""
        return self.drop_path(self.ls2(self.mlp(x)))


class Encoder(nn.Module):
    """Blocks in a row and a last norm. It never knows whether it reads image, text or sound.

    A token that no query may read is set to zero at the entry, so that nothing in a padded slot,
    not even NaN, reaches a result or a gradient. With `keep` only the first so many tokens come
    out, and the last block computes no others.
    """

    def __init__(self, blocks: Iterable[Block], norm: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm

    def forward(
        self,
        x: Tokens,
        *,
        mask: Tensor | None = None,
        angle: Angles | None = None,
        keep: int | None = None,
    ) -> Float[Tensor, "b kept d"]:
        if mask is not None:
            x = x.masked_fill(unread(mask, x.dtype), 0.0)
        for left, block in enumerate(self.blocks, start=1 - len(self.blocks)):
            x = block(x, mask=mask, angle=angle, keep=None if left else keep)
        return self.norm(x[:, :keep])


def unread(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """(b, n, 1): True for the tokens that no query of any head may read."""
    seen, _ = read_mask(mask, dtype)
    return ~seen.flatten(1, -2).any(dim=1)[..., None]
