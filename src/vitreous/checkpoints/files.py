"""Files that are whole or absent: written beside their place, then renamed into it."""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from vitreous.errors import RunError

__all__ = ["require_room", "write_bytes", "write_json"]

CHUNK = 1 << 20


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically: a reader sees the old one or the new one, also after a crash.

    Raises RunError, and leaves the old one, where the disk is full or does not let us.
    """
    try:
        replace_whole(path, content)
    except OSError as error:
        raise RunError(
            f"{path}: could not be written: {error.strerror}; what was there is unchanged"
        ) from error


def replace_whole(path: Path, content: bytes) -> None:
    """Write beside the file, then rename."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, content: Any) -> None:
    """Write readable JSON atomically; NaN, for which JSON has no word, is refused."""
    write_bytes(path, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode())


def require_room(folder: Path, size: int) -> None:
    """Make the folder and prove that `size` bytes can be written there.

    Raises RunError, with the numbers, where it cannot be made or written, or the disk is too full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free < size:
            raise RunError(f"{folder}: {size:,} bytes are needed and {free:,} are free on the disk")
        probe = folder / ".room"
        try:
            with probe.open("wb") as file:
                for start in range(0, size, CHUNK):
                    file.write(bytes(min(CHUNK, size - start)))
                file.flush()
                os.fsync(file.fileno())
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        raise RunError(f"{folder}: cannot write {size:,} bytes there: {error.strerror}") from error
