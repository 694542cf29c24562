"""Plans side by side, drawn: what is calculated, and what memory holds."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from vitreous.cost.plan import Plan
from vitreous.errors import ConfigError
from vitreous.figures.bars import stacked
from vitreous.figures.style import drawing

__all__ = ["draw"]

KINDS = (".png", ".svg")


def draw(plans: Sequence[Plan], names: Sequence[str], path: Path) -> None:
    """Write a figure with a bar for each plan; raises ConfigError where it cannot be written."""
    if path.suffix not in KINDS:
        raise ConfigError(f"{path}: a figure ends in {' or '.join(KINDS)}")
    with drawing(9.0, 1.6 + 0.36 * len(plans)) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        stacked(left, [calculated(plan) for plan in plans], names)
        left.set_xlabel("multiply-adds of one image, G")
        stacked(right, [held(plan) for plan in plans], names)
        right.set_xlabel("memory of the batch, GB")
        try:
            figure.savefig(path, dpi=150)
        except OSError as error:
            raise ConfigError(f"{path}: could not be written: {error.strerror}") from error


def calculated(plan: Plan) -> dict[str, float]:
    """Thousand millions of multiply-adds, by part."""
    parts = asdict(plan.by_part)
    return {name.replace("_", " "): count / 1e9 for name, count in parts.items() if count}


def held(plan: Plan) -> dict[str, float]:
    """Gigabytes at the worst moment, by what they are."""
    return {kind: size / 1e9 for kind, size in plan.memory.at_worst.items() if size}
