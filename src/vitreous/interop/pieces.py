"""How one of our tensors is made of theirs, and the builder that puts a whole model together."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isqrt

import torch
from einops import rearrange
from torch import Tensor

from vitreous.errors import CheckpointError
from vitreous.interop.containers import some
from vitreous.interop.report import Action, Row

__all__ = ["Piece", "Pieces", "Tensors", "grid_of", "kernel"]


class Tensors(Mapping[str, Tensor]):
    """The tensors of a file; asking for one that is not there names it."""

    def __init__(
        self, tensors: Mapping[str, Tensor], origins: Mapping[str, str] | None = None
    ) -> None:
        self.tensors = dict(tensors)
        self.origins = origins or {}
        """The names in the file, of those that were renamed."""

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise CheckpointError(f"{name} is missing")
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def shape(self, name: str, axes: int) -> tuple[int, ...]:
        """The shape of a tensor that must have so many axes, none of them empty."""
        shape = tuple(self[name].shape)
        if len(shape) != axes or 0 in shape:
            raise CheckpointError(f"{name} is {shape}, and {axes} axes were expected")
        return shape

    def depth(self, prefix: str) -> int:
        """How many blocks there are: one more than the highest number after a prefix."""
        starts = (name.removeprefix(prefix) for name in self if name.startswith(prefix))
        numbers = (start.split(".")[0].split("/")[0] for start in starts)
        found = {int(number) for number in numbers if number.isdecimal()}
        if not found:
            raise CheckpointError(f"no tensor begins with {prefix}0")
        if max(found) >= len(self):
            raise CheckpointError(f"{prefix}{max(found)} has no blocks before it")
        return max(found) + 1

    def origin(self, name: str) -> str:
        """A tensor's name in the file."""
        return self.origins.get(name, name)

    def renamed(self, *rules: tuple[str, str]) -> "Tensors":
        """The tensors under names to which patterns were applied in turn.

        Raises CheckpointError where two would get one name.
        """
        tensors, origins = {}, {}
        for name, tensor in self.items():
            new = name
            for pattern, replacement in rules:
                new = re.sub(pattern, replacement, new)
            if new in tensors:
                raise CheckpointError(f"{name} and {origins[new]} are the same tensor")
            tensors[new], origins[new] = tensor, self.origin(name)
        return Tensors(tensors, origins)

    def has(self, start: str) -> bool:
        """Whether some name begins so."""
        return any(name.startswith(start) for name in self)


@dataclass(frozen=True)
class Piece:
    """One of our tensors: which of theirs it is made of, and how."""

    sources: tuple[str, ...]
    make: Callable[..., Tensor]
    action: Action
    note: str = ""


