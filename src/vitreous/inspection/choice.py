"""Which layers, heads and query rows are looked at; what does not exist is refused."""

from collections.abc import Sequence
from typing import Any

from torch import nn

from vitreous.errors import ConfigError
from vitreous.inspection.layout import KINDS, Layout, layout_of
from vitreous.inspection.watch import Seen, attention_modules, attention_parents, blocks_of

__all__ = ["Layers", "Queries", "check_heads", "check_kinds", "chosen_layers", "chosen_rows"]

Layers = Sequence[int | str]
Queries = int | str | Sequence[int | str]


def chosen_layers(model: nn.Module, layers: Layers | None) -> list[str]:
    """Names of the chosen attentions, in the model's order; raises ConfigError."""
    every, blocks = list(attention_modules(model)), blocks_of(model)
    if layers is None:
        return blocks
    wanted = {layer if isinstance(layer, str) else at(blocks, layer, "layer") for layer in layers}
    unknown = sorted(wanted - set(every))
    if unknown:
        raise ConfigError(f"no layer is called {unknown[0]!r}; there are {', '.join(every)}")
    return [name for name in every if name in wanted]


def at(things: Sequence[Any], index: int, what: str) -> Any:
    """One of them, counted from the end where negative; raises ConfigError where there is none."""
    if not -len(things) <= index < len(things):
        last = f"they go from 0 to {len(things) - 1}" if things else "there are none"
        raise ConfigError(f"there is no {what} {index}; {last}")
    return things[index]


def check_heads(model: nn.Module, names: Sequence[str], heads: Sequence[int] | None) -> None:
    """Raise ConfigError for a head that one of the layers does not have."""
    for name, module in attention_parents(model).items():
        for head in heads or () if name in names else ():
            at(range(module.heads), head, f"head of {name}")


def check_kinds(model: nn.Module, queries: Queries | None) -> None:
    """Raise ConfigError for a kind of token that the model does not have."""
    kinds = [query for query in listed(queries) if isinstance(query, str)]
    config = getattr(model, "config", None)
    known = layout_of(config).kinds if kinds and config is not None else {}
    for kind in kinds:
        if kind not in known:
            there = ", ".join(known) or "none that is known"
            word = "no kind of token" if kind not in KINDS else "no kind of token of this model"
            raise ConfigError(f"{kind!r} is {word}; it has: {there}")


def listed(queries: Queries | None) -> Sequence[int | str]:
    """One query or several as a list."""
    if queries is None:
        return ()
    return [queries] if isinstance(queries, int | str) else queries


def chosen_rows(
    seen: Seen, queries: Queries | None, layout: Layout | None, name: str
) -> list[int] | None:
    """Numbers of the chosen query rows, or none for all that were made; raises ConfigError."""
    if queries is None:
        return None
    made, tokens = seen.q.shape[2], seen.k.shape[2]
    rows: list[int] = []
    for query in listed(queries):
        if isinstance(query, int):
            rows.append(at(range(tokens), query, "query row"))
        elif layout is not None:
            layout.fill(tokens)
            rows += layout.kinds[query]
    if max(rows, default=0) >= made:
        raise ConfigError(
            f"{name} made only the first {made} of {tokens} query rows, as a last block does in "
            f"training mode; row {max(rows)} is none of them: call model.eval(), or choose others"
        )
    return rows
