"""Stacked bars: what a whole is made of, for several wholes side by side."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from vitreous.figures.style import AQUA, BLUE, INK, MUTED, ORANGE, PURPLE

__all__ = ["stacked"]

COLOURS = (BLUE, ORANGE, AQUA, PURPLE, MUTED, INK)


def stacked(axes: Axes, bars: Sequence[Mapping[str, float]], names: Sequence[str]) -> None:
    """One bar a name, from the top down; every part has its colour, named above the bars."""
    parts = list(dict.fromkeys(part for bar in bars for part in bar))
    starts = [0.0] * len(bars)
    for part, colour in zip(parts, COLOURS, strict=False):
        widths = [bar.get(part, 0.0) for bar in bars]
        axes.barh(range(len(bars)), widths, left=starts, color=colour, label=part, height=0.62)
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    axes.set_yticks(range(len(bars)), names)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_axisbelow(True)
    axes.grid(visible=False, axis="y")
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=3,
        frameon=False,
        fontsize=8.5,
        handlelength=0.9,
        columnspacing=1.0,
    )