@dataclass
class Pieces:
    """A whole model, piece by piece, with what is left behind and why."""

    tensors: Tensors
    pieces: dict[str, Piece] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    """Tensors that have no place in the model, each with the reason."""

    def take(self, ours: str, theirs: str) -> None:
        """The same tensor under another name."""
        self.pieces[ours] = Piece((theirs,), lambda tensor: tensor, "taken")

    def linear(self, ours: str, theirs: str, *, bias: bool = True) -> None:
        """Weight and bias of a linear map or of a norm."""
        for part in ("weight", "bias")[: 1 + bias]:
            self.take(f"{ours}.{part}", f"{theirs}.{part}")

    def make(
        self,
        ours: str,
        theirs: str | Sequence[str],
        make: Callable[..., Tensor],
        action: Action,
        note: str = "",
    ) -> None:
        """A tensor that is computed from one or several of theirs."""
        sources = (theirs,) if isinstance(theirs, str) else tuple(theirs)
        self.pieces[ours] = Piece(sources, make, action, note)

    def then(
        self, ours: str, change: Callable[[Tensor], Tensor], action: Action, note: str
    ) -> None:
        """A tensor that is already made, changed once more."""
        old = self.pieces[ours]
        made = lambda *tensors: change(old.make(*tensors))  # noqa: E731
        self.pieces[ours] = Piece(old.sources, made, action, note)

    def join(self, ours: str, theirs: Sequence[str]) -> None:
        """Tensors stacked row by row: query, key and value."""
        self.make(ours, theirs, lambda *parts: torch.cat(parts), "joined")

    def joined_qkv(self, ours: str, names: str, *, bias: bool) -> None:
        """Three linear maps as one; `names` has a place for q, k and v: `attention.{}_proj`."""
        maps = [names.format(letter) for letter in "qkv"]
        self.join(f"{ours}.weight", [f"{name}.weight" for name in maps])
        if not bias:
            return
        if f"{maps[1]}.bias" in self.tensors:
            self.join(f"{ours}.bias", [f"{name}.bias" for name in maps])
        else:
            self.make(
                f"{ours}.bias",
                [f"{maps[0]}.bias", f"{maps[2]}.bias"],
                lambda q, v: torch.cat([q, torch.zeros_like(q), v]),
                "joined",
                "keys have no bias",
            )

    def patches(self, theirs: str, *, bias: bool = True) -> None:
        """A strided convolution as the linear map over its patches."""
        self.make("patch_embed.proj.weight", f"{theirs}.weight", kernel, "reshaped")
        if bias:
            self.take("patch_embed.proj.bias", f"{theirs}.bias")

    def leave(self, names: Sequence[str], reason: str) -> None:
        """Tensors that the model has no place for."""
        self.left |= {name: reason for name in names if name in self.tensors}

    def leave_all(self, start: str, reason: str) -> None:
        """Every tensor whose name begins so."""
        self.leave([name for name in self.tensors if name.startswith(start)], reason)

    def build(self, wanted: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[Row]]:
        """Our tensors, and a row for each of theirs. Raises CheckpointError for any remainder."""
        used = {source for piece in self.pieces.values() for source in piece.sources}
        missing = sorted(used - self.tensors.keys())
        surplus = sorted(map(self.tensors.origin, self.tensors.keys() - used - self.left.keys()))
        lacking = sorted(wanted.keys() - self.pieces.keys())
        if missing or surplus or lacking:
            raise CheckpointError(
                f"missing {some(missing + lacking) or 'nothing'}; "
                f"surplus {some(surplus) or 'nothing'}"
            )
        made = {}
        for ours, want in wanted.items():
            made[ours] = fitted(self.pieces[ours], self.tensors, ours, want)
        return made, self.rows()

    def rows(self) -> list[Row]:
        """One row for each tensor of the file."""
        parts: dict[str, list[str]] = {}
        for name in self.tensors:
            parts.setdefault(self.tensors.origin(name), []).append(name)
        return [self.row(origin, names) for origin, names in parts.items()]

    def row(self, origin: str, names: Sequence[str]) -> Row:
        """What became of one tensor, which may have been cut into several."""
        tensor = self.tensors[names[0]]
        shape = (len(names),) * (len(names) > 1) + tuple(tensor.shape)
        if names[0] in self.left:
            return Row(origin, shape, "dropped", note=self.left[names[0]])
        users = {
            ours: piece
            for ours, piece in self.pieces.items()
            if not set(names).isdisjoint(piece.sources)
        }
        first = next(iter(users.values()))
        action = "split" if len(users) > 1 else first.action
        return Row(origin, shape, action, ", ".join(users), first.note)


def fitted(piece: Piece, tensors: Tensors, ours: str, want: Tensor) -> Tensor:
    """One of our tensors, made and proven to fit. Raises CheckpointError, naming theirs."""
    sources = {tensors.origin(name): tensors[name] for name in piece.sources}
    theirs = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in sources.items())
    try:
        tensor = piece.make(*(real(name, tensor) for name, tensor in sources.items()))
    except (RuntimeError, ValueError, IndexError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{theirs} do not fit together for {ours}") from error
    if tensor.shape != want.shape:
        raise CheckpointError(f"{theirs} does not fit {ours}, which is {tuple(want.shape)}")
    if not tensor.isfinite().all():
        bad = {name: int((~tensor.isfinite()).sum()) for name, tensor in sources.items()}
        name = max(bad, key=lambda name: bad[name])
        raise CheckpointError(
            f"{name} holds {bad[name]} of {sources[name].numel()} numbers that are not finite"
        )
    return tensor.contiguous().clone()


def real(name: str, tensor: Tensor) -> Tensor:
    """A tensor of real numbers in float32; raises CheckpointError, naming it, for others."""
    if not tensor.is_floating_point():
        raise CheckpointError(f"{name} holds {tensor.dtype}, and real numbers were expected")
    return tensor.float()


def kernel(weight: Tensor) -> Tensor:
    """A convolution's kernel as rows of (channel, row, column)."""
    return rearrange(weight, "d c py px -> d (c py px)")


def grid_of(patches: int, name: str, grid: tuple[int, int] | None) -> tuple[int, int]:
    """The grid of so many patches: as given, or a square. Raises CheckpointError otherwise."""
    if grid is not None:
        if grid[0] * grid[1] != patches:
            raise CheckpointError(
                f"{name} has {patches} rows for patches, and a grid of {grid[0]}×{grid[1]} asks "
                f"for {grid[0] * grid[1]}"
            )
        return grid
    side = isqrt(patches)
    if side * side != patches or not side:
        raise CheckpointError(
            f"{name} has {patches} rows for patches, which is no square: say source_size"
        )
    return side, side
