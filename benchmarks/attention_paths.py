"""Which of the two paths of attention is faster, forward and with its backward?

`attend_plain` against `attend_fused` on queries, keys and values that are cut from one matrix, as
the model cuts them. Both run in every round, in random order. `nn.attention.choose_path` rests on
this table.

    python benchmarks/attention_paths.py --rounds 20 --write

About 2 minutes on two cores.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median

import torch
from report import parser, publish, setting, spread, table
from torch import Tensor

from vitreous.nn.attention import PATHS, split_heads

SHAPES = (
    (64, 8, 50, 16),
    (64, 4, 17, 32),
    (64, 4, 50, 32),
    (16, 3, 197, 64),
    (8, 6, 197, 64),
    (2, 6, 577, 64),
    (1, 6, 1025, 64),
)
"""Batch, heads, tokens and numbers per head."""
Shape = tuple[int, int, int, int]
Attend = Callable[..., Tensor]
Calls = dict[str, Callable[[], object]]


def projected(shape: Shape, dtype: torch.dtype) -> Tensor:
    """What a block's first Linear gives: (b, n, 3·h·e)."""
    b, h, n, e = shape
    return torch.randn(b, n, 3 * h * e).to(dtype)


def forward(attend: Attend, qkv: Tensor, heads: int) -> Tensor:
    """Attention alone."""
    return attend(*(split_heads(t, heads) for t in qkv.chunk(3, dim=-1)))


def both(attend: Attend, qkv: Tensor, heads: int) -> None:
    """Attention and its gradient."""
    forward(attend, qkv.detach().requires_grad_(), heads).sum().backward()


def milliseconds(work: Callable[[], object], repeats: int) -> float:
    """How long one call takes, from several in a row."""
    started = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - started) * 1e3 / repeats


def calls_of(shape: Shape, dtype: torch.dtype, *, training: bool) -> Calls:
    """Both paths on the same numbers, as calls without arguments."""
    work, qkv = both if training else forward, projected(shape, dtype)
    return {name: partial(work, attend, qkv, shape[1]) for name, attend in PATHS.items()}


def race(calls: Calls, rounds: int, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each path in every round."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name in random.sample(list(calls), len(calls)):
            times[name].append(milliseconds(calls[name], repeats))
    return times


def row(shape: Shape, times: dict[str, list[float]]) -> list[object]:
    """One line of the table."""
    plain, fused = times["plain"], times["fused"]
    ratio = [f / p for p, f in zip(plain, fused, strict=True)]
    return [shape, f"{median(plain):.2f}", f"{median(fused):.2f}", spread(ratio, 2)]


def section(dtype: torch.dtype, *, training: bool, rounds: int, repeats: int) -> str:
    """One precision, with or without the backward, over all shapes."""
    name = "forward and backward" if training else "forward"
    rows = [row(s, race(calls_of(s, dtype, training=training), rounds, repeats)) for s in SHAPES]
    header = ["(b, h, n, e)", "plain, ms", "fused, ms", "fused / plain (min–max)"]
    return f"## {str(dtype).removeprefix('torch.')}, {name}\n\n" + table(header, rows)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--repeats", type=int, default=3, help="calls in a row in a round")
    chosen = options.parse_args()
    torch.set_num_threads(chosen.threads)
    sections = [
        section(dtype, training=training, rounds=chosen.rounds, repeats=chosen.repeats)
        for dtype, training in product((torch.float32, torch.bfloat16), (False, True))
    ]
    counted = f"Medians of n = {chosen.rounds} rounds.\n"
    parts = ["# Two paths of attention\n", setting(), counted, *sections]
    publish("attention_paths", "\n".join(parts), write=chosen.write)


if __name__ == "__main__":
    main()
