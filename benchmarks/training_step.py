"""How many images a second does a whole training step take in, ours against the field's?

    python benchmarks/training_step.py --rounds 10 --write

A step is forward, loss, backward and AdamW, on one batch of real digits, of the published digit
architecture. Peers run at their best setting: fused AdamW for all, and in bfloat16 both autocast
and bfloat16 weights. All of them take turns within one process; the verdict is the median over
rounds of ours divided by the fastest peer of that round; no gradient is clipped. About 25 minutes
on two idle cores.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, product
from statistics import median
from typing import NamedTuple

import torch
import torch.nn.functional as F
from peers import PEERS
from report import parser, publish, setting, spread, table
from torch import Tensor, nn

from vitreous.config import Recipe, preset
from vitreous.data.sources import load_source
from vitreous.frontends.image import normalise
from vitreous.models.classifier import build
from vitreous.objectives.classification import classification_loss
from vitreous.training.loop import Batch, fit
from vitreous.training.optimizers import make_optimizers
from vitreous.training.precision import Working

CONFIG = preset("digits")
RATE = 3e-4
MODES = {"float32": ("float32",), "bfloat16": ("autocast", "bfloat16 weights")}
OURS = "vitreous"


class Digits(NamedTuple):
    """One batch, used for every step."""

    images: Tensor
    labels: Tensor


class Contender:
    """A model in training; calling it takes one step."""

    def __init__(self, steps: Iterator[float], parameters: int) -> None:
        self.steps, self.parameters = steps, parameters
        self.losses: list[float] = []

    def __call__(self) -> None:
        self.losses.append(next(self.steps))

    @property
    def learns(self) -> bool:
        """Whether the loss on the batch has fallen."""
        return self.losses[-1] < self.losses[0]


def digits(size: int) -> Digits:
    """The first training digits, as every contender sees them."""
    data = load_source("mnist")
    images = normalise(torch.from_numpy(data.train_images[:size]), data.input)
    return Digits(images, torch.from_numpy(data.train_labels[:size]))


def ours(precision: str, batch: Digits) -> Contender:
    """Our step, through our own training loop."""
    recipe = Recipe(optimizer="adamw", learning_rate=RATE, precision=precision)
    master = build(CONFIG)
    dtype = getattr(torch, precision)
    images = batch.images.to(dtype)
    steps = fit(
        Working(master, dtype),
        our_loss,
        (Batch(number, images, batch.labels) for number in count()),
        make_optimizers(master, recipe),
        rate=lambda _: 1.0,
    )
    return Contender((step.loss for step in steps), parameters(master))


def our_loss(model: nn.Module, batch: Batch) -> Tensor:
    return classification_loss(model(batch.images), batch.labels)


def peer(name: str, mode: str, batch: Digits) -> Contender:
    """A peer's step, written as its users write it."""
    model = PEERS[name].build(CONFIG)
    return Contender(peer_steps(model, mode, batch), parameters(model))


