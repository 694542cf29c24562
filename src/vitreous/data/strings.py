"""Strings of handwritten digits, made up: each is a pure function of (seed, index).

One hand writes a whole string: slant, width, pen and spacing are shared, and each digit has its own
small deviations. Digits are MNIST's or come from a virtual pen (`data.pen`). Around them lie what
lies around numbers on real paper and is none: dots, dashes, rules, print, grain and dirt.
"""

import io
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy import ndimage

from vitreous.data.pen import USUAL, WAYS, draw_digit
from vitreous.frontends.lines import HEIGHT, MARGIN, prepare_ink
from vitreous.frontends.pieces import Piece

__all__ = ["LEGIBLE", "RANGES", "Bank", "Drawn", "Ranges", "draw_string", "draw_text", "make_bank"]

Canvas: TypeAlias = NDArray[np.floating[Any]]
"""(y, x): 0 is paper, 1 full ink."""

TALL = 26
"""Pixels: the height of a usual digit while a string is drawn."""
ROOM = 14
"""Pixels above and below the digits, for what jumps, slants or is printed there."""
LENGTHS = (0.06, 0.15, 0.11, 0.15, 0.17, 0.13, 0.10, 0.08, 0.05)
"""How often a string has 0, 1, ... 8 digits."""


class Ranges(NamedTuple):
    """How far writing and paper may go."""

    bend: float
    """Pixels: the most by which a string is bent."""
    low_zeros: float
    """The lowest that zeros may be beside other digits."""
    faint: float
    """The least share of its ink that a place of a stroke keeps where a pen is uneven."""
    print: float
    """The strongest print under the writing."""
    noise: float
    """The largest deviation of the paper's grain."""
    coarse: float
    """The smallest share of rows and columns that is left of a picture."""
    pen_drawn: float
    """The share of strings that a pen draws."""
    ways: tuple[int, ...]
    """How many ways the pen knows to write each digit."""
    kept: float
    """The least share of each digit's ink that is left when strokes have been made thinner."""
    fat: float
    """The thickest pen, as a share of a pen-drawn digit's width."""


ROUGH = Ranges(
    bend=1.6,
    low_zeros=0.45,
    faint=0.5,
    print=0.3,
    noise=0.11,
    coarse=0.45,
    pen_drawn=0.35,
    ways=USUAL,
    kept=0.0,
    fat=1.0,
)
"""So far that one string in ten cannot be read: to begin with."""
HARD = Ranges(
    bend=1.2,
    low_zeros=0.55,
    faint=0.6,
    print=0.24,
    noise=0.08,
    coarse=0.6,
    pen_drawn=0.45,
    ways=tuple(len(WAYS[digit]) for digit in range(10)),
    kept=0.5,
    fat=1.0,
)
"""As far as people still read, but for narrow digits whose pen leaves no white in them."""
LEGIBLE = HARD._replace(fat=0.24)
"""As far as people still read."""
RANGES: Mapping[str, Ranges] = {"rough": ROUGH, "hard": HARD, "legible": LEGIBLE}


class Bank(NamedTuple):
    """Digits to write with: uint8 (n, 28, 28), light on dark, and which of them show each digit."""

    images: NDArray[np.uint8]
    of: tuple[NDArray[np.int64], ...]


