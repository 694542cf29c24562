"""Curves and points of what was found, in the project's style."""

from collections.abc import Mapping
from html import escape

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from torch import Tensor

from vitreous.figures import page, style
from vitreous.inspection.faithfulness import Faithfulness

__all__ = ["faithfulness_chart", "heads_chart"]


def faithfulness_chart(found: Faithfulness) -> str:
    """Deletion and insertion by a map, before the band of random orders; the verdict under it."""
    with style.drawing(5.0, 2.5) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        draw_curve(left, found, "deletion", "removed")
        draw_curve(right, found, "insertion", "inserted")
        left.set_ylabel(f"probability of {found.answer!r}")
        figure.legend(loc="outside upper center", ncols=2, frameon=False)
        drawn = style.svg(figure)
    verdict, numbers = found.sentence.split(". ", maxsplit=1)
    return (
        f'<figure class="chart">{drawn}<figcaption><b>{escape(verdict)}.</b> {escape(numbers)}'
        "</figcaption></figure>"
    )


def draw_curve(axes: Axes, found: Faithfulness, name: str, verb: str) -> None:
    """The answer's probability as more patches go, or come."""
    chance = np.array([getattr(curves, name) for curves in found.random])
    xs = [100 * fraction for fraction in found.curves.fractions]
    low, high = np.quantile(chance, [0.05, 0.95], axis=0)
    first = name == "deletion"
    axes.fill_between(xs, low, high, color=style.MUTED, alpha=0.2, linewidth=0)
    axes.plot(
        xs,
        chance.mean(axis=0),
        color=style.MUTED,
        linestyle="--",
        label="random orders: mean, and 90 % of them" if first else None,
    )
    axes.plot(
        xs, getattr(found.curves, name), color=style.BLUE, label="this map" if first else None
    )
    axes.set(title=name.capitalize(), xlabel=f"patches {verb}, %", ylim=(0, 1.03))


def heads_chart(
    values: Mapping[str, Float[Tensor, " h"]], title: str, unit: str, most: float | None = None
) -> str:
    """One point a head, by layer; the largest possible value dashed."""
    with style.chart(5.2, 2.7) as (figure, axes):
        for layer, heads in enumerate(values.values()):
            axes.plot([layer] * len(heads), heads.tolist(), "o", color=style.BLUE, alpha=0.7)
        if most is not None:
            style.floor_line(axes, most, f"the largest possible: {most:.2f}")
        top = max([most or 0.0, *(float(heads.max()) for heads in values.values())])
        axes.set(title=title, xlabel="layer", ylabel=unit, ylim=(0, 1.15 * top or 1.0))
        style.whole_numbers(axes)
        return page.chart(style.svg(figure), f"Each point is one head; {unit}.")
