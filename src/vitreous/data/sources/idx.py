"""Folders of idx files, the format in which MNIST was published."""

import gzip
import struct
from math import prod
from pathlib import Path
from zlib import error as ZlibError

import numpy as np
from numpy.typing import NDArray

from vitreous.data.dataset import Dataset, from_arrays
from vitreous.errors import DataError

__all__ = ["has_idx", "load_idx", "read_idx"]

PATTERNS = {
    # what a file holds: how its name may go
    ("train", "images"): ("*train-images?idx3-ubyte", "*train-images?idx3-ubyte.gz"),
    ("train", "labels"): ("*train-labels?idx1-ubyte", "*train-labels?idx1-ubyte.gz"),
    ("test", "images"): (
        "*t10k-images?idx3-ubyte",
        "*t10k-images?idx3-ubyte.gz",
        "*test-images?idx3-ubyte",
        "*test-images?idx3-ubyte.gz",
    ),
    ("test", "labels"): (
        "*t10k-labels?idx1-ubyte",
        "*t10k-labels?idx1-ubyte.gz",
        "*test-labels?idx1-ubyte",
        "*test-labels?idx1-ubyte.gz",
    ),
}
UNSIGNED_BYTE = 0x08


def has_idx(folder: Path) -> bool:
    """Whether a folder holds any idx file of a known name."""
    return any(next(folder.glob(name), None) for names in PATTERNS.values() for name in names)


def load_idx(name: str, *, transpose: bool | None = None) -> Dataset:
    """The data set of a folder with train-images-idx3-ubyte and its three companions.

    Files may be gzipped. Images are read as stored, except that EMNIST's (files called emnist-…)
    are transposed, as they lie on their side in the files; `transpose` decides it by hand. Raises
    DataError for files that are missing, of another type or cut short.
    """
    folder = Path(name)
    paths = {part: find(folder, name, part) for part in PATTERNS}
    train = read_idx(paths["train", "images"]), read_idx(paths["train", "labels"])
    test = read_idx(paths["test", "images"]), read_idx(paths["test", "labels"])
    if transpose is None:
        transpose = paths["train", "images"].name.startswith("emnist")
    if not transpose:
        return from_arrays(name, train, test)
    train, test = (train[0].swapaxes(1, 2), train[1]), (test[0].swapaxes(1, 2), test[1])
    return from_arrays(name, train, test, note="images were transposed, as EMNIST's must be")


def find(folder: Path, name: str, part: tuple[str, str]) -> Path:
    """The one file of a folder that holds a part."""
    found = sorted(path for pattern in PATTERNS[part] for path in folder.glob(pattern))
    plain = PATTERNS[part][0].lstrip("*").replace("?", "-")
    if not found:
        raise DataError(f"{name} holds no {' '.join(part)}: {plain} (or .gz) was looked for")
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"{name} holds the {' '.join(part)} more than once: {names}")
    return found[0]


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of one idx file. Raises DataError, with the sizes, for one that is not whole."""
    data = read_bytes(path)
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != UNSIGNED_BYTE:
        raise DataError(f"{path} begins with {data[:4].hex(' ')}; it is no idx file of bytes")
    head = 4 + 4 * data[3]
    if len(data) < head:
        raise DataError(f"{path} is cut short: {len(data)} bytes of a header of {head}")
    shape = struct.unpack(f">{data[3]}I", data[4:head])
    if len(data) != head + prod(shape):
        raise DataError(
            f"{path} has {len(data)} bytes; its sizes {shape} need {head + prod(shape)}"
        )
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape).copy()


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, unpacked if it is gzipped."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, ZlibError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
