"""How fast a machine was when it was measured: a file that `vitreous measure` writes."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from vitreous.config import ViTConfig
from vitreous.errors import DataError
from vitreous.settings import setting_types

__all__ = ["ACTIVATIONS", "HEAD_DIMS", "NAMES", "Calibration", "Number", "calibration_file", "read"]

Number = int | float
Curve = Sequence[tuple[Number, Number]]
"""Pairs of a size and the seconds of one unit of work at that size, from small to large."""

PRECISIONS = ("float32", "bfloat16")
WAYS = ("forward", "backward")
HEAD_DIMS = (16, 64)
ACTIVATIONS: tuple[str, ...] = setting_types(ViTConfig)["activation"].__args__
NAMES = (
    *(".".join(n) for n in product(("linear", "convolution", "norm", "block"), WAYS, PRECISIONS)),
    *(".".join(n) for n in product(ACTIVATIONS, WAYS, PRECISIONS)),
    *(
        f"attention{e}.{way}.{precision}"
        for e, way, precision in product(HEAD_DIMS, (*WAYS, "inference"), PRECISIONS)
    ),
    *(f"handling.{precision}" for precision in PRECISIONS),
    "adamw",
    "muon",
)
"""Every kind of work that a calibration knows the speed of."""

HOW = "run: vitreous measure"


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Seconds of one unit of work of every kind, and where and when that was so."""

    machine: str
    threads: int
    torch: str
    measured: str
    """When, in UTC."""
    curves: Mapping[str, Curve]

    def seconds(self, name: str, size: Number) -> Number:
        """Of one unit of this kind of work at this size, between the sizes that were measured.

        Straight lines between logarithms; beyond the ends as at the ends.
        """
        curve = self.curves[name]
        if size <= curve[0][0]:
            return curve[0][1]
        for (low, slow), (high, fast) in pairwise(curve):
            if size <= high:
                share = math.log(size / low) / math.log(high / low)
                return slow ** (1 - share) * fast**share
        return curve[-1][1]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

    @property
    def source(self) -> str:
        """Where the speeds come from, in a few words."""
        return f"{self.machine}, {self.threads} threads, torch {self.torch}, {self.measured}"


def calibration_file() -> Path:
    """Where the calibration of this machine is kept: in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "vitreous" / "machine.json"


def read(path: Path | None = None) -> Calibration:
    """The calibration of a file, or of this machine; raises DataError, with what to run."""
    path = path or calibration_file()
    try:
        return checked(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise DataError(f"{path}: this machine has not been measured yet; {HOW}") from error
    except OSError as error:
        raise DataError(f"{path}: not readable: {error.strerror}; {HOW}") from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"{path}: no whole calibration ({error}); {HOW}") from error


def checked(content: Any) -> Calibration:
    """A calibration in which nothing is missing and every number makes sense."""
    curves = {n: [(size, second) for size, second in c] for n, c in content["curves"].items()}
    calibration = Calibration(**{**content, "curves": curves})
    absent = [name for name in NAMES if name not in calibration.curves]
    if absent:
        raise ValueError(f"{absent[0]} is absent")
    for name in NAMES:
        sizes, seconds = zip(*calibration.curves[name], strict=True)
        if any(low >= high for low, high in pairwise(sizes)) or not min(sizes) > 0:
            raise ValueError(f"{name} is not in order")
        if not all(0 < second < math.inf for second in seconds):
            raise ValueError(f"{name} is no duration")
    return calibration