def make_bank(images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Bank:
    """Sort digits (n, 1, 28, 28) or (n, 28, 28) by what they show."""
    return Bank(
        images.reshape(-1, 28, 28), tuple(np.flatnonzero(labels == digit) for digit in range(10))
    )


@dataclass(frozen=True)
class Drawn:
    """One made-up line, as a reader gets it."""

    levels: NDArray[np.uint8]
    """(32, width): 0 is paper, 255 full ink."""
    text: str
    knobs: Mapping[str, Any] = field(default_factory=dict)
    """How it was drawn, for accuracy by knob."""


@dataclass(frozen=True)
class Hand:
    """How one person writes one string."""

    pen_drawn: bool
    pen: float
    """Width of a pen-drawn stroke in pixels, or how much an MNIST stroke is thickened."""
    slant: float
    """Columns moved per row, to the right upwards."""
    aspect: float
    gap: float
    """Between two digits, as a share of their height; negative ones overlap."""
    gap_jitter: float
    size_jitter: float
    baseline_jitter: float
    rise: float
    """Rows moved per column."""
    low_zeros: float
    """A zero's height as a share of the others'."""
    ways: tuple[int, ...]
    """The pen's way of each digit."""
    bend: float
    """Pixels by which the finished string is bent."""


def draw_string(
    bank: Bank,
    seed: int,
    index: int,
    *,
    lengths: tuple[float, ...] = LENGTHS,
    ranges: Ranges = LEGIBLE,
) -> Drawn:
    """The string of this seed and index. `lengths` says how often each length comes."""
    rng = np.random.default_rng([seed, index])
    return draw_text(bank, draw_label(rng, lengths), rng, ranges)


def draw_label(rng: np.random.Generator, lengths: tuple[float, ...]) -> str:
    """Digits of a string: doubled ones, leading zeros and round numbers come often."""
    length = int(rng.choice(len(lengths), p=np.array(lengths) / sum(lengths)))
    digits = rng.integers(0, 10, length)
    for place in range(1, length):
        if rng.random() < 0.15:
            digits[place] = digits[place - 1]
    kind = rng.random()
    if kind < 0.1:
        digits[: int(rng.integers(1, length + 1)) if length else 0] = 0
    elif kind < 0.22 and length > 1:
        digits[-int(rng.integers(1, length)) :] = 0
    return "".join(map(str, digits))


def draw_text(bank: Bank, text: str, rng: np.random.Generator, ranges: Ranges = LEGIBLE) -> Drawn:
    """These digits, written by a hand that `rng` draws."""
    hand = draw_hand(rng, ranges)
    glyphs = [glyph(bank, int(digit), hand, rng, ranges) for digit in text]
    canvas, spans = compose(glyphs, hand, rng)
    digits = canvas > 0.3
    canvas, marks = with_marks(canvas, spans, rng)
    canvas = bent(canvas, hand, rng)
    canvas, stroke = inked(canvas, spans, hand, rng, ranges)
    box = loose_box(digits if spans else canvas > 0.3, canvas > 0.3, rng)
    paper, knobs = papered(canvas, spans, rng, ranges)
    levels = prepare_ink(paper, canvas > 0.35, box)[0]
    knobs |= {"gap": hand.gap, "slant": hand.slant, "pen_drawn": hand.pen_drawn, "marks": marks}
    knobs |= {"rise": hand.rise, "stroke": stroke, "length": len(text)}
    return Drawn(levels, text, knobs)


def draw_hand(rng: np.random.Generator, ranges: Ranges = LEGIBLE) -> Hand:
    """One of many ways to write."""
    spacing = rng.random()
    if spacing < 0.25:
        gap = rng.uniform(-0.12, 0.02)
    elif spacing < 0.85:
        gap = rng.uniform(0.02, 0.35)
    else:
        gap = rng.uniform(0.35, 1.3)
    return Hand(
        pen_drawn=bool(rng.random() < ranges.pen_drawn),
        pen=float(np.exp(rng.uniform(np.log(1.3), np.log(5.0)))),
        slant=float(rng.normal(0.05, 0.2)),
        aspect=float(np.exp(rng.normal(0.0, 0.18))),
        gap=float(gap),
        gap_jitter=float(rng.uniform(0.02, 0.12)),
        size_jitter=float(rng.uniform(0.02, 0.12)),
        baseline_jitter=float(rng.uniform(0.0, 0.08)),
        rise=float(rng.normal(0, 0.05)),
        low_zeros=float(rng.uniform(ranges.low_zeros, 0.8) if rng.random() < 0.12 else 1.0),
        ways=tuple(int(rng.integers(ranges.ways[digit])) for digit in range(10)),
        bend=float(rng.uniform(0.0, ranges.bend)),
    )


def glyph(
    bank: Bank, digit: int, hand: Hand, rng: np.random.Generator, ranges: Ranges = LEGIBLE
) -> NDArray[np.uint8]:
    """One digit as the hand writes it, cropped to its ink."""
    tall = TALL * float(np.clip(rng.normal(1, hand.size_jitter), 0.6, 1.4))
    tall *= hand.low_zeros if digit == 0 else 1.0
    if hand.pen_drawn:
        way = hand.ways[digit] if rng.random() < 0.9 else int(rng.integers(ranges.ways[digit]))
        aspect = float(np.clip(0.62 * hand.aspect * rng.normal(1, 0.1), 0.35, 1.1))
        pen = min(hand.pen, 0.17 * tall, ranges.fat * aspect * tall)
        image = draw_digit(digit, way, rng, height=round(tall), aspect=aspect, pen=pen)
        return cropped(warped(image, 1.0, 1.0, hand.slant + rng.normal(0, 0.05)))
    image = cropped(bank.images[rng.choice(bank.of[digit])])
    high = tall / image.shape[0]
    # A flat digit (a lying 1) is not blown up to full height.
    high = min(high, 1.6 * TALL / 20)
    wide = float(np.clip(high * hand.aspect * rng.normal(1, 0.08), 0.5, 2.4))
    return cropped(warped(image, high, wide, hand.slant + rng.normal(0, 0.05)))


def warped(image: NDArray[np.uint8], high: float, wide: float, slant: float) -> NDArray[np.uint8]:
    """Stretched and slanted, on a ground that holds it."""
    y, x = image.shape
    rows = round(y * high) + 2
    lean = slant * rows
    columns = round(x * wide + abs(lean)) + 3
    # From output to input places: PIL asks where each pixel comes from.
    left = -1 - max(lean, 0.0)
    matrix = (1 / wide, slant / wide, left / wide, 0, 1 / high, -1 / high)
    image_of = Image.fromarray(image)
    return np.asarray(
        image_of.transform(
            (columns, rows), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR
        )
    )


def cropped(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The smallest box around what is inked; at least one pixel."""
    rows, columns = np.flatnonzero(image.max(1) > 60), np.flatnonzero(image.max(0) > 60)
    if not len(rows):
        return image
    return image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


Spans: TypeAlias = list[tuple[int, int]]
"""Each digit's first column and the one after its last."""


def compose(
    glyphs: list[NDArray[np.uint8]], hand: Hand, rng: np.random.Generator
) -> tuple[Canvas, Spans]:
    """The digits beside each other on one canvas, and where each is."""
    places, right = [], 0.0
    for number, image in enumerate(glyphs):
        gap = TALL * (hand.gap + rng.normal(0, hand.gap_jitter)) if number else 0.0
        gap = max(gap, -0.3 * min(image.shape[1], glyphs[number - 1].shape[1]))
        left = max(right + gap, 0.0)
        places.append(round(left))
        right = left + image.shape[1]
    side = ROOM + 10
    width = round(right) + 2 * side
    drop = [
        round(hand.rise * place + rng.normal(0, hand.baseline_jitter) * TALL) for place in places
    ]
    top, bottom = min(drop, default=0), max(drop, default=0)
    canvas = np.zeros((TALL + 2 * ROOM + bottom - top + 8, max(width, 40)), np.float32)
    spans = []
    for image, place, low in zip(glyphs, places, drop, strict=True):
        y, x = ROOM + 4 + TALL - image.shape[0] + low - top, place + side
        y = max(y, 0)
        part = canvas[y : y + image.shape[0], x : x + image.shape[1]]
        np.maximum(part, image[: part.shape[0], : part.shape[1]] / np.float32(255), out=part)
        spans.append((x, x + image.shape[1]))
    return canvas, spans


def with_marks(canvas: Canvas, spans: Spans, rng: np.random.Generator) -> tuple[Canvas, str]:
    """What stands among digits and is none, and which of it there is."""
    image = Image.fromarray(np.rint(canvas * 255).astype(np.uint8))
    drawing = ImageDraw.Draw(image)
    y, x = canvas.shape
    base, pen = float(y - ROOM - 4), rng.uniform(1.5, 4)
    kinds = []
    if len(spans) > 1 and rng.random() < 0.1:
        kinds.append("joined")
        join_digits(drawing, spans, base, pen, rng)
    if len(spans) > 1 and rng.random() < 0.3:
        kinds.append("separator")
        place = len(spans) - 3 if rng.random() < 0.6 and len(spans) > 3 else None
        place = int(rng.integers(1, len(spans))) if place is None else place
        middle = (spans[place - 1][1] + spans[place][0]) / 2
        separator(drawing, middle, base, pen, rng)
    if spans and rng.random() < 0.25:
        kinds.append("end")
        end_mark(drawing, spans[-1][1] + rng.uniform(2, 8), base, pen, rng)
    if spans and rng.random() < 0.05:
        kinds.append("start")
        start_mark(drawing, spans[0][0] - rng.uniform(2, 6), base, pen, rng)
    if not spans:
        kinds.append("only")
        scribble(drawing, (x, y), base, pen, rng)
    return np.asarray(image, np.float32) / 255, "+".join(kinds)


def dot(drawing: ImageDraw.ImageDraw, x: float, y: float, r: float) -> None:
    """A filled dot."""
    drawing.ellipse((x - r, y - r, x + r, y + r), fill=255)


def join_digits(
    drawing: ImageDraw.ImageDraw, spans: Spans, base: float, pen: float, rng: np.random.Generator
) -> None:
    """Strokes that lead from one digit into the next, where they are near."""
    high = rng.uniform(0.1, 0.95)
    for (_, end), (start, _) in itertools.pairwise(spans):
        if start - end < 7 and rng.random() < 0.6:
            y = base - TALL * high
            drawing.line((end - 3, y + rng.uniform(-3, 3), start + 3, y), 255, round(min(pen, 2.5)))


def separator(
    drawing: ImageDraw.ImageDraw, x: float, base: float, pen: float, rng: np.random.Generator
) -> None:
    """A dot, comma, middle dot, dash or apostrophe between two digits."""
    kind = rng.choice(5, p=[0.5, 0.25, 0.1, 0.1, 0.05])
    if kind == 0:
        dot(drawing, x, base - rng.uniform(0, 4), rng.uniform(0.6, 1.1) * pen)
    elif kind == 1:
        top = base - rng.uniform(1, 5)
        lean = rng.uniform(1, 4)
        drawing.line((x + lean / 2, top, x - lean / 2, top + rng.uniform(4, 8)), 255, round(pen))
    elif kind == 2:
        dot(drawing, x, base - TALL * rng.uniform(0.3, 0.6), rng.uniform(0.5, 0.9) * pen)
    elif kind == 3:
        y, half = base - TALL * rng.uniform(0.35, 0.6), rng.uniform(2, 5)
        drawing.line((x - half, y, x + half, y + rng.uniform(-1, 1)), 255, round(pen))
    else:
        drawing.line((x + 1, base - TALL - 1, x - 1, base - TALL + 4), 255, round(pen))


def end_mark(
    drawing: ImageDraw.ImageDraw, x: float, base: float, pen: float, rng: np.random.Generator
) -> None:
    """What people write after an amount so that nothing can be added: `.`, `.-`, `-`, `=`."""
    kind = int(rng.integers(0, 4))
    y = base - rng.uniform(0, 0.6) * TALL
    long = rng.uniform(4, 16)
    if kind < 2:
        dot(drawing, x, base - rng.uniform(0, 4), rng.uniform(0.5, 0.9) * pen)
    if kind > 0:
        drawing.line((x + 4, y, x + 4 + long, y + rng.uniform(-2, 2)), 255, round(pen))
    if kind == 3:
        y += rng.uniform(4, 7)
        drawing.line((x + 4, y, x + 4 + long, y + rng.uniform(-2, 2)), 255, round(pen))


def start_mark(
    drawing: ImageDraw.ImageDraw, x: float, base: float, pen: float, rng: np.random.Generator
) -> None:
    """A dash, a number sign or a star before the number."""
    kind = int(rng.integers(0, 3))
    y = base - 0.5 * TALL
    if kind == 0:
        drawing.line((x - rng.uniform(5, 10), y, x, y), 255, round(pen))
    elif kind == 1:
        for shift in (-3, 3):
            drawing.line((x - 8 + shift, y + 9, x - 5 + shift, y - 9), 255, round(min(pen, 2)))
            drawing.line((x - 14, y + shift, x, y + shift), 255, round(min(pen, 2)))
    else:
        for turn in (0, 1.05, 2.1):
            run, fall = 5 * np.cos(turn), 5 * np.sin(turn)
            drawing.line((x - 6 - run, y - fall, x - 6 + run, y + fall), 255, round(min(pen, 2)))


def scribble(
    drawing: ImageDraw.ImageDraw,
    size: tuple[int, int],
    base: float,
    pen: float,
    rng: np.random.Generator,
) -> None:
    """Something that is no digit: a dot, a dash, a wave, a blot, a frame."""
    x, y = size[0] / 2, base - TALL / 2
    kind = int(rng.integers(0, 5))
    if kind == 0:
        dot(drawing, x, y, rng.uniform(1, 6))
    elif kind == 1:
        drawing.line((6, y + rng.uniform(-6, 6), size[0] - 6, y), 255, round(pen))
    elif kind == 2:
        points = [(float(a), y + float(rng.normal(0, 7))) for a in np.linspace(6, size[0] - 6, 12)]
        drawing.line(points, 255, round(pen), joint="curve")
    elif kind == 3:
        for _ in range(int(rng.integers(2, 9))):
            dot(drawing, x + rng.normal(0, 8), y + rng.normal(0, 6), rng.uniform(0.5, 4))
    else:
        drawing.rectangle((4, base - TALL - 4, size[0] - 4, base + 4), outline=255, width=2)


def bent(canvas: Canvas, hand: Hand, rng: np.random.Generator) -> Canvas:
    """The canvas, moved by a smooth random field."""
    if hand.bend < 0.4:
        return canvas
    y, x = canvas.shape
    coarse = (2, max(2, y // 9), max(2, x // 9))
    field = rng.normal(0, hand.bend, coarse).astype(np.float32)
    moves = [
        np.asarray(Image.fromarray(axis).resize((x, y), Image.Resampling.BICUBIC)) for axis in field
    ]
    rows, columns = np.indices(canvas.shape, np.float32)
    places = np.stack([rows + moves[0], columns + moves[1]])
    return np.asarray(ndimage.map_coordinates(canvas, places, order=1, mode="constant"))


def inked(
    canvas: Canvas, spans: Spans, hand: Hand, rng: np.random.Generator, ranges: Ranges
) -> tuple[Canvas, float]:
    """Strokes made thicker or thinner, soft or hard, and uneven as a pen's are."""
    thicken = 0.0
    if not hand.pen_drawn and rng.random() < 0.6:
        thicken = float(rng.uniform(-0.12, 0.35))
        blurred = ndimage.gaussian_filter(canvas, rng.uniform(0.7, 1.3))
        thick = np.clip((blurred - 0.42 + thicken) / rng.uniform(0.25, 0.6), 0, 1)
        if thick.max() < 0.5:
            thick = np.clip(blurred * 2, 0, 1)
        canvas = legible(thick, canvas, spans, ranges.kept)
    if rng.random() < 0.35:
        least = float(rng.uniform(ranges.faint, 0.9))
        canvas = canvas * slow_field(canvas.shape, rng, least, 1.0, cell=12)
    if rng.random() < 0.15:
        canvas = canvas * rng.uniform(rng.uniform(0.35, 0.7), 1.0, canvas.shape).astype(np.float32)
    return canvas.astype(np.float32), thicken


def legible(changed: Canvas, canvas: Canvas, spans: Spans, kept: float) -> Canvas:
    """The changed canvas, unless a digit would have less than this share of its ink left."""
    for left, right in spans:
        if changed[:, left:right].sum() < kept * canvas[:, left:right].sum():
            return canvas
    return changed


def slow_field(
    shape: tuple[int, ...], rng: np.random.Generator, low: float, high: float, *, cell: int
) -> Canvas:
    """Levels between two bounds that change slowly over the canvas."""
    y, x = shape
    coarse = rng.uniform(low, high, (y // cell + 2, x // cell + 2)).astype(np.float32)
    return np.asarray(Image.fromarray(coarse).resize((x, y), Image.Resampling.BILINEAR))


def loose_box(
    digits: NDArray[np.bool_], everything: NDArray[np.bool_], rng: np.random.Generator
) -> Piece:
    """The box that line finding would make: around the digits, a little off."""
    chosen = digits if digits.any() else everything
    if not chosen.any():
        y, x = chosen.shape
        return Piece(0, 4, 4, y - 4, x - 4)
    rows = np.flatnonzero(chosen.any(axis=1))
    columns = np.flatnonzero((everything if rng.random() < 0.7 else chosen).any(axis=0))
    off = rng.integers(-1, 2, 4) if rng.random() < 0.8 else rng.integers(-2, 7, 4)
    y, x = chosen.shape
    return Piece(
        0,
        max(0, int(rows[0] - off[0])),
        max(0, int(columns[0] - off[1])),
        min(y, max(int(rows[-1] + 1 + off[2]), int(rows[0]) + 4)),
        min(x, max(int(columns[-1] + 1 + off[3]), int(columns[0]) + 3)),
    )


def papered(
    canvas: Canvas, spans: Spans, rng: np.random.Generator, ranges: Ranges
) -> tuple[Canvas, dict[str, Any]]:
    """The ink as it is found on real paper: rules, print, blur, grain, JPEG and dirt around it."""
    knobs: dict[str, Any] = {"rules": False, "print": 0.0, "blur": 0.0, "noise": 0.0}
    knobs |= {"jpeg": 0, "coarse": 1.0, "hard": False}
    if rng.random() < 0.2:
        canvas, knobs["rules"] = ruled(canvas, rng), True
    if rng.random() < 0.3:
        knobs["print"] = float(rng.uniform(0.05, ranges.print))
        canvas = canvas + printed(canvas.shape, knobs["print"], rng)
    if rng.random() < 0.4:
        knobs["blur"] = float(rng.uniform(0.3, 1.2))
        canvas = np.asarray(ndimage.gaussian_filter(canvas, knobs["blur"]))
    if rng.random() < 0.5:
        knobs["noise"] = float(rng.uniform(0.01, ranges.noise))
        canvas = canvas + rng.normal(0, knobs["noise"], canvas.shape)
    if rng.random() < 0.2:
        canvas = canvas + slow_field(canvas.shape, rng, -0.08, 0.12, cell=24)
    if rng.random() < 0.2:
        knobs["jpeg"] = int(rng.integers(25, 90))
        canvas = through_jpeg(canvas, knobs["jpeg"])
    if rng.random() < 0.1:
        knobs["coarse"] = float(rng.uniform(ranges.coarse, 0.9))
        canvas = coarser(canvas, knobs["coarse"])
    if rng.random() < 0.08:
        knobs["hard"] = True
        hard = (canvas > rng.uniform(0.35, 0.55)).astype(np.float32)
        canvas = legible(hard, canvas, spans, ranges.kept)
    return np.asarray(canvas, np.float32), knobs


def coarser(canvas: Canvas, share: float) -> Canvas:
    """The canvas from this share of its rows and columns."""
    y, x = canvas.shape
    image = Image.fromarray(np.asarray(canvas, np.float32))
    small = image.resize((max(2, round(x * share)), max(2, round(y * share))), Image.Resampling.BOX)
    return np.asarray(small.resize((x, y), Image.Resampling.BILINEAR))


def ruled(canvas: Canvas, rng: np.random.Generator) -> Canvas:
    """Printed rules below or through the string; sometimes a box around it."""
    canvas = canvas.copy()
    y, x = canvas.shape
    level, thick = rng.uniform(0.2, 0.9), int(rng.integers(1, 3))
    fall = rng.normal(0, 0.01)
    columns = np.arange(x)
    for row in [y - ROOM - 4 + rng.uniform(-3, 8), ROOM + rng.uniform(-8, 2)][
        : int(rng.integers(1, 3))
    ]:
        at = np.clip(np.rint(row + fall * columns).astype(int), 0, y - thick)
        for more in range(thick):
            canvas[at + more, columns] = np.maximum(canvas[at + more, columns], level)
    return canvas


def printed(shape: tuple[int, ...], strength: float, rng: np.random.Generator) -> Canvas:
    """A security pattern or squared paper: fine parallel lines, straight or wavy."""
    rows, columns = np.indices(shape, np.float32)
    turn, period = rng.uniform(0, np.pi), rng.uniform(2.5, 9)
    wave = rng.uniform(0, 3) * np.sin(columns / rng.uniform(5, 20) + rows / rng.uniform(5, 20))
    phase = (rows * np.cos(turn) + columns * np.sin(turn) + wave) * (2 * np.pi / period)
    return strength * np.clip(np.sin(phase) - rng.uniform(-0.5, 0.7), 0, 1).astype(np.float32)


def through_jpeg(canvas: Canvas, quality: int) -> Canvas:
    """What is left of the picture after a JPEG file of this quality."""
    dark, light = 60, 190
    grey = np.clip(light - (light - dark) * canvas, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(grey).save(file, "JPEG", quality=quality)
    return (light - np.asarray(Image.open(file), np.float32)) / (light - dark)


def sheet(drawn: list[Drawn], width: int = 900) -> NDArray[np.uint8]:
    """Many strips on one picture, to look at."""
    rows: list[list[NDArray[np.uint8]]] = [[]]
    for one in drawn:
        if sum(a.shape[1] + MARGIN for a in rows[-1]) + one.levels.shape[1] + MARGIN > width:
            rows.append([])
        rows[-1].append(np.pad(one.levels, ((0, 0), (0, MARGIN)), constant_values=90))
    whole = np.full((len(rows) * (HEIGHT + 2), width), 90, np.uint8)
    for number, row in enumerate(rows):
        line = np.concatenate(row, axis=1)[:, :width]
        whole[number * (HEIGHT + 2) : number * (HEIGHT + 2) + HEIGHT, : line.shape[1]] = line
    return whole
