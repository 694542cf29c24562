"""Which token of a sequence is what: class token, distillation token, registers, patches."""

from collections.abc import Mapping
from dataclasses import dataclass

from vitreous.config import Pair, ViTConfig
from vitreous.errors import ShapeError

__all__ = ["KINDS", "Layout", "layout_of"]

KINDS = ("class", "distillation", "registers", "patches")


@dataclass(frozen=True)
class Layout:
    """The order of a sequence. The grid is stored, never the square root of a count."""

    before: Mapping[str, int]
    """How many tokens of each kind stand before the patches, in order."""
    grid: Pair
    """Rows and columns of patches."""

    @property
    def prefix(self) -> int:
        """Tokens before the first patch."""
        return sum(self.before.values())

    @property
    def tokens(self) -> int:
        """Length of the whole sequence."""
        return self.prefix + self.grid[0] * self.grid[1]

    @property
    def kinds(self) -> Mapping[str, range]:
        """The places of every kind that there is, in order."""
        places, start = {}, 0
        for kind, count in self.before.items():
            if count:
                places[kind] = range(start, start + count)
            start += count
        return {**places, "patches": range(start, self.tokens)}

    @property
    def labels(self) -> list[str]:
        """What each token is called; rows and columns are counted from zero."""
        names = []
        for kind, places in self.kinds.items():
            if kind == "patches":
                rows, columns = self.grid
                names += [f"patch {row},{col}" for row in range(rows) for col in range(columns)]
            elif kind == "registers":
                names += [f"register {number}" for number in range(len(places))]
            else:
                names += [f"{kind} token"] * len(places)
        return names

    def fill(self, tokens: int) -> None:
        """Raise ShapeError where a sequence of so many tokens is not this one."""
        if tokens != self.tokens:
            rows, columns = self.grid
            raise ShapeError(
                f"{tokens} tokens are not {self.prefix} prefix tokens and a grid of "
                f"{rows}×{columns} = {rows * columns} patches"
            )


def layout_of(config: ViTConfig, grid: Pair | None = None) -> Layout:
    """The sequence of a config's model, or the one that images of another size make of it.

    >>> from vitreous.config import preset
    >>> layout_of(preset("b16")).kinds
    {'class': range(0, 1), 'patches': range(1, 197)}
    """
    before = {
        "class": int(config.class_token),
        "distillation": int(config.distillation_token),
        "registers": config.register_tokens,
    }
    return Layout(before, grid or config.grid)
