"""Cells in a process of their own: `python -m vitreous.studies.cell [FOLDER]`.

A folder holds `task.json` and gets `outcome.json`, or `error.txt`. Without a folder, folders are
read from standard input, a line each; when that closes, whoever started the process is gone: it
saves where it is and stops. The next one with the same folder goes on there.
"""

import base64
import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import torch

import vitreous
from vitreous import settings
from vitreous.checkpoints.files import write_bytes, write_json
from vitreous.config import Recipe, ViTConfig
from vitreous.errors import VitreousError
from vitreous.studies.material import Material, load_material
from vitreous.studies.scores import RandomScores, measure_scores
from vitreous.training.folder import (
    HISTORY,
    RESULT,
    RUN,
    SNAPSHOT,
    WRONG,
    Result,
    now,
    read_json,
    read_list,
    read_result,
)
from vitreous.training.interrupt import interrupts_held
from vitreous.training.job import Job, choose_device, machine
from vitreous.training.run import run

__all__ = ["BEGUN", "ERROR", "OUTCOME", "has_ended", "pack", "unpack", "write_task"]

TASK, OUTCOME, ERROR, LOCK = "task.json", "outcome.json", "error.txt", "lock"
BEGUN = "begun"
STOPPED = 130
PARTS: Mapping[str, type] = {
    kind.__name__: kind for kind in (ViTConfig, Recipe, Material, RandomScores)
}
CURVES = ("train_loss", "validation_loss", "validation_accuracy")
MEASURES = ("test_accuracy", "validation_accuracy", "test_loss", "floor", "parameters")


def write_task(folder: Path, parts: Sequence[Any], seed: int, how: Mapping[str, Any]) -> None:
    """Say in a folder what its process is to do, and how: on which device, with which threads."""
    folder.mkdir(parents=True, exist_ok=True)
    for earlier in (ERROR, BEGUN):
        (folder / earlier).unlink(missing_ok=True)
    described = [[type(part).__name__, settings.to_dict(part)] for part in parts]
    write_json(folder / TASK, {"parts": described, "seed": seed, **how})


def perform(folder: Path) -> None:
    """Do a folder's task, and leave there what came of it, or why nothing did."""
    try:
        with filelock.FileLock(folder / LOCK, timeout=60):
            found = perform_task(folder)
    except Exception as error:  # whatever it is: the other cells of the study go on
        kind = "" if isinstance(error, VitreousError) else f"{type(error).__name__}: "
        write_bytes(folder / ERROR, f"{kind}{error}".encode())
        return
    write_json(folder / OUTCOME, found)


def perform_task(folder: Path) -> dict[str, Any]:
    """What a folder's task came to, and how that was made."""
    task = read_json(folder / TASK)
    torch.set_num_threads(task["threads"])
    parts = [settings.from_dict(PARTS[kind], values) for kind, values in task["parts"]]
    started, clock = now(), time.monotonic()
    device = choose_device(task["device"])
    found = measure(parts, task["seed"], folder / "run", device)
    return {
        **found,
        "seconds": round(time.monotonic() - clock, 3),
        "threads": task["threads"],
        "machine": machine(device),
        "versions": {"vitreous": vitreous.__version__, "torch": str(torch.__version__)},
        "started": started,
    }


def has_ended(folder: Path) -> bool:
    """Whether a folder's task has come to something, or failed."""
    return (folder / OUTCOME).exists() or (folder / ERROR).exists()


def folders_given() -> Iterator[Path]:
    """Folders from standard input as they come; its end stops this process."""
    given: queue.Queue[Path] = queue.Queue()

    def listen() -> None:
        for line in sys.stdin:
            given.put(Path(line.strip()))
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield given.get()


def measure(parts: Sequence[Any], seed: int, folder: Path, device: torch.device) -> dict[str, Any]:
    """What the parts come to with this seed."""
    if isinstance(parts[0], RandomScores):
        return {"measures": measure_scores(parts[0], seed)}
    config, recipe, material = parts
    data = load_material(material, config.image_shape)
    job = Job(config, recipe, data, seed, device)
    result = trained(job, folder)
    history = read_list(folder / HISTORY)
    return {
        "measures": {name: getattr(result, name) for name in MEASURES},
        "train_seconds": round(result.train_seconds, 3),
        "curves": {name: [round(epoch[name], 6) for epoch in history] for name in CURVES},
        "n": result.n,
        "wrong": pack(read_list(folder / WRONG), result.n),
        "data_sha256": data.hashes,
    }


def trained(job: Job, folder: Path) -> Result:
    """The job's result, from wherever the folder's run is; ends the process where it is to stop."""
    if (folder / RESULT).exists() and not (folder / SNAPSHOT).exists():
        return read_result(folder)
    events = run(job, folder, resume=(folder / RUN).exists())
    with interrupts_held() as interrupted, contextlib.closing(events):
        for event in events:
            if isinstance(event, Result):
                return event
            if interrupted():
                break
    sys.exit(STOPPED)


def pack(indices: Sequence[int], n: int) -> str:
    """Which of n, as text: one bit each.

    >>> unpack(pack([3, 8], 10), 10)
    {8, 3}
    """
    bits = np.zeros(n, dtype=np.uint8)
    bits[list(indices)] = 1
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


def unpack(text: str, n: int) -> set[int]:
    """Undo `pack`."""
    bits = np.unpackbits(np.frombuffer(base64.b64decode(text), dtype=np.uint8), count=n)
    return set(np.flatnonzero(bits).tolist())


if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]) if sys.argv[1:] else folders_given():
        perform(place)
