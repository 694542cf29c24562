"""Made-up strings, drawn once and kept in files, so that training never waits for the pen."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from vitreous.data.strings import LEGIBLE, Bank, Drawn, Ranges, draw_string
from vitreous.errors import DataError
from vitreous.frontends.lines import HEIGHT

__all__ = ["SHARD", "Strips", "pack", "read_shard", "shard_name", "write_shard"]

SHARD = 6000
"""Strings in a file."""


class Strips(NamedTuple):
    """Strips of different widths, side by side."""

    levels: NDArray[np.uint8]
    """(32, columns of all)."""
    ends: NDArray[np.int64]
    """(n,): where each strip ends."""
    texts: tuple[str, ...]

    def strip(self, index: int) -> NDArray[np.uint8]:
        """One strip (32, width)."""
        start = int(self.ends[index - 1]) if index else 0
        return self.levels[:, start : int(self.ends[index])]

    @property
    def widths(self) -> NDArray[np.int64]:
        """(n,): columns of each strip."""
        return np.diff(self.ends, prepend=0)


def pack(drawn: Iterator[Drawn] | list[Drawn]) -> Strips:
    """Drawn strings as one."""
    drawn = list(drawn)
    levels = [one.levels for one in drawn] or [np.zeros((HEIGHT, 0), np.uint8)]
    return Strips(
        np.concatenate(levels, axis=1),
        np.cumsum([a.shape[1] for a in levels], dtype=np.int64),
        tuple(one.text for one in drawn),
    )


def shard_name(number: int) -> str:
    """The file of a shard.

    >>> shard_name(3)
    'strings-0003.npz'
    """
    return f"strings-{number:04}.npz"


def write_shard(
    folder: Path,
    bank: Bank,
    seed: int,
    number: int,
    count: int = SHARD,
    *,
    ranges: Ranges = LEGIBLE,
) -> None:
    """Draw one shard's strings, unless its file is there already: it is whole or absent."""
    path = folder / shard_name(number)
    if path.exists():
        return
    first = number * count
    strips = pack(
        [draw_string(bank, seed, index, ranges=ranges) for index in range(first, first + count)]
    )
    content = io.BytesIO()
    np.savez(content, levels=strips.levels, ends=strips.ends, texts=np.array(strips.texts))
    beside = path.with_suffix(f".{os.getpid()}.part")
    beside.write_bytes(content.getvalue())
    beside.replace(path)


def read_shard(folder: Path, number: int) -> Strips:
    """The strings of a shard. Raises DataError for a file that holds none."""
    path = folder / shard_name(number)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            return Strips(file["levels"], file["ends"], tuple(map(str, file["texts"])))
    except (OSError, EOFError, BadZipFile, ValueError, KeyError) as error:
        raise DataError(f"{path}: no whole file of strings: {error}; delete it") from error
