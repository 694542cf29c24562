"""NumPy archives of x_train, y_train, x_test, y_test."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile
from zlib import error as ZlibError

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from vitreous.data.dataset import Dataset, from_arrays
from vitreous.errors import DataError

__all__ = ["load_npz"]

KEYS = ("x_train", "y_train", "x_test", "y_test")
DAMAGE = (OSError, ValueError, EOFError, BadZipFile, ZlibError, NotImplementedError, SyntaxError)


def load_npz(name: str, path: str | Path | None = None) -> Dataset:
    """The data set of an .npz file; a `class_names` array of texts names its classes.

    Nothing is unpickled. Raises DataError, with the keys found, for an archive of another kind.
    """
    arrays = read_arrays(name, Path(path or name))
    missing = [key for key in KEYS if key not in arrays]
    if missing:
        raise DataError(
            f"{name} holds {', '.join(arrays) or 'nothing'}; {', '.join(missing)} is missing "
            f"({', '.join(KEYS)} are read)"
        )
    names = tuple(map(str, arrays["class_names"])) if "class_names" in arrays else None
    x_train, y_train, x_test, y_test = (arrays[key] for key in KEYS)
    return from_arrays(name, (x_train, y_train), (x_test, y_test), class_names=names)


def read_arrays(name: str, path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an archive that are no pickles."""
    try:
        with path.open("rb") as file:  # numpy alone would leave a damaged file open
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, NpzFile):
                return {key: read_array(name, archive, key) for key in archive.files}
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{name} does not exist") from error
    except DAMAGE as error:
        raise DataError(f"{name} is damaged or no .npz file: {error}") from error
    raise DataError(f"{name} holds a single array, no archive of {', '.join(KEYS)}")


def read_array(name: str, archive: NpzFile, key: str) -> NDArray[Any]:
    """One array of an archive."""
    try:
        return archive[key]
    except DAMAGE as error:
        raise DataError(f"{name}: {key} cannot be read: {error}") from error
