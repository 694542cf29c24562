"""Command lines on small data, in this process or in one that is killed or interrupted."""

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = {
    "image_size": "8",
    "patch_size": "4",
    "stem": "linear",
    "width": "8",
    "depth": "1",
    "heads": "2",
    "classes": "3",
    "dropout": "0.1",
    "optimizer": "adamw",
    "learning_rate": "0.01",
    "batch_size": "4",
    "epochs": "3",
    "precision": "float32",
    "rotate": "20.0",
    "shift": "0.1",
}

STOPPING = """
import os, signal, sys
from vitreous.cli import progress
from vitreous.cli.__main__ import main
from vitreous.training import run
step, kind, run.SECONDS_BETWEEN_SNAPSHOTS = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
plain = progress.tell_plainly
def tell(event):
    plain(event)
    if getattr(event, "number", None) == step:
        os.kill(os.getpid(), getattr(signal, kind))
progress.tell_plainly = tell
sys.exit(main(sys.argv[4:]))
"""


def words(data: Path, out: Path, **changes: object) -> list[str]:
    """What to type to train on small data."""
    settings = SETTINGS | {name: str(value) for name, value in changes.items()}
    pairs = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return ["train", "--source", str(data), "--out", str(out), "--device", "cpu", *pairs]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "100"} | more


def python(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A second Python, on one thread."""
    return subprocess.run(
        [sys.executable, *arguments], env=environment(**more), capture_output=True, text=True
    )


def stopped_in(step: int, kind: str, line: list[str], *, every: float = 0.0):
    """The command line in a process that sends itself a signal after this step (from 0)."""
    return python("-c", STOPPING, str(step), kind, str(every), *line)
