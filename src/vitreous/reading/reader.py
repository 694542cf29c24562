"""Reads the numbers in photographs, scans and drawings."""

import itertools
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import torch

from vitreous.checkpoints.readers import load_reader
from vitreous.data.lines import pad
from vitreous.errors import CheckpointError
from vitreous.frontends.decode import Source
from vitreous.frontends.lines import Strip
from vitreous.models.decoding import FREE, Rules, looks
from vitreous.models.reader import Memory, Reader
from vitreous.reading.decide import Answer, decide, probability, total
from vitreous.reading.page import Page, prepare
from vitreous.reading.reading import Box, Digit, Line, Reading

__all__ = ["SHIPPED", "NumberReader", "read"]

SHIPPED = "reader.safetensors"
"""The weights that come with the package."""
TOGETHER = 48
"""Lines that go through the model at once."""

Seen = tuple[Answer | None, list[list[list[float]]] | None]


class NumberReader:
    """A reader of handwritten numbers: `read([prepare(image)])`.

    `prepare` is image work only, and may run anywhere; `read` takes many pages at once.
    """

    def __init__(self, model: Reader) -> None:
        self.model = model

    @classmethod
    def load(cls, path: str | Path | None = None) -> "NumberReader":
        """The reader of a run folder or weights file, or the one that comes with the package.

        Raises CheckpointError.
        """
        if path is not None:
            return cls(load_reader(path))
        with as_file(files("vitreous.reading") / SHIPPED) as shipped:
            if not shipped.exists():
                raise CheckpointError(f"this installation of vitreous lacks its {SHIPPED}")
            return cls(load_reader(shipped))

    def prepare(self, source: Source) -> Page:
        """Find the lines of an image file, its bytes or a Pillow image. Raises ImageError."""
        return prepare(source)

    def read(
        self, pages: Sequence[Page], *, attention: bool = False, rules: Rules = FREE
    ) -> list[Reading]:
        """Read all lines of all pages, in batches; each reading belongs to its own page.

        With `attention` each line says where the model looked for each digit.
        """
        strips = [strip for page in pages for strip in page.strips]
        seen = iter(self.see(strips, attention, rules))
        return [self.reading(page, [next(seen) for _ in page.strips]) for page in pages]

    @torch.no_grad()
    def see(self, strips: list[Strip], attention: bool, rules: Rules) -> list[Seen]:
        """The model's answer for each strip, lines of like width together."""
        seen: list[Seen] = [(None, None)] * len(strips)
        order = sorted(range(len(strips)), key=lambda row: strips[row].levels.shape[1])
        for start in range(0, len(order), TOGETHER):
            rows = order[start : start + TOGETHER]
            memory = self.model.see(*pad([strips[row].levels for row in rows]))
            answers = decide(self.model, memory, rules)
            maps = self.maps(memory, answers) if attention else [None] * len(rows)
            for row, answer, looked in zip(rows, answers, maps, strict=True):
                seen[row] = answer, looked
        return seen

    def maps(
        self, memory: Memory, answers: list[Answer | None]
    ) -> list[list[list[list[float]]] | None]:
        """For each line and digit the share of each real patch, as one row of a grid."""
        texts = [answer.text if answer else "" for answer in answers]
        widths = memory.real.sum(dim=1).tolist()
        return [
            [[[round(share, 4) for share in digit]] for digit in weights[:, :width].tolist()]
            for weights, width in zip(looks(self.model, memory, texts), widths, strict=True)
        ]

    def reading(self, page: Page, seen: list[Seen]) -> Reading:
        """What was seen on one page, put together."""
        lines: list[Line] = []
        warnings, empty = list(page.warnings), []
        for number, (strip, (answer, looked)) in enumerate(zip(page.strips, seen, strict=True)):
            if answer is None:
                warnings.append(f"what is written at {place(strip)} cannot be what was asked for")
                continue
            if not answer.text:
                empty.append(self.confidence(answer))
                continue
            lines.append(self.line(page, number, answer, looked))
            warnings += self.doubts(strip, answer, len(lines))
        sure = [line.confidence for line in lines] or empty
        return Reading(
            "\n".join(line.text for line in lines),
            tuple(lines),
            total(sure),
            any(line.confidence < self.model.threshold for line in lines),
            tuple(warnings),
        )

    def confidence(self, answer: Answer) -> float:
        """How likely an answer is right."""
        return probability(answer.log_probability, self.model.temperature)

    def line(
        self, page: Page, number: int, answer: Answer, looked: list[list[list[float]]] | None
    ) -> Line:
        """What one strip says, with its places in the image."""
        strip, heat = page.strips[number], self.model.temperature
        patch = self.model.config.patch_width
        boxes = digit_boxes(page, strip, [middle * patch for middle in answer.middles])
        digits = tuple(
            Digit(value, probability(step, heat), box)
            for value, step, box in zip(answer.text, answer.steps, boxes, strict=False)
        )
        others = tuple((text, probability(chance, heat)) for text, chance in answer.others)
        box = inside(page, *strip.box)
        return Line(answer.text, box, self.confidence(answer), digits, number, others, looked)

    def doubts(self, strip: Strip, answer: Answer, number: int) -> Iterator[str]:
        """What a person should know of a line."""
        patch = self.model.config.patch_width
        middles = [middle * patch for middle in answer.middles]
        for dot in strip.dots:
            before = sum(middle < dot.x for middle in middles)
            if 0 < before < len(middles):
                x, y = (round(o + strip.scale * p) for o, p in zip(strip.origin, dot, strict=True))
                yield (
                    f"line {number}: a separator stands between digit {before} and digit "
                    f"{before + 1}, at x={x} y={y}; it is not part of the text"
                )
        if answer.columns != answer.text:
            yield (
                f"line {number}: read as {answer.text}, and by columns as "
                f"{answer.columns or 'nothing'}; please check"
            )


