"""How well are numbers read: made-up strings, people's own images, bank cheques?

    python benchmarks/reading.py synthetic --write
    python benchmarks/reading.py pages --write
    python benchmarks/reading.py own --write        # needs ../shared/data, or VITREOUS_DATA
    python benchmarks/reading.py cheques --write    # the same; also fine-tunes, about 5 minutes

`synthetic` draws its strings with the test digits of MNIST and another seed than training, from
the same ranges; their hash is printed. `cheques` reads a held-out fifth with the weights of the
package, then trains these on the other four fifths and reads the fifth again; the tuned weights
are thrown away. Intervals are Wilson's, 95 %.
"""

import argparse
import csv
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from hashlib import sha256
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from report import parser, publish, setting, table

from vitreous.config import Recipe
from vitreous.data.augment import affine
from vitreous.data.lines import pad
from vitreous.data.strings import Drawn, draw_string
from vitreous.models.reader import Reader
from vitreous.protocol.seeds import stream
from vitreous.reading.calibration import coverage, expected_error
from vitreous.reading.decide import probability
from vitreous.reading.page import Page, prepare
from vitreous.reading.reader import NumberReader
from vitreous.training.optimizers import make_optimizers, rate
from vitreous.training.reader import TEST_SEED, bank_of, decided, loss_of, read_strings

KNOBS: dict[str, Callable[[Any], str]] = {
    "pen_drawn": lambda v: "a pen's" if v else "MNIST's",
    "gap": lambda v: "touching" if v < 0.02 else "usual" if v < 0.35 else "wide",
    "slant": lambda v: "left" if v < -0.1 else "upright" if v < 0.2 else "right",
    "stroke": lambda v: "thinner" if v < 0 else "as is" if v == 0 else "thicker",
    "rise": lambda v: "level" if abs(v) < 0.05 else "tilted",
    "rules": lambda v: "ruled" if v else "plain",
    "print": lambda v: "none" if v == 0 else "faint" if v < 0.15 else "strong",
    "noise": lambda v: "none" if v == 0 else "some" if v < 0.04 else "strong",
    "blur": lambda v: "none" if v == 0 else "blurred",
    "jpeg": lambda v: "none" if v == 0 else "JPEG",
    "coarse": lambda v: "full size" if v == 1 else "few pixels",
    "marks": lambda v: "none" if not v else "marks around",
}


def wilson(right: int, n: int) -> str:
    """A share with its 95 % interval, in per cent. Source: Wilson 1927."""
    if not n:
        return "–"
    z, p = 1.96, right / n
    middle, half = p + z * z / (2 * n), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (100 * (middle + side * half) / (1 + z * z / n) for side in (-1, 1))
    return f"{100 * p:.1f} ({low:.1f}–{high:.1f})"


def only(length: int) -> tuple[float, ...]:
    return (*[0.0] * length, 1.0)


def draw(count: int, **how: Any) -> list[Drawn]:
    bank = bank_of("test")
    return [draw_string(bank, TEST_SEED, index, **how) for index in range(count)]


def fingerprint(drawn: Iterable[Drawn]) -> str:
    whole = sha256()
    for one in drawn:
        whole.update(f"{one.text} {one.levels.shape}\n".encode() + one.levels.tobytes())
    return whole.hexdigest()


Arms = dict[str, list[bool]]


def arms(model: Reader, drawn: list[Drawn]) -> tuple[Arms, list[float]]:
    """Which strings each arm reads right, and how sure both are together."""
    written, columns = read_strings(model, drawn)
    answers = decided(model, drawn)
    both = [answer.text for answer in answers]
    chances = [probability(a.log_probability, model.temperature) for a in answers]
    found = {"both": both, "decoder, greedy": written, "CTC, best path": columns}
    wanted = [one.text for one in drawn]
    right = {k: [a == b for a, b in zip(v, wanted, strict=True)] for k, v in found.items()}
    return right, chances


def row(name: str, right: Arms, chosen: Sequence[int]) -> list[object]:
    cells = [wilson(sum(hits[i] for i in chosen), len(chosen)) for hits in right.values()]
    return [name, *cells, len(chosen)]


HEADER = ("strings", "both arms", "decoder, greedy", "CTC, best path", "n")


