"""Attention, written out. `attention_weights` is the definition; what is faster is held to it."""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.errors import ShapeError
from vitreous.nn.positions import rotate
from vitreous.shapes import Angles, Mask, Tokens, Weights

__all__ = [
    "Attend",
    "Attention",
    "attend_fused",
    "attend_plain",
    "attention_weights",
    "choose_path",
    "merge_heads",
    "split_heads",
]


def attention_weights(
    q: Float[Tensor, "b h q e"],
    k: Float[Tensor, "b h k e"],
    mask: Mask | Float[Tensor, "#b #h #q k"] | None = None,
) -> Weights:
    """How much each query reads from each key: softmax(q kᵀ / √e). Rows sum to one.

    A boolean mask is True where a query may read a key; a float mask is added to the scores, and
    -inf in it hides a key. A row whose every key is hidden is all zeros. Raises ShapeError for a
    mask of integers, whose sense nobody can know. Source: Vaswani et al., equation 1
    (arXiv 1706.03762).
    """
    scores = (q * q.shape[-1] ** -0.5) @ k.mT
    if mask is None:
        return scores.softmax(dim=-1)
    seen, bias = read_mask(mask, scores.dtype)
    if bias is not None:
        scores = scores + bias
    # The dtype's lowest number, not -inf: the softmax of a row of -inf would be NaN.
    scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
    return scores.softmax(dim=-1).masked_fill(~seen, 0.0)


def read_mask(mask: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """What may be read, and what is added there to scores of this dtype."""
    if mask.dtype == torch.bool:
        return mask, None
    if not mask.is_floating_point():
        raise ShapeError(
            f"a mask is boolean (True: may be read) or float (added to scores), not {mask.dtype}"
        )
    bias = mask.to(dtype)
    seen = bias > float("-inf")
    return seen, bias.masked_fill(~seen, 0.0)


def attend_plain(
    q: Float[Tensor, "b h q e"],
    k: Float[Tensor, "b h k e"],
    v: Float[Tensor, "b h k e"],
    *,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "b h q e"]:
    """The values, averaged by `attention_weights`: the definition."""
    return F.dropout(attention_weights(q, k, mask), dropout) @ v


def attend_fused(
    q: Float[Tensor, "b h q e"],
    k: Float[Tensor, "b h k e"],
    v: Float[Tensor, "b h k e"],
    *,
    mask: Tensor | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "b h q e"]:
    """`attend_plain` by torch's fused kernel, which never stores the weights."""
    if mask is None:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
    seen, bias = read_mask(mask, q.dtype)
    some = seen.any(dim=-1, keepdim=True)
    # A row that may read nothing reads everything, and its result is then thrown away.
    open_rows = seen | ~some
    kernel_mask = open_rows if bias is None else bias.masked_fill(~open_rows, float("-inf"))
    read = F.scaled_dot_product_attention(q, k, v, attn_mask=kernel_mask, dropout_p=dropout)
    return read.masked_fill(~some, 0.0)


PATHS: Mapping[str, Callable[..., Tensor]] = {"plain": attend_plain, "fused": attend_fused}


def choose_path(device: str, dtype: torch.dtype, *, training: bool) -> str:
    """Which path is fastest, from measurements; the one place where this is decided.

    On a CPU in bfloat16 the fused kernel's backward is 8 times slower at 50 tokens, and still 1.4
    times at 1025; everywhere else it wins. `benchmarks/attention_paths.py` makes the table.
    """
    return "plain" if device == "cpu" and training and dtype == torch.bfloat16 else "fused"


class Attend(nn.Module):
    """Reads values by the fastest path. It holds nothing, but a hook on it sees q and k."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout

    def forward(
        self,
        q: Float[Tensor, "b h q e"],
        k: Float[Tensor, "b h k e"],
        v: Float[Tensor, "b h k e"],
        *,
        mask: Tensor | None = None,
    ) -> Float[Tensor, "b h q e"]:
        path = choose_path(q.device.type, q.dtype, training=q.requires_grad)
        dropout = self.dropout if self.training else 0.0
        return PATHS[path](q, k, v, mask=mask, dropout=dropout)


class Attention(nn.Module):
    """Multi-head attention of `x` over `context`, or over itself when there is none.

    With an angle for each token of the context, the tokens of `x` are its first ones.

    One matrix makes queries, keys and values, stacked in that order, each head-major (as in timm).
    All heads together have as many numbers as a token, or `inner`.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        inner: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        weight_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.inner = inner or width
        self.qkv = nn.Linear(width, 3 * self.inner, bias=bias)
        self.attend = Attend(weight_dropout)
        self.proj = nn.Linear(self.inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "b q d"],
        context: Float[Tensor, "b k d"] | None = None,
        *,
        mask: Tensor | None = None,
        angle: Angles | None = None,
    ) -> Float[Tensor, "b q d"]:
        q, k, v = (split_heads(t, self.heads) for t in self.project(x, context))
        if angle is not None:
            q, k = rotate(q, angle[: q.shape[2]]), rotate(k, angle)
        return self.dropout(self.proj(merge_heads(self.attend(q, k, v, mask=mask))))

    def project(
        self, x: Float[Tensor, "b q d"], context: Float[Tensor, "b k d"] | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of `x`; keys and values of what it reads."""
        if context is None:
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            return q, k, v
        inner, weight, bias = self.inner, self.qkv.weight, self.qkv.bias
        q = F.linear(x, weight[:inner], None if bias is None else bias[:inner])
        kv = F.linear(context, weight[inner:], None if bias is None else bias[inner:])
        k, v = kv.chunk(2, dim=-1)
        return q, k, v


def split_heads(x: Tokens, heads: int) -> Float[Tensor, "b h n e"]:
    """Deal each token's numbers out to the heads: consecutive numbers stay together."""
    return rearrange(x, "b n (h e) -> b h n e", h=heads)


def merge_heads(x: Float[Tensor, "b h n e"]) -> Tokens:
    """Undo `split_heads`."""
    return rearrange(x, "b h n e -> b n (h e)")
