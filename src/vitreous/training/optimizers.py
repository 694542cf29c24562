"""Which optimizer moves which weights, and how fast at each step."""

import math

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from vitreous.config import Recipe

__all__ = ["decaying", "hidden_matrices", "make_optimizers", "rate"]


def make_optimizers(model: nn.Module, recipe: Recipe) -> list[Optimizer]:
    """The recipe's optimizers; every trainable parameter is in exactly one group of one of them."""
    matrices = hidden_matrices(model) if recipe.optimizer == "muon" else []
    taken = {id(p) for p in matrices}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
    decays = {id(p) for p in (rest if recipe.decay_everything else decaying(model))}
    groups = [
        {"params": [p for p in rest if id(p) in decays], "weight_decay": recipe.weight_decay},
        {"params": [p for p in rest if id(p) not in decays], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(
        [group for group in groups if group["params"]], lr=recipe.learning_rate, fused=True
    )
    optimizers: list[Optimizer] = [adamw]
    if matrices:
        optimizers.append(
            torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay)
        )
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak"] = group["lr"]
    return optimizers


def decaying(model: nn.Module) -> list[Tensor]:
    """Weights that decay: matrices of linear maps and kernels. Nothing else in a model does."""
    kinds = (nn.Linear, nn.Conv2d)
    return [m.weight for m in model.modules() if isinstance(m, kinds) and m.weight.requires_grad]


def hidden_matrices(model: nn.Module) -> list[Tensor]:
    """The matrices between tokens and tokens, which Muon may orthogonalise: those of the blocks."""
    stacks = [part for name, part in model.named_children() if name in ("encoder", "decoder")]
    return [
        m.weight
        for stack in stacks
        for m in stack.modules()
        if isinstance(m, nn.Linear) and m.weight.requires_grad
    ]


def rate(step: int, steps: int, recipe: Recipe) -> float:
    """The factor on every learning rate at this step (from 0) of so many.

    It rises evenly over the warm-up, then falls to zero, evenly or along a cosine, or stays.
    """
    warmup = round(recipe.warmup * steps)
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(steps - warmup, 1)
    if recipe.schedule == "linear":
        return 1 - done
    if recipe.schedule == "cosine":
        return (1 + math.cos(math.pi * done)) / 2
    return 1.0
