"""Measure how fast this machine does what training is made of."""

import time
from collections.abc import Callable, Iterator
from itertools import product
from statistics import median
from typing import NamedTuple

import torch
from torch import Tensor, nn

from vitreous.cost.calibration import ACTIVATIONS, HEAD_DIMS, Calibration, Number
from vitreous.cost.time import newton_schulz
from vitreous.nn.attention import Attend, Attention, merge_heads, split_heads
from vitreous.nn.encoder import Block
from vitreous.nn.mlp import ACTIVATIONS as FUNCTIONS
from vitreous.nn.mlp import Mlp
from vitreous.training.folder import now
from vitreous.training.job import machine
from vitreous.training.memory import hold_memory
from vitreous.training.precision import Working

__all__ = ["calibrate"]

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
WIDTHS = (16, 64, 192, 384, 768)
TOKENS = (17, 50, 197, 577)
MAPS = ((1, 32, 28), (3, 96, 56), (64, 128, 14))
"""Channels in, channels out and pixels a side of a stem's convolutions."""
MANY = 1 << 21
"""Numbers in a tensor that is too large for a core's own cache."""
HEADS = 4
BUDGET = 0.08
"""Seconds for each kind of work; at least three turns are taken."""


class Trial(NamedTuple):
    """One function to be timed both ways, and the units of work in it."""

    name: str
    """With a gap for the way."""
    size: Number
    units: Number
    function: Callable[[Tensor], Tensor]
    given: Tensor


def calibrate(progress: Callable[[int, int], None] | None = None) -> Calibration:
    """Measure every kind of work once; `progress` is called with (done, of).

    Takes about half a minute on two idle cores. The caller's random numbers stay as they were.
    """
    hold_memory()
    curves: dict[str, list[tuple[Number, Number]]] = {}
    with torch.random.fork_rng(devices=[]):
        jobs = list(measurements())
        for done, job in enumerate(jobs):
            if progress is not None:
                progress(done, len(jobs))
            for name, size, seconds in job():
                curves.setdefault(name, []).append((size, seconds))
    return Calibration(
        machine=machine(torch.device("cpu")).rsplit(",", 1)[0],
        threads=torch.get_num_threads(),
        torch=str(torch.__version__),
        measured=now(),
        curves=curves,
    )


Found = tuple[str, Number, float]


def measurements() -> Iterator[Callable[[], list[Found]]]:
    """What is to be measured, each as a call that makes its tensors when its turn comes."""
    for precision, width in product(DTYPES, WIDTHS):
        yield lambda p=precision, w=width: both_ways(linear(p, w))
    for precision, (wide, narrow, side) in product(DTYPES, MAPS):
        yield lambda p=precision, a=wide, b=narrow, s=side: both_ways(convolution(p, a, b, s))
    for precision, activation in product(DTYPES, ACTIVATIONS):
        yield lambda p=precision, a=activation: both_ways(pointwise(p, a))
    for precision in DTYPES:
        yield lambda p=precision: both_ways(norm(p))
        yield lambda p=precision: both_ways(block(p))
        yield lambda p=precision: [handling(p)]
    for precision, e, tokens in product(DTYPES, HEAD_DIMS, TOKENS):
        yield lambda p=precision, e=e, n=tokens: [
            *both_ways(attention(p, e, n)),
            without_gradient(attention(p, e, n)),
        ]
    yield lambda: [adamw()]
    for width in WIDTHS:
        yield lambda w=width: [muon(w)]


def both_ways(trial: Trial) -> list[Found]:
    """Seconds of a unit forward, and of its gradients backward."""
    given = trial.given.requires_grad_()
    weights = list(trial.function.parameters()) if isinstance(trial.function, nn.Module) else []
    result = trial.function(given)
    downstream = torch.randn_like(result)
    result.backward(downstream)
    times: list[tuple[float, float]] = []
    while unfinished(times):
        for tensor in (given, *weights):
            tensor.grad = None
        start = time.perf_counter()
        result = trial.function(given)
        turn = time.perf_counter()
        result.backward(downstream)
        times.append((turn - start, time.perf_counter() - turn))
    return [
        (trial.name.format(way=way), trial.size, median(spent) / trial.units)
        for way, spent in zip(("forward", "backward"), zip(*times, strict=True), strict=True)
    ]


def without_gradient(trial: Trial) -> Found:
    """Seconds of a unit where nothing is kept."""
    with torch.no_grad():
        seconds = seconds_of(lambda: trial.function(trial.given.detach()))
    return trial.name.format(way="inference"), trial.size, seconds / trial.units


def seconds_of(call: Callable[[], object]) -> float:
    """How long one call takes, after one that is not counted."""
    call()
    times: list[tuple[float, ...]] = []
    while unfinished(times):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start,))
    return median(spent for (spent,) in times)


