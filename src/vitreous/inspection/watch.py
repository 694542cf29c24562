"""What a model's attentions read, seen by hooks that leave no trace."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vitreous.nn.attention import Attend, Attention

__all__ = ["Seen", "attention_modules", "attention_parents", "blocks_of", "watch", "wide"]


class Seen(NamedTuple):
    """What one attention read in one forward pass, rotated already where positions rotate."""

    q: Float[Tensor, "b h q e"]
    k: Float[Tensor, "b h k e"]
    v: Float[Tensor, "b h k e"]
    mask: Tensor | None
    out: Float[Tensor, "b h q e"]
    """The values, averaged by attention, as the model's own path computed them."""


def attention_modules(model: nn.Module) -> dict[str, Attend]:
    """Every attention of a model by name, in order: blocks.0.attn, blocks.1.attn, ..."""
    found = {name: m for name, m in model.named_modules() if isinstance(m, Attend)}
    return {name.removeprefix("encoder.").removesuffix(".attend"): m for name, m in found.items()}


def blocks_of(model: nn.Module) -> list[str]:
    """The names of the encoder's attentions; of a model without an encoder, all."""
    names = list(attention_modules(model))
    return [name for name in names if name.startswith("blocks.")] or names


def attention_parents(model: nn.Module) -> dict[str, Attention]:
    """The whole attention round each `Attend`, under the same names."""
    found = {name: m for name, m in model.named_modules() if isinstance(m, Attention)}
    return {name.removeprefix("encoder."): m for name, m in found.items()}


@contextmanager
def watch(
    model: nn.Module, names: Sequence[str], see: Callable[[str, Seen], None]
) -> Iterator[None]:
    """Inside, `see` is told what each named attention read; afterwards no hook is left."""
    modules, handles = attention_modules(model), []

    def hook_for(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, args: tuple[Any, ...], named: Any, out: Tensor) -> None:
            q, k, v = args
            see(name, Seen(q, k, v, named.get("mask"), out))

        return hook

    try:
        for name in names:
            handle = modules[name].register_forward_hook(hook_for(name), with_kwargs=True)
            handles.append(handle)
        yield
    finally:
        for handle in handles:
            handle.remove()


def wide(x: Tensor) -> Tensor:
    """At least float32."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