def place(strip: Strip) -> str:
    """A strip's box in a sentence."""
    left, top, width, height = (round(side) for side in strip.box)
    return f"x={left} y={top} ({width} × {height} pixels)"


def digit_boxes(page: Page, strip: Strip, middles: list[float]) -> list[Box]:
    """The ink around each digit's middle, cut from its neighbours' where there is least ink."""
    ink = strip.levels.astype(np.float64)
    amount = ink.sum(axis=0)
    cuts = [0]
    for one, two in itertools.pairwise(middles):
        start, stop = sorted((max(cuts[-1] + 1, round(one)), max(cuts[-1] + 2, round(two))))
        between = amount[start : stop + 1]
        cuts.append(start + int(between.argmin()) if len(between) else start)
    cuts.append(ink.shape[1])
    return [digit_box(page, strip, ink, start, stop) for start, stop in itertools.pairwise(cuts)]


def digit_box(page: Page, strip: Strip, ink: np.ndarray, start: int, stop: int) -> Box:
    """The box of the ink between two columns of a strip, in pixels of the image."""
    marked = ink[:, start:stop] > 0.3 * 255
    rows, columns = np.flatnonzero(marked.any(axis=1)), np.flatnonzero(marked.any(axis=0))
    top, bottom = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (4, 28)
    left, right = (
        (start + int(columns[0]), start + int(columns[-1]) + 1) if len(columns) else (start, stop)
    )
    scale, (x, y) = strip.scale, strip.origin
    if strip.drops is not None:
        y += float(np.median(strip.drops[left:right]))
    return inside(
        page, x + left * scale, y + top * scale, (right - left) * scale, (bottom - top) * scale
    )


def inside(page: Page, left: float, top: float, width: float, height: float) -> Box:
    """A box in whole pixels, at least one each way, that does not leave the image."""
    x = min(max(round(left), 0), page.size[0] - 1)
    y = min(max(round(top), 0), page.size[1] - 1)
    right = min(max(round(left + width), x + 1), page.size[0])
    bottom = min(max(round(top + height), y + 1), page.size[1])
    return x, y, right - x, bottom - y


_SHIPPED: list[NumberReader] = []


def read(image: Source) -> Reading:
    """The numbers in an image file, its bytes or a Pillow image, by the weights in the package.

    Raises ImageError for what is no image.
    """
    if not _SHIPPED:
        _SHIPPED.append(NumberReader.load())
    return _SHIPPED[0].read([prepare(image)])[0]