def unfinished(times: list[tuple[float, ...]]) -> bool:
    """Whether to take another turn."""
    return len(times) < 3 or sum(map(sum, times)) < BUDGET


def linear(precision: str, width: int) -> Trial:
    """A matrix product as the MLP has it; a unit is a multiply-add."""
    rows = max(2048, MANY // (8 * width) if width < 384 else 0)
    given = torch.randn(rows, width, dtype=DTYPES[precision])
    layer = nn.Linear(width, 4 * width, dtype=given.dtype)
    units = rows * 4 * width * width
    return Trial(f"linear.{{way}}.{precision}", width, units, layer, given)


def convolution(precision: str, wide: int, narrow: int, side: int) -> Trial:
    """A stem's convolution; a unit is a multiply-add."""
    images = max(MANY // (wide * side * side), 1)
    given = torch.randn(images, wide, side, side, dtype=DTYPES[precision])
    layer = nn.Conv2d(wide, narrow, 3, stride=2, padding=1, dtype=given.dtype)
    units = images * 9 * wide * narrow * (side // 2) ** 2
    return Trial(f"convolution.{{way}}.{precision}", wide, units, layer, given)


def pointwise(precision: str, activation: str) -> Trial:
    """An activation; a unit is one hidden number."""
    gated = activation == "swiglu"
    given = torch.randn(2048, (1 + gated) * MANY // 2048, dtype=DTYPES[precision])
    function = gate if gated else FUNCTIONS[activation]
    return Trial(f"{activation}.{{way}}.{precision}", 1, MANY, function, given)


def gate(x: Tensor) -> Tensor:
    """What SwiGLU does between its matrices."""
    gate, value = x.chunk(2, dim=-1)
    return nn.functional.silu(gate) * value


def norm(precision: str) -> Trial:
    """A norm and the sum around its branch; a unit is one number of a token."""
    given = torch.randn(64, MANY // (64 * 256), 256, dtype=DTYPES[precision])
    layer = nn.LayerNorm(256, dtype=given.dtype)
    return Trial(f"norm.{{way}}.{precision}", 1, MANY, Residual(layer), given)


class Residual(nn.Module):
    """A branch and the sum around it."""

    def __init__(self, branch: nn.Module) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x)


def block(precision: str) -> Trial:
    """A block too small to calculate anything: what calling its operations costs; a unit is it."""
    norms = nn.LayerNorm(8), nn.LayerNorm(8)
    tiny = Block(norms[0], Attention(8, 2), norms[1], Mlp(8, 16)).to(DTYPES[precision])
    given = torch.randn(1, 2, 8, dtype=DTYPES[precision])
    return Trial(f"block.{{way}}.{precision}", 1, 1, tiny, given)


def attention(precision: str, head_dim: int, tokens: int) -> Trial:
    """From one matrix of queries, keys and values to what was read; a unit is one weight."""
    images = max(MANY // (HEADS * tokens * tokens), 1)
    given = torch.randn(images, tokens, 3 * HEADS * head_dim, dtype=DTYPES[precision])
    units = images * HEADS * tokens * tokens
    name = f"attention{head_dim}.{{way}}.{precision}"
    return Trial(name, tokens, units, attend, given)


def attend(qkv: Tensor) -> Tensor:
    """Attention between its projections, by the path that a model would take."""
    q, k, v = (split_heads(t, HEADS) for t in qkv.chunk(3, dim=-1))
    return merge_heads(Attend()(q, k, v))


def handling(precision: str) -> Found:
    """Gradients to the master, clipped, and weights back; a unit is a parameter."""
    master = nn.Linear(2048, MANY // 2048)
    working = Working(master, DTYPES[precision])
    gradients = [torch.randn_like(p) for p in working.model.parameters()]

    def handle() -> None:
        for weight, gradient in zip(working.model.parameters(), gradients, strict=True):
            weight.grad = gradient
        working.hand_over_gradients()
        nn.utils.clip_grad_norm_(master.parameters(), 1.0)
        working.take_weights()

    return f"handling.{precision}", 1, seconds_of(handle) / MANY


def adamw() -> Found:
    """A step of AdamW; a unit is a parameter."""
    weights = nn.Parameter(torch.randn(2048, MANY // 2048))
    weights.grad = torch.randn_like(weights)
    return "adamw", 1, seconds_of(torch.optim.AdamW([weights], fused=True).step) / MANY


def muon(width: int) -> Found:
    """A step of Muon on a matrix of an MLP; a unit is a multiply-add of its iteration."""
    weights = nn.Parameter(torch.randn(width, 4 * width))
    weights.grad = torch.randn_like(weights)
    seconds = seconds_of(torch.optim.Muon([weights]).step)
    return "muon", width, seconds / newton_schulz(width, 4 * width)
