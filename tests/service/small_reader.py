"""A small reader of its own making: runs of ink, each named by the nearest of clear digits."""

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from PIL import Image

from tests.service.number_images import exemplars
from vitreous.frontends.decode import decode
from vitreous.frontends.digit import prepare_digit

PATCH = 7


@dataclass(frozen=True)
class SmallDigit:
    value: str
    confidence: float
    box: tuple[int, int, int, int]


@dataclass(frozen=True)
class SmallLine:
    text: str
    box: tuple[int, int, int, int]
    confidence: float
    digits: tuple[SmallDigit, ...]
    strip: int
    alternatives: tuple[tuple[str, float], ...]
    attention: list | None


@dataclass(frozen=True)
class SmallReading:
    text: str
    lines: tuple[SmallLine, ...]
    confidence: float
    rejected: bool
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        lines = [asdict(line) for line in self.lines]
        for line in lines:
            del line["alternatives"], line["strip"]
            if line["attention"] is None:
                del line["attention"]
        return {
            "text": self.text,
            "lines": lines,
            "confidence": self.confidence,
            "rejected": self.rejected,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True)
class SmallPage:
    """Lines of crops: what remains of an image."""

    lines: list[list[tuple[tuple[int, int, int, int], np.ndarray]]]

    def pictures(self) -> list[bytes]:
        return [to_png(np.hstack([255 - crop for _, crop in line])) for line in self.lines]


@dataclass
class SmallReader:
    """Counts its passes; `before` is called at the start of each, to hold it up or break it."""

    before: Callable[[Sequence[SmallPage]], None] = lambda _: None
    sizes: list[int] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)

    def prepare(self, source) -> SmallPage:
        pixels = decode(source)
        grey = pixels if pixels.ndim == 2 else pixels.mean(2)
        small = Image.fromarray(grey.astype(np.uint8))
        small.thumbnail((1000, 1000))
        grey = np.asarray(small)
        paper = np.median(grey)
        ink = np.abs(grey.astype(float) - paper) > 60
        lines = []
        for top, bottom in runs(ink.any(1), least=8)[:8]:
            crops = []
            for left, right in runs(ink[top:bottom].any(0), least=2)[:16]:
                crop = grey[top:bottom, left:right]
                around = np.full((crop.shape[0] + 40, crop.shape[1] + 40), paper, np.uint8)
                around[20:-20, 20:-20] = crop
                box = (left, top, right - left, bottom - top)
                crops.append((box, prepare_digit(around)))
            if crops:
                lines.append(crops)
        return SmallPage(lines)

    def read(self, pages: Sequence[SmallPage], *, attention: bool = False) -> list[SmallReading]:
        self.sizes.append(len(pages))
        self.threads.add(threading.current_thread().name)
        self.before(pages)
        return [read_page(page, attention) for page in pages]


def read_page(page: SmallPage, attention: bool) -> SmallReading:
    lines = tuple(read_line(*each, attention) for each in enumerate(page.lines))
    confidence = float(np.prod([line.confidence for line in lines])) if lines else 0.0
    return SmallReading("\n".join(line.text for line in lines), lines, confidence, confidence < 0.2)


def read_line(strip: int, line: list, attention: bool) -> SmallLine:
    digits, others, maps = [], [], []
    for place, (box, crop) in enumerate(line):
        chances = nearest(crop)
        best, second = np.argsort(chances)[::-1][:2]
        digits.append(SmallDigit(str(best), float(chances[best]), box))
        others.append((str(second), float(chances[second])))
        grid = np.zeros((28 // PATCH, len(line) * 28 // PATCH))
        cells = crop.reshape(28 // PATCH, PATCH, 28 // PATCH, PATCH).sum((1, 3))
        grid[:, place * 4 : place * 4 + 4] = cells / max(cells.sum(), 1)
        maps.append(grid.tolist())
    text = "".join(digit.value for digit in digits)
    confidence = float(np.prod([digit.confidence for digit in digits]))
    first, last = digits[0].box, digits[-1].box
    box = (first[0], first[1], last[0] + last[2] - first[0], first[3])
    other = (others[0][0] + text[1:], confidence * others[0][1] / digits[0].confidence)
    looked = maps if attention else None
    return SmallLine(text, box, confidence, tuple(digits), strip, (other,), looked)


def nearest(crop: np.ndarray) -> np.ndarray:
    """A chance for each class, from the distance to its nearest exemplar."""
    distance = ((exemplars() - crop) ** 2).mean((2, 3)).min(1)
    chances = np.exp(-(distance - distance.min()) / 300)
    return chances / chances.sum()


def runs(there: np.ndarray, *, least: int) -> list[tuple[int, int]]:
    """Where a row of truths begins and ends to be true."""
    edges = np.flatnonzero(np.diff(np.pad(there.astype(int), 1)))
    return [(a, b) for a, b in edges.reshape(-1, 2).tolist() if b - a >= least]


def to_png(pixels: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()
