"""Attention maps, from outside: recomputed from the queries and keys that the model really used."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from vitreous.cost.sizes import in_bytes
from vitreous.errors import ConfigError, ShapeError
from vitreous.inspection.choice import (
    Layers,
    Queries,
    check_heads,
    check_kinds,
    chosen_layers,
    chosen_rows,
)
from vitreous.inspection.layout import Layout, layout_of
from vitreous.inspection.watch import Seen, watch, wide
from vitreous.nn.attention import attention_weights
from vitreous.shapes import Weights

__all__ = ["LIMIT", "Maps", "record_attention", "weights_of"]

LIMIT = 1 << 30
"""Bytes of maps that are kept unless told otherwise: one GiB."""


class Maps(Mapping[str, Weights]):
    """Attention by layer: name -> (b, h, q, k), in order; rows sum to one.

    Images of later forward passes are appended along b. `layout` tells the tokens apart.
    """

    def __init__(self, names: Sequence[str], queries: Queries | None = None) -> None:
        self.queries = queries
        """Which query rows were chosen; none means all."""
        self.layout: Layout | None = None
        self.chunks: dict[str, list[Tensor]] = {name: [] for name in names}

    def __getitem__(self, name: str) -> Weights:
        if name not in self.chunks:
            raise KeyError(f"no map is called {name!r}; recorded are: {', '.join(self.chunks)}")
        chunks = self.chunks[name]
        if not chunks:
            raise KeyError(f"{name} has not run yet: call the model inside the context")
        if len(chunks) > 1:
            chunks[:] = [torch.cat(chunks)]
        return chunks[0]

    def __iter__(self) -> Iterator[str]:
        return (name for name, chunks in self.chunks.items() if chunks)

    def __len__(self) -> int:
        return sum(map(bool, self.chunks.values()))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name} {tuple(map_.shape)}" for name, map_ in self.items())
        return f"Maps({shapes or 'nothing recorded yet'})"

    def _repr_html_(self) -> str:
        from vitreous.inspection.pictures import maps_html

        return maps_html(self)

    def add(self, name: str, chunk: Tensor) -> None:
        """Append the maps of one forward pass; raises ShapeError for another sequence length."""
        before = self.chunks[name]
        if before and before[0].shape[1:] != chunk.shape[1:]:
            raise ShapeError(
                f"{name}: maps of {tuple(chunk.shape[1:])} (heads, queries, keys) cannot stand "
                f"beside maps of {tuple(before[0].shape[1:])}; record them one after the other"
            )
        before.append(chunk)

    @property
    def bytes(self) -> int:
        """What all the maps take."""
        chunks = [chunk for chunks in self.chunks.values() for chunk in chunks]
        return sum(chunk.numel() * chunk.element_size() for chunk in chunks)


@contextmanager
def record_attention(
    model: nn.Module,
    *,
    layers: Layers | None = None,
    heads: Sequence[int] | None = None,
    queries: Queries | None = None,
    limit: int = LIMIT,
    device: torch.device | str | None = None,
    gradients: bool = False,
) -> Iterator[Maps]:
    """Inside, every forward pass leaves its attention: name -> (b, h, q, k), in float32.

    Whichever path computes it, the weights are recomputed from q and k, and the model's output,
    mode and hooks stay as they are. `layers` are numbers (-1 is the last block) or names, such as
    "pool.attn" of attention pooling, which is left out unless asked for; `heads` numbers; `queries`
    numbers or kinds of token: "class", "distillation", "registers", "patches". Only what is chosen
    is computed, in this order. Images of later forward passes are appended. In training mode
    a last block that makes only the pooled tokens has only their rows.

    The maps stay on the model's device unless `device` says otherwise, and are detached unless
    `gradients`. Raises ConfigError for a choice that does not exist, and, before anything is
    computed, where the maps would take more than `limit` bytes.
    """
    names = chosen_layers(model, layers)
    check_heads(model, names, heads)
    check_kinds(model, queries)
    maps = Maps(names, queries)

    def see(name: str, seen: Seen) -> None:
        rows = None if name.startswith("pool") else chosen_rows(seen, queries, maps.layout, name)
        check_size(seen, maps, heads, rows, limit)
        maps.add(name, weights_of(seen, heads, rows, gradients=gradients).to(device))

    with watch_grid(model, maps), watch(model, names, see):
        yield maps


@contextmanager
def watch_grid(model: nn.Module, maps: Maps) -> Iterator[None]:
    """Inside, the maps learn the layout of each sequence before its first attention runs."""
    config, stem = getattr(model, "config", None), getattr(model, "patch_embed", None)
    if config is None or stem is None or not hasattr(stem, "grid"):
        yield
        return

    def hook(module: Any, args: tuple[Any, ...]) -> None:
        maps.layout = layout_of(config, module.grid(args[0]))

    handle = stem.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def check_size(
    seen: Seen, maps: Maps, heads: Sequence[int] | None, rows: list[int] | None, limit: int
) -> None:
    """Raise ConfigError, with what would help, where this pass would not stay within the limit.

    The first layer of a pass speaks for all of them, so that nothing is computed in vain.
    """
    batch, all_heads, made, keys = seen.q.shape[0], *seen.q.shape[1:3], seen.k.shape[2]
    some = all_heads if heads is None else len(heads)
    queries = made if rows is None else len(rows)
    one = batch * some * queries * keys * 4
    counts = [len(chunks) for chunks in maps.chunks.values()]
    left = sum(count == min(counts) for count in counts)
    needed = maps.bytes + left * one
    if needed > limit:
        raise ConfigError(
            f"maps of {len(counts)} layers, {batch} images, {some} heads and {queries}×{keys} "
            f"tokens would need {in_bytes(needed)}, and the limit is {in_bytes(limit)}; choose "
            f"one layer ({in_bytes(maps.bytes + one)}), one head "
            f"({in_bytes(maps.bytes + left * one // some)}) or one query row "
            f"({in_bytes(maps.bytes + left * one // queries)}) with layers=, heads= or queries=, "
            "fewer images, or a higher limit="
        )


def weights_of(
    seen: Seen, heads: Sequence[int] | None, rows: list[int] | None, *, gradients: bool
) -> Weights:
    """The chosen part of the attention weights, in float32 whatever the model works in."""
    q, k, mask = seen.q, seen.k, seen.mask
    if heads is not None:
        q, k = q[:, list(heads)], k[:, list(heads)]
        mask = mask[:, list(heads)] if mask is not None and mask.shape[1] > 1 else mask
    if rows is not None:
        q = q[:, :, rows]
        mask = mask[:, :, rows] if mask is not None and mask.shape[2] > 1 else mask
    # Out of inference mode and autocast: maps are ordinary tensors of full precision.
    plain = nullcontext() if gradients else torch.no_grad()
    ordinary = nullcontext() if gradients else torch.inference_mode(mode=False)
    with ordinary, plain, torch.autocast(q.device.type, enabled=False):
        return attention_weights(wide(q), wide(k), mask)