def peer_steps(model: nn.Module, mode: str, batch: Digits) -> Iterator[float]:
    """Train for ever on one batch."""
    dtype = torch.bfloat16 if mode == "bfloat16 weights" else torch.float32
    model, images = model.to(dtype).train(), batch.images.to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    while True:
        with torch.autocast("cpu", torch.bfloat16, enabled=mode == "autocast"):
            logits = model(images)
        loss = F.cross_entropy(logits.float(), batch.labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def line_up(precision: str, size: int) -> dict[str, Contender]:
    """Every contender at every setting, each from seed 0, ours first."""
    batch = digits(size)
    builders: dict[str, Callable[[], Contender]] = {OURS: partial(ours, precision, batch)}
    for name in PEERS:
        for mode in MODES[precision]:
            builders[f"{name} · {mode}"] = partial(peer, name, mode, batch)
    contenders = {}
    for name, builder in builders.items():
        torch.manual_seed(0)
        contenders[name] = builder()
    return contenders


def check_sizes(contenders: dict[str, Contender]) -> None:
    """Each model must be as large as ours, but for the stated difference."""
    for name, contender in contenders.items():
        extra = 0 if name == OURS else PEERS[peer_of(name)].extra
        wanted = contenders[OURS].parameters + extra
        if contender.parameters != wanted:
            raise SystemExit(f"{name}: {contender.parameters:,} parameters, not {wanted:,}")


def check_learning(contenders: dict[str, Contender]) -> None:
    """Each model must have learned something while it was timed."""
    idle = [name for name, contender in contenders.items() if not contender.learns]
    if idle:
        raise SystemExit(f"no lower loss at the end than at the start: {', '.join(idle)}")


def peer_of(name: str) -> str:
    return name.split(" · ")[0]


def race(precision: str, size: int, *, rounds: int, steps: int) -> str:
    """One precision at one batch size, as a section of the result."""
    contenders = line_up(precision, size)
    check_sizes(contenders)
    for contender in contenders.values():
        contender()
    timings = []
    for number in range(1, rounds + 1):
        timings.append(one_round(contenders, steps))
        rate = size / timings[-1][OURS]
        progress(f"{precision}, batch {size}, round {number}/{rounds}: ours {rate:.0f} images/s")
    check_learning(contenders)
    return section(f"{precision}, batch {size}", contenders, timings, size)


def one_round(contenders: dict[str, Contender], steps: int) -> dict[str, float]:
    """Seconds of a step of every contender, taken in a random order."""
    order = random.sample(list(contenders), len(contenders))
    return {name: seconds(contenders[name], steps) for name in order}


def seconds(contender: Contender, steps: int) -> float:
    """How long one step takes, from several in a row."""
    started = time.perf_counter()
    for _ in range(steps):
        contender()
    return (time.perf_counter() - started) / steps


def progress(line: str) -> None:
    """Say how far it is, apart from the result."""
    print(line, file=sys.stderr, flush=True)


def section(
    title: str, contenders: dict[str, Contender], timings: Sequence[dict[str, float]], size: int
) -> str:
    """The verdict, and every contender's rate, the fastest first."""
    fastest = min((n for n in contenders if n != OURS), key=lambda n: middle(timings, n))
    best = [min(s for n, s in timing.items() if n != OURS) / timing[OURS] for timing in timings]
    rows = [
        row(name, contenders[name], timings, size)
        for name in sorted(contenders, key=lambda n: middle(timings, n))
    ]
    header = ["model", "parameters", "images/s (min–max)", "ours / it (min–max)", "loss"]
    return (
        f"## {title}\n\nOurs / the fastest peer of each round: **{spread(best, 2)}**, "
        f"n = {len(best)} rounds. Fastest peer by its median: {fastest}.\n\n{table(header, rows)}"
    )


def middle(timings: Sequence[dict[str, float]], name: str) -> float:
    return median(timing[name] for timing in timings)


def row(
    name: str, contender: Contender, timings: Sequence[dict[str, float]], size: int
) -> list[object]:
    """One contender: how fast, against ours in the same rounds, and that it learned."""
    return [
        f"**{name}**" if name == OURS else name,
        f"{contender.parameters:,}",
        spread([size / timing[name] for timing in timings]),
        spread([timing[name] / timing[OURS] for timing in timings], 2),
        f"{contender.losses[0]:.2f} → {contender.losses[-1]:.2f}",
    ]


def differences() -> str:
    """How each peer's model differs from the published one."""
    return table(["peer", "differs"], [[name, peer.differs] for name, peer in PEERS.items()])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--precisions", nargs="+", choices=MODES, default=list(MODES))
    options.add_argument("--batches", nargs="+", type=int, default=[64, 256])
    options.add_argument("--rounds", type=int, default=10)
    options.add_argument("--steps", type=int, default=3, help="steps in a row in a round")
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    sections = [
        race(precision, size, rounds=chosen.rounds, steps=chosen.steps)
        for precision, size in product(chosen.precisions, chosen.batches)
    ]
    counted = (
        f"n = {chosen.rounds} rounds of {chosen.steps} steps, after one that is not counted.\n"
    )
    parts = ["# One training step\n", setting(), counted, *sections, differences()]
    publish("training_step", "\n".join(parts), write=chosen.write)


if __name__ == "__main__":
    main()
