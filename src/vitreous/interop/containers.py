"""Files that hold weights: safetensors, torch's pickles read safely, npz; whole, or in shards."""

import json
import pickle
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitreous.checkpoints.store import read_tensors
from vitreous.errors import CheckpointError

__all__ = ["Container", "open_weights"]

NAMES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
    "open_clip_model.safetensors",
    "open_clip_pytorch_model.bin",
)
"""What a folder is looked through for, in this order."""
ENDINGS = (".safetensors", ".npz", ".pth", ".pt", ".bin", ".ckpt")
HEADER_LIMIT = 100_000_000


@dataclass(frozen=True)
class Container:
    """What a file holds, as it stands there, and the settings beside it."""

    path: Path
    content: dict[str, Any]
    """Tensors by name; a pickle may nest them, among other things."""
    metadata: dict[str, str]
    config: dict[str, Any] | None
    """The `config.json` beside the weights, where there is one."""


def open_weights(place: str | Path) -> Container:
    """Read a file, a sharded index or a folder with one of them; nothing is ever unpickled.

    Raises CheckpointError, naming the file, for what is absent, damaged, or would run code.
    """
    path = choose(Path(place))
    metadata: dict[str, str] = {}
    if path.name.endswith(".index.json"):
        content: dict[str, Any] = read_shards(path)
    elif path.suffix == ".npz":
        content = read_npz(path)
    elif path.suffix == ".safetensors":
        refuse_duplicates(path)
        tensors, metadata = read_tensors(path)
        content = dict(tensors)
    elif path.suffix in ENDINGS:
        content = read_pickle(path)
    else:
        raise CheckpointError(
            f"{path}: {path.suffix or 'no ending'} is no weights file; use {', '.join(ENDINGS)}"
        )
    return Container(path, content, metadata, read_settings(path))


def choose(place: Path) -> Path:
    """The one weights file of a folder; a file is itself."""
    if not place.is_dir():
        if not place.exists():
            raise CheckpointError(f"{place}: there is no such file or folder")
        return place
    for name in NAMES:
        if (place / name).exists():
            return place / name
    found = sorted(path for path in place.iterdir() if path.suffix in ENDINGS)
    # An npz may be anything; beside a file that holds weights it is something else.
    found = [path for path in found if path.suffix != ".npz"] or found
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise CheckpointError(f"{place}: one weights file was expected, and there is {names}")
    return found[0]


def read_settings(path: Path) -> dict[str, Any] | None:
    """The library's own settings beside the weights."""
    for name in ("config.json", "open_clip_config.json"):
        file = path.parent / name
        if not file.is_file():
            continue
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise CheckpointError(f"{file}: not readable as JSON: {error}") from error
        if not isinstance(content, dict):
            raise CheckpointError(f"{file}: a JSON object was expected")
        return content
    return None


def read_shards(index: Path) -> dict[str, Tensor]:
    """The tensors of every shard that an index names; each must be where it says, and no other."""
    try:
        where = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        names = dict(where)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise CheckpointError(f"{index}: not an index of shards: {error}") from error
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(names.values())):
        if not isinstance(shard, str) or Path(shard).name != shard:
            raise CheckpointError(f"{index}: {shard!r} is no file beside it")
        part = open_weights(index.parent / shard).content
        expected = {name for name, file in names.items() if file == shard}
        if part.keys() != expected:
            odd = sorted(part.keys() ^ expected)
            raise CheckpointError(f"{index}: {shard} does not hold what it should: {some(odd)}")
        tensors |= part
    return tensors


def refuse_duplicates(path: Path) -> None:
    """The format forbids to name a tensor twice, and its reader does not look."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = file.read(size) if size < HEADER_LIMIT else b""
        names = [name for name, _ in json.loads(header, object_pairs_hook=list)]
    except (OSError, ValueError, struct.error, TypeError, RecursionError):
        return  # the reader that comes next says what is wrong
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CheckpointError(f"{path}: it names twice: {some(twice)}")


def read_npz(path: Path) -> dict[str, Tensor]:
    """The arrays of an npz file; one of Python objects is refused, for it would run code."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return {name: from_numpy(array) for name, array in arrays.items()}
    except (ValueError, TypeError, OSError, EOFError, KeyError, MemoryError) as error:
        raise CheckpointError(f"{path}: not a whole npz file of numbers: {error}") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError) as error:
        raise CheckpointError(f"{path}: not a whole npz file: {error}") from error
    except (SyntaxError, OverflowError, AttributeError, AssertionError) as error:
        raise CheckpointError(f"{path}: a header of an array is damaged: {error}") from error


def from_numpy(array: np.ndarray) -> Tensor:
    """An array as a tensor; numpy has no bfloat16 and stores it as two bytes of no meaning."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype == np.dtype("V2"):
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def read_pickle(path: Path) -> dict[str, Any]:
    """What torch saved, with `weights_only`: whatever else a pickle could do is refused."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        called = re.search(r"GLOBAL (\S+)", str(error))
        what = f" ({called[1]})" if called else ""
        raise CheckpointError(
            f"{path}: it holds more than tensors and plain values{what}, or is damaged; it is not "
            "unpickled, for that could run code"
        ) from error
    except Exception as error:  # a damaged pickle may fail in any way, and is refused in one
        raise CheckpointError(f"{path}: not a whole torch file: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: it holds a {type(content).__name__} and no state dict")
    return content


def first_line(error: BaseException) -> str:
    """The first line of an error, not too long."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def some(names: Iterable[str], limit: int = 6) -> str:
    """The first few names, and how many there are."""
    names = list(names)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest
