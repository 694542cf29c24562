"""How the cells of a study are given to processes: the one thing to replace for a cluster."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vitreous.errors import ConfigError
from vitreous.studies.cell import BEGUN, ERROR, has_ended

__all__ = ["Launcher", "LocalProcesses"]

HEARTBEAT = 0.2


@runtime_checkable
class Launcher(Protocol):
    """Runs `python -m vitreous.studies.cell FOLDER` for many folders, somewhere."""

    @property
    def how(self) -> Mapping[str, Any]:
        """`threads` for each cell and the `device` that it runs on."""
        ...

    def launch(self, folders: Sequence[Path]) -> Generator[Path | None, None, None]:
        """Give back each folder when its cell has ended, and None now and then meanwhile.

        Closing the generator asks what runs to stop, and waits for it.
        """
        ...


class LocalProcesses:
    """So many processes on this machine, each with its share of the cores. Raises ConfigError."""

    def __init__(self, workers: int | None = None, device: str = "cpu") -> None:
        cores = os.cpu_count() or 1
        self.workers = cores if workers is None else workers
        if self.workers < 1:
            raise ConfigError(f"workers={workers} must be at least 1")
        self.how = {"threads": max(cores // self.workers, 1), "device": device}

    def launch(self, folders: Sequence[Path]) -> Generator[Path | None, None, None]:
        """See `Launcher`."""
        waiting = list(reversed(folders))
        workers = [Worker(self.how["threads"]) for _ in range(min(self.workers, len(folders)))]
        try:
            while waiting or any(worker.folder for worker in workers):
                ended = [worker.take_away() for worker in workers if worker.is_done]
                yield from ended
                for worker in workers:
                    if worker.folder is None and waiting:
                        worker.give(waiting.pop())
                if not ended:
                    yield None
                    time.sleep(HEARTBEAT)
        finally:
            for worker in workers:
                worker.stop()


class Worker:
    """A process that does one cell after the other. If it dies, the next cell gets a new one."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.process: subprocess.Popen[str] | None = None
        self.folder: Path | None = None

    def give(self, folder: Path) -> None:
        """Let the process begin with a cell."""
        if self.process is None or self.process.poll() is not None:
            self.stop()
            self.process = start(self.threads)
        self.folder = folder
        (folder / BEGUN).touch()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it has just died; `is_done` will say so
                self.process.stdin.write(f"{folder.resolve()}\n")
                self.process.stdin.flush()

    @property
    def is_done(self) -> bool:
        """Whether its cell has ended, well or badly."""
        dead = self.process is None or self.process.poll() is not None
        return self.folder is not None and (has_ended(self.folder) or dead)

    def take_away(self) -> Path:
        """The folder of the cell that has ended; says in it where the process died."""
        folder, self.folder = self.folder, None
        assert folder is not None
        if not has_ended(folder) and self.process is not None:
            (folder / ERROR).write_text(f"its process died with exit code {self.process.poll()}")
        return folder

    def stop(self) -> None:
        """Ask the process to stop where it is, and wait until it has."""
        if self.process is not None:
            if self.process.stdin is not None:
                self.process.stdin.close()
            self.process.wait()


def start(threads: int) -> subprocess.Popen[str]:
    """One process. It is no child of the terminal: Ctrl-C is the study's to handle."""
    share = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    return subprocess.Popen(
        [sys.executable, "-m", "vitreous.studies.cell"],
        stdin=subprocess.PIPE,
        text=True,
        env=os.environ | share,
        start_new_session=True,
    )
