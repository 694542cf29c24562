"""A run's folder: which file says what, and how it is read back."""

import json
import shlex
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vitreous.checkpoints.files import write_json
from vitreous.errors import RunError
from vitreous.protocol import ledger
from vitreous.training.evaluate import Score

__all__ = [
    "HISTORY",
    "LEDGER",
    "MISTAKES",
    "REPORT",
    "RESULT",
    "RUN",
    "SNAPSHOT",
    "WRONG",
    "Result",
    "command_line",
    "now",
    "read_json",
    "read_list",
    "read_result",
    "record_test",
    "write_result",
]

RUN = "run.json"
HISTORY = "history.json"
RESULT = "result.json"
LEDGER = "test_ledger.jsonl"
SNAPSHOT = "resume.safetensors"
MISTAKES = "mistakes.json"
REPORT = "report.html"
WRONG = "wrong.json"


@dataclass(frozen=True)
class Result:
    """What a finished run came to."""

    test_accuracy: float
    n: int
    """Test images."""
    correct: int
    floor: float
    """Accuracy of always guessing the most common test label."""
    test_loss: float
    validation_accuracy: float
    validation_n: int
    train_seconds: float
    """All epochs, validation included; loading and the final scoring left out."""
    epochs: int
    steps: int
    kept: str
    """Which epoch's weights these are, and why."""
    parameters: int
    seed: int
    predictions_sha256: str
    weights_sha256: str


def write_result(out: Path, result: Result) -> None:
    """Record a result beside its weights."""
    write_json(out / RESULT, asdict(result))


def read_result(out: Path) -> Result:
    """The recorded result; raises RunError where there is none."""
    if not (out / RESULT).exists() and (out / SNAPSHOT).exists():
        raise RunError(f"{out}: this run has not ended; go on with: vitreous train --resume {out}")
    try:
        return Result(**read_json(out / RESULT))
    except TypeError as error:
        raise RunError(f"{out / RESULT}: not a result of ours: {error}") from error


def read_json(path: Path) -> dict[str, Any]:
    """A file's JSON object; raises RunError, with the place, for anything else."""
    content = parsed(path)
    if not isinstance(content, dict):
        raise RunError(f"{path}: a JSON object was expected")
    return content


def read_list(path: Path) -> list[Any]:
    """A file's JSON list; raises RunError, with the place, for anything else."""
    content = parsed(path)
    if not isinstance(content, list):
        raise RunError(f"{path}: a JSON list was expected")
    return content


def parsed(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RunError(f"{path}: there is no such file; is {path.parent} a run folder?") from error
    except (ValueError, OSError) as error:
        raise RunError(f"{path}: not readable as JSON: {error}") from error


def record_test(out: Path, purpose: str, tested: Score) -> None:
    """Write into the ledger that the test set was looked at."""
    touch = ledger.Touch(purpose, now(), command_line(), tested.correct, tested.n)
    ledger.write(out / LEDGER, touch)


def command_line() -> str:
    """What was typed, without the folders of the program."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def now() -> str:
    """This second in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
