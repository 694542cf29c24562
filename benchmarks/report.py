"""What every benchmark says about its numbers: machine, command and n; and where it keeps them."""

import argparse
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import torch

from vitreous.training.job import machine

RESULTS = Path(__file__).parent / "results"


def parser(text: str | None, *, write: bool = True) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    options = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--threads", type=int, default=os.cpu_count(), help="default: all cores")
    if write:
        options.add_argument("--write", action="store_true", help="keep the table in results/")
    return options


BUSY = os.getloadavg()[0]


def setting() -> str:
    """The lines that stand under every table: where, with what and how it was measured."""
    flags = Path("/proc/cpuinfo")
    amx = ", AMX" if flags.exists() and "amx_bf16" in flags.read_text() else ""
    versions = f"torch {torch.__version__}, Python {platform.python_version()}"
    return (
        f"{machine(torch.device('cpu'))}{amx}; {versions}; {platform.system()}; "
        f"load before: {BUSY:.1f}\n\n    {command()}\n"
    )


def command() -> str:
    """The command, as it would be typed from the project's root."""
    script = Path(sys.argv[0])
    return shlex.join(["python", f"benchmarks/{script.name}", *sys.argv[1:]])


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A markdown table: words to the left, numbers to the right."""
    lines = [header, [":--", *["--:"] * (len(header) - 1)], *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def spread(values: Sequence[float], digits: int = 0) -> str:
    """Median and, in brackets, the least and the greatest."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def publish(name: str, text: str, *, write: bool) -> None:
    """Print a result, and keep it under its name and the day."""
    print(text)
    if write:
        path = RESULTS / f"{name}-{today()}.md"
        path.write_text(text, encoding="utf-8")
        print(f"written to {path}", file=sys.stderr)


def today() -> str:
    """The day, as in file names."""
    return datetime.now(UTC).date().isoformat()
