"""The test ledger: every look at the test set, one line each, never taken back."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from vitreous.errors import RunError

__all__ = ["Touch", "read", "write"]


@dataclass(frozen=True)
class Touch:
    """One scoring of the test set."""

    purpose: str
    """train, evaluate or verify."""
    time: str
    """UTC, ISO 8601."""
    command: str
    correct: int
    n: int


def write(path: Path, touch: Touch) -> None:
    """Append one line, and be sure that it is on the disk."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(touch)) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Touch]:
    """Every touch so far, oldest first; raises RunError for a line that is none."""
    if not path.exists():
        return []
    touches = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            touches.append(Touch(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise RunError(f"{path}, line {number}: not a ledger entry: {line[:80]}") from error
    return touches
