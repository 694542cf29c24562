"""How many bytes a model needs, to train and to answer, counted on paper."""

from dataclasses import dataclass

from vitreous.config import Recipe, ViTConfig
from vitreous.cost.activations import BYTES, live, saved
from vitreous.cost.parameters import count_parameters, hidden_matrices

__all__ = ["Memory", "answering", "inference", "training"]

FLOAT32 = BYTES["float32"]
PARTS = ("weights", "optimizer", "overhead", "activations", "gradients")
CODE = {"float32": 125_000_000, "bfloat16": 140_000_000}
"""Bytes of torch's own code, which the system loads as it is first used."""
HOLES = {"float32": 0.2, "bfloat16": 0.25}
"""Held by glibc between blocks of memory, for each byte of activations."""
BLOCK_HOLES = {"float32": 1.2, "bfloat16": 2.2}
"""The same, for each byte of one block's activations."""
MOST_HOLES = {"float32": 0.55, "bfloat16": 0.75}
"""Both together are not more than this for each byte of activations, however few the blocks."""
MUON_HOLES = 0.3
"""The same, for each byte of the gradients of the matrices that Muon moves."""
OVERLAP = 0.4
"""How much of the smaller of gradients and activations is there beside the whole larger one."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Bytes, by what they hold."""

    weights: int
    """Float32, with the working copy in bfloat16 and the other copies that a recipe keeps."""
    gradients: int
    optimizer: int
    activations: int
    """What the forward pass leaves for the backward pass, the images of the batch included."""
    overhead: int
    """The code that torch loads at its first step, and holes between blocks of memory."""
    total: int
    """At the worst moment of a step."""
    inference: int
    """At the worst moment of a forward pass that keeps nothing, in float32, overhead included."""

    @property
    def at_worst(self) -> dict[str, int]:
        """The parts of the total: gradients come as activations go, so that one is not whole."""
        parts = {name: getattr(self, name) for name in PARTS}
        partly = "gradients" if self.gradients < self.activations else "activations"
        return parts | {partly: parts[partly] - sum(parts.values()) + self.total}


def training(config: ViTConfig, recipe: Recipe) -> Memory:
    """Memory of training on a CPU, at the recipe's batch size and precision."""
    parameters = count_parameters(config)
    working = 0 if recipe.precision == "float32" else BYTES[recipe.precision]
    weights = (FLOAT32 * copies(recipe) + working) * parameters
    gradients, states = FLOAT32 * parameters, optimizer_states(config, recipe)
    activations = recipe.batch_size * saved(config, recipe).total
    overhead = CODE[recipe.precision] + holes(config, recipe, activations)
    first, second = sorted((gradients, activations), reverse=True)
    return Memory(
        weights=weights,
        gradients=gradients,
        optimizer=states,
        activations=activations,
        overhead=overhead,
        total=weights + states + overhead + first + round(OVERLAP * second),
        inference=inference(config, recipe.batch_size),
    )


def answering(config: ViTConfig, recipe: Recipe) -> Memory:
    """Memory of answering for a batch: float32, and nothing is kept for a gradient."""
    weights = FLOAT32 * count_parameters(config)
    whole = inference(config, recipe.batch_size)
    return Memory(
        weights=weights,
        gradients=0,
        optimizer=0,
        activations=whole - weights - CODE["float32"],
        overhead=CODE["float32"],
        total=whole,
        inference=whole,
    )


def inference(config: ViTConfig, batch: int) -> int:
    """Bytes at the worst moment of a forward pass that keeps nothing, in float32."""
    return FLOAT32 * (count_parameters(config) + batch * live(config)) + CODE["float32"]


def copies(recipe: Recipe) -> int:
    """Float32 copies of the weights: the weights, their moving average, and the best so far."""
    return 1 + (recipe.average > 0) + (recipe.keep == "best")


def optimizer_states(config: ViTConfig, recipe: Recipe) -> int:
    """Bytes that the optimizer remembers: AdamW two numbers a parameter, Muon one a matrix."""
    matrices = hidden_matrices(config) if recipe.optimizer == "muon" else 0
    return FLOAT32 * (2 * (count_parameters(config) - matrices) + matrices)


def holes(config: ViTConfig, recipe: Recipe, activations: int) -> int:
    """Bytes that glibc holds between blocks of memory and cannot give out again; measured.

    `training.memory.hold_memory` keeps what is freed, and the next step's tensors do not fit quite
    as the last one's did: benchmarks/plan_accuracy.py.
    """
    precision = recipe.precision
    by_depth = HOLES[precision] + BLOCK_HOLES[precision] / max(config.depth, 1)
    share = min(by_depth, MOST_HOLES[precision])
    matrices = FLOAT32 * hidden_matrices(config) if recipe.optimizer == "muon" else 0
    return round(share * activations + MUON_HOLES * matrices)