def synthetic(model: Reader, count: int) -> str:
    mixed, four = draw(count), draw(count // 2, lengths=only(4))
    single, long = (
        draw(count // 2, lengths=only(1)),
        draw(count // 4, lengths=(*[0.0] * 9, 1, 1, 1, 1)),
    )
    right, chances = arms(model, mixed)
    fours, _ = arms(model, four)
    ones, _ = arms(model, single)
    longs, _ = arms(model, long)
    share = np.mean(ones["both"])
    everything = range(len(mixed))
    rows = [
        row("4 digits", fours, range(len(four))),
        row(
            "4 digits, MNIST's only",
            fours,
            [i for i in range(len(four)) if not four[i].knobs["pen_drawn"]],
        ),
        row("4 digits, clean paper", fours, [i for i in range(len(four)) if clean(four[i])]),
        row("0 to 8 digits", right, everything),
        row("with a doubled digit", right, [i for i in everything if doubled(mixed[i].text)]),
        row("with a leading zero", right, [i for i in everything if mixed[i].text[:1] == "0"]),
        row("no digit, only marks", right, [i for i in everything if not mixed[i].text]),
    ]
    lengths = [
        [
            length,
            *row("", right, [i for i in everything if len(mixed[i].text) == length])[1:],
            f"{100 * share**length:.1f}",
        ]
        for length in range(9)
    ]
    panel = [
        row(str(n), longs, [i for i in range(len(long)) if len(long[i].text) == n])
        for n in range(9, 13)
    ]
    knobs = [
        row(
            f"{knob}: {name}", right, [i for i in everything if label(mixed[i].knobs[knob]) == name]
        )
        for knob, label in KNOBS.items()
        for name in sorted({label(one.knobs[knob]) for one in mixed})
    ]
    return "\n".join(
        [
            "# Reading made-up strings\n",
            f"Whole strings right, in per cent with Wilson's 95 % interval. Seed {TEST_SEED}, "
            "MNIST's test digits and pen-drawn ones, the ranges of the last part of training.\n",
            f"sha256 of the {len(mixed)} strings of 0 to 8 digits: `{fingerprint(mixed)}`; of the "
            f"{len(four)} of 4 digits: `{fingerprint(four)}`\n",
            table(HEADER, rows),
            "\n## By length\n",
            f"The ceiling is p^L, p = {100 * share:.2f} % of {len(single)} strings of one digit.\n",
            table((*HEADER[:1], *HEADER[1:], "ceiling"), lengths),
            "\n## Longer than any string in training\n",
            table(HEADER, panel),
            "\n## How sure\n",
            sureness(chances, right["both"], model),
            "\n## By knob, 0 to 8 digits\n",
            table(HEADER, knobs),
            "\n" + setting(),
        ]
    )


def clean(drawn: Drawn) -> bool:
    """No rules, print, grain, blur, JPEG, nor few pixels."""
    k = drawn.knobs
    dirt = (k["rules"], k["print"], k["noise"], k["blur"], k["jpeg"], k["hard"], k["coarse"] != 1)
    return not any(dirt)


def doubled(text: str) -> bool:
    return any(a == b for a, b in pairwise(text))


def sureness(chances: list[float], right: list[bool], model: Reader) -> str:
    """The reject curve, and how true the probabilities are."""
    curve = coverage(chances, right)
    rows = []
    for wanted in (1.0, 0.99, 0.95, 0.9, 0.8):
        one = min(curve, key=lambda c: abs(c.coverage - wanted))
        rows.append(
            [
                f"{100 * one.coverage:.1f} %",
                f"{one.threshold:.3f}",
                wilson(round(one.accuracy * one.n), one.n),
                one.n,
            ]
        )
    kept = [r for c, r in zip(chances, right, strict=True) if c >= model.threshold]
    return (
        table(("answered", "from probability", "right", "n"), rows)
        + f"\nExpected calibration error {100 * expected_error(chances, right):.1f} points at "
        f"temperature {model.temperature}; at the reader's own threshold {model.threshold}: "
        f"{100 * len(kept) / len(chances):.1f} % answered, {wilson(sum(kept), len(kept))} right.\n"
    )


def data_folder() -> Path:
    here = Path(__file__).resolve().parents[1]
    return Path(os.environ.get("VITREOUS_DATA", here.parent / "shared" / "data"))


def draw_page(number: int) -> tuple[Any, list[str]]:
    """A photographed page: 8 rows and 3 columns of numbers of MNIST's test digits."""
    rng = np.random.default_rng(stream(TEST_SEED, "page", number))
    bank, (high, wide) = bank_of("test"), (1300, 1000)
    ink, texts = np.zeros((high, wide), np.float32), []
    for place in range(24):
        left = int(wide * (place % 3 + 0.12) / 3)
        top = int(high * (place // 3 + 0.3) / 8)
        texts.append("")
        for _ in range(int(rng.integers(1, 7))):
            chosen = int(rng.integers(len(bank.images)))
            digit = np.flatnonzero([chosen in of for of in bank.of])[0]
            texts[-1] += str(digit)
            image = Image.fromarray(bank.images[chosen]).resize((42, 42))
            y = top + int(rng.integers(-3, 4))
            part = ink[y : y + 42, left : left + 42]
            np.maximum(part, np.asarray(image, np.float32) / 255, out=part)
            left += int(rng.integers(26, 34))
    if number % 2:
        ink[40::162] = np.maximum(ink[40::162], 0.5)
        ink[41::162] = np.maximum(ink[41::162], 0.5)
    turned = Image.fromarray(ink).rotate(rng.uniform(-3, 3), Image.Resampling.BILINEAR)
    light = np.linspace(rng.uniform(0.5, 1), 1, wide) * np.linspace(1, 0.8, high)[:, None]
    grey = 235 * light * (1 - rng.uniform(0.35, 0.9) * np.asarray(turned))
    return np.clip(grey + rng.normal(0, 3, grey.shape), 0, 255).astype(np.uint8), texts


def pages(reader: NumberReader, count: int) -> str:
    """How many pages come back line by line, and how many numbers are right in their place."""
    drawn = [draw_page(number) for number in range(count)]
    readings = reader.read([prepare(Image.fromarray(pixels)) for pixels, _ in drawn])
    whole = [len(r.lines) == len(t) for r, (_, t) in zip(readings, drawn, strict=True)]
    right = [
        line.text == text
        for reading, (_, texts), counted in zip(readings, drawn, whole, strict=True)
        if counted
        for line, text in zip(reading.lines, texts, strict=True)
    ]
    total = sum(len(texts) for _, texts in drawn)
    rows = [
        ["pages with as many lines as numbers", wilson(sum(whole), count), count],
        ["numbers right in their place", wilson(sum(right), total), total],
    ]
    return "\n".join(
        [
            "# Reading pages of numbers\n",
            "8 rows and 3 columns of numbers of 1 to 6 test digits, tilted by 3 degrees, uneven "
            "light, pencil to ink, every second one ruled. In per cent with Wilson's 95 % "
            "interval; a page with a line too many or too few is wrong in all its numbers.\n",
            table(("", "right", "n"), rows),
            setting(),
        ]
    )


def own(reader: NumberReader) -> str:
    folder = data_folder() / "own_digits"
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    readings = reader.read([reader.prepare(folder / line["file"]) for line in lines])
    hits: dict[tuple[str, str], list[bool]] = defaultdict(list)
    missed = []
    for line, reading in zip(lines, readings, strict=True):
        right = reading.text == line["label"]
        hits[line["kind"], line["file"].split("/")[0]].append(right)
        if not right:
            missed.append(
                [
                    line["file"],
                    line["label"],
                    reading.text or "nothing",
                    f"{reading.confidence:.3f}",
                    "yes" if reading.rejected else "no",
                ]
            )
    whole = [hit for several in hits.values() for hit in several]
    rows = [
        [f"{kind}, {source}", wilson(sum(v), len(v)), sum(v), len(v)]
        for (kind, source), v in hits.items()
    ]
    photos = [hit for (kind, _), v in hits.items() if kind.startswith("photo") for hit in v]
    truth = [reading.text == line["label"] for line, reading in zip(lines, readings, strict=True)]
    error = 100 * expected_error([reading.confidence for reading in readings], truth)
    return "\n".join(
        [
            "# Reading people's own images\n",
            "Whole texts right, by kind and source, in per cent with Wilson's 95 % interval. None "
            "of these was trained on; faults of line finding were found on them.\n",
            table(
                ("kind, source", "right", "right", "n"),
                [
                    *rows,
                    ["all photographs", wilson(sum(photos), len(photos)), sum(photos), len(photos)],
                    ["all", wilson(sum(whole), len(whole)), sum(whole), len(whole)],
                ],
            ),
            "\n" + table(("missed", "shows", "read", "probability", "rejected"), missed),
            f"\nExpected calibration error {error:.1f} points.\n",
            setting(),
        ]
    )


def cheques(reader: NumberReader, steps: int) -> str:
    with np.load(data_folder() / "cheque_amounts.npz") as file:
        jpeg, ends, labels = file["jpeg"], file["offsets"], file["label"].astype(str)
    order = np.random.default_rng(stream(0, "cheques")).permutation(len(labels))
    held = order[-(len(order) // 5) :]
    pages = {int(i): prepare(jpeg[ends[i] : ends[i + 1]].tobytes()) for i in order}
    rows = []
    for name, model in (
        ("weights of the package", reader.model),
        (
            "fine-tuned on four fifths",
            tuned(reader.model, pages, labels, order[: -(len(order) // 5)], steps),
        ),
    ):
        readings = NumberReader(model).read([pages[int(i)] for i in held])
        right = [r.text == labels[i] for i, r in zip(held, readings, strict=True)]
        numbers = [len(pages[int(i)].strips) == 1 for i in held]
        kept = [hit for hit, r in zip(right, readings, strict=True) if not r.rejected]
        error = expected_error([r.confidence for r in readings], right)
        rows.append(
            [
                name,
                wilson(sum(right), len(right)),
                len(right),
                f"{100 * np.mean(numbers):.1f}",
                f"{100 * len(kept) / len(right):.1f}",
                wilson(sum(kept), len(kept)),
                f"{100 * error:.1f}",
            ]
        )
    return "\n".join(
        [
            "# Reading amounts on bank cheques\n",
            "Whole amounts right on a held-out fifth, in per cent with Wilson's 95 % interval. "
            "ORAND-CAR-A's training part, a research set; nothing tuned on it is shipped.\n",
            table(
                (
                    "weights",
                    "right",
                    "n",
                    "found as one line, %",
                    "not rejected, %",
                    "of those right",
                    "calibration error",
                ),
                rows,
            ),
            f"\nFine-tuning: {steps} steps of 64 amounts.\n",
            setting(),
        ]
    )


def tuned(model: Reader, pages: dict[int, Page], labels: Any, chosen: Any, steps: int) -> Reader:
    """A copy of the model, trained on these amounts, those that were found as one line."""
    torch.manual_seed(0)
    model = deepcopy(model).train()
    usable = [int(i) for i in chosen if len(pages[int(i)].strips) == 1]
    recipe = Recipe(
        learning_rate=4e-4, matrix_rate=0.006, batch_size=64, max_steps=steps, warmup=0.05
    )
    optimizers = make_optimizers(model, recipe)
    for step in range(steps):
        rows = np.random.default_rng(stream(0, "batch", step)).choice(usable, 64, replace=False)
        images, widths = pad([pages[int(i)].strips[0].levels for i in rows])
        luck = torch.Generator().manual_seed(stream(0, "augment", step))
        images = affine(images, luck, rotate=3.0, shift=0.04, scale=0.12, shear=0.2)
        loss = loss_of(
            model, images, torch.full_like(widths, images.shape[3]), [str(labels[i]) for i in rows]
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak"] * rate(step, steps, recipe)
            optimizer.step()
            optimizer.zero_grad()
    return model.eval()


def main() -> None:
    options: argparse.ArgumentParser = parser(__doc__)
    options.add_argument("part", choices=("synthetic", "pages", "own", "cheques"))
    options.add_argument("--count", type=int, default=2000, help="made-up strings (default: 2000)")
    options.add_argument("--steps", type=int, default=400, help="of fine-tuning (default: 400)")
    options.add_argument("--model", type=Path, help="other weights than the package's")
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    reader = NumberReader.load(chosen.model)
    text = {
        "synthetic": lambda: synthetic(reader.model, chosen.count),
        "pages": lambda: pages(reader, max(1, chosen.count // 100)),
        "own": lambda: own(reader),
        "cheques": lambda: cheques(reader, chosen.steps),
    }[chosen.part]()
    publish(f"reading-{chosen.part}", text, write=chosen.write)


if __name__ == "__main__":
    main()
