"""What a format is given to read, and what it answers with."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vitreous.config import Pair, ViTConfig
from vitreous.errors import CheckpointError
from vitreous.interop.pieces import Pieces, Tensors

__all__ = ["CLIP_COLOURS", "HALF", "IMAGENET", "Asked", "Colours", "Format", "Found"]


class Colours(NamedTuple):
    """By what pixels of 0..1 were normalised."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


HALF = Colours((0.5,) * 3, (0.5,) * 3)
IMAGENET = Colours((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
CLIP_COLOURS = Colours((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))

HEADS = {192: 3, 384: 6, 768: 12, 1024: 16, 1152: 16, 1280: 16, 1408: 16, 1536: 24}
"""Heads of the published widths, where a file does not say."""


@dataclass(frozen=True)
class Asked:
    """Bare tensors, the settings beside them, and what the caller knows."""

    tensors: Tensors
    settings: Mapping[str, Any]
    """The library's own config, empty where there is none."""
    heads: int | None = None
    source_size: int | Pair | None = None
    """Pixels of the images that the position table is for."""

    def head_count(self, width: int, *said: Any) -> int:
        """Heads: from the caller, from what the file says, or from the published widths.

        Raises CheckpointError where nobody says, or two disagree.
        """
        known = [heads for heads in said if heads is not None]
        if known and self.heads not in (None, known[0]):
            raise CheckpointError(f"heads={self.heads} was given, and the file says {known[0]}")
        heads = known[0] if known else self.heads or HEADS.get(width)
        if heads is None:
            raise CheckpointError(
                f"the file does not say how many heads it has, and width {width} is none of the "
                "published ones: give heads=... (on the command line --heads)"
            )
        if not isinstance(heads, int) or heads < 1 or width % heads:
            raise CheckpointError(f"heads={heads} does not divide the width {width}")
        return heads

    def said(self, name: str, default: Any = None) -> Any:
        """A setting of the library's config."""
        value = self.settings.get(name)
        return default if value is None else value

    def check(self, name: str, found: Any) -> None:
        """Raise CheckpointError where the config beside the weights says another number."""
        said = self.settings.get(name)
        if said is not None and said != found:
            raise CheckpointError(f"config.json says {name}={said}, and the tensors say {found}")

    def grid(self, patch: Pair, said: Any) -> Pair | None:
        """The grid that the caller or the config asks for, if either does."""
        size = self.source_size if self.source_size is not None else said
        if size is None:
            return None
        rows, columns = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        if rows % patch[0] or columns % patch[1]:
            raise CheckpointError(f"patches of {patch} do not tile an image of {rows}×{columns}")
        return rows // patch[0], columns // patch[1]


@dataclass(frozen=True)
class Found:
    """The model that a file describes."""

    config: ViTConfig
    pieces: Pieces
    colours: Colours | None
    """None where the library defines no normalisation."""
    notes: list[str] = field(default_factory=list)
    class_names: list[str] | None = None


@dataclass(frozen=True)
class Format:
    """One way to store a Vision Transformer: how to know it, and how to read it."""

    name: str
    knows: Callable[[Tensors], bool]
    read: Callable[[Asked], Found]


def ratio(hidden: int, width: int) -> float:
    """The `mlp_ratio` that gives exactly this hidden width."""
    quotient = hidden / width
    return quotient if int(width * quotient) == hidden else math.nextafter(quotient, math.inf)
