"""The two questions that everybody asks next: what if patches were half, or images double?"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from vitreous.config import Pair, Recipe, ViTConfig
from vitreous.cost.activations import saved
from vitreous.cost.flops import forward
from vitreous.cost.tokens import patch_tokens
from vitreous.errors import ConfigError

__all__ = ["Change", "changes"]

Size = int | Pair


@dataclass(frozen=True)
class Change:
    """One setting changed, and by how much each cost grows."""

    what: str
    setting: str
    before: Size
    after: Size
    tokens: int | None = None
    factors: Mapping[str, float] | None = None
    """Of tokens, of multiply-adds in all and by part, and of activations; an image each."""
    refused: str | None = None
    """Why there is no such model, where there is none."""

    @property
    def sentence(self) -> str:
        """What changed, and what it makes of the tokens."""
        if self.refused:
            return f"{self.what}: {self.refused}"
        move = f"{self.setting} {self.before} → {self.after}"
        return f"{self.what}, {move}: {self.tokens:,} tokens"


class Move(NamedTuple):
    """A setting, and what becomes of each of its sides."""

    what: str
    setting: str
    how: Callable[[int], int]


def changes(config: ViTConfig, recipe: Recipe) -> list[Change]:
    """Half the patch and double the image: each makes four times the patches.

    What is done once a token grows with the tokens, the attention products with their square;
    prefix tokens stay as many, so that the factors are a little below 4 and 16.
    """
    return [
        changed(config, recipe, Move("half the patch", "patch_size", half)),
        changed(config, recipe, Move("double the image", "image_size", double)),
    ]


def changed(config: ViTConfig, recipe: Recipe, move: Move) -> Change:
    """The change of one size; the sentence that refuses it where it cannot be built."""
    what, setting, how = move
    before: Size = getattr(config, setting)
    try:
        after = (how(before[0]), how(before[1])) if isinstance(before, tuple) else how(before)
        other = replace(config, **{setting: after})
    except ConfigError as error:
        return Change(what, setting, before, before, refused=str(error))
    old, new = costs(config, recipe), costs(other, recipe)
    factors = {part: new[part] / old[part] for part in old if old[part]}
    return Change(what, setting, before, after, other.tokens, factors)


def half(side: int) -> int:
    """Half a side; raises ConfigError for one that has none."""
    if side % 2:
        raise ConfigError(f"a patch of {side} pixels has no half")
    return side // 2


def double(side: int) -> int:
    """Twice a side."""
    return 2 * side


def costs(config: ViTConfig, recipe: Recipe) -> dict[str, int]:
    """Everything whose factor is of interest, for one image."""
    by_part = forward(config)
    return {
        "tokens": config.tokens,
        "patch_tokens": patch_tokens(config),
        "multiply_adds": by_part.total,
        **asdict(by_part),
        "activations": saved(config, recipe).total,
    }
