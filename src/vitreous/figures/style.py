"""One look for every figure: colours that survive colour blindness, few lines, direct labels."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = [
    "AQUA",
    "BLUE",
    "INK",
    "MUTED",
    "ORANGE",
    "PURPLE",
    "chart",
    "drawing",
    "floor_line",
    "png",
    "svg",
    "whole_numbers",
]

BLUE, ORANGE, AQUA, PURPLE = "#2a78d6", "#eb6834", "#1baf7a", "#8a63d2"
INK, MUTED, GRID = "#1c2126", "#5b6570", "#e6e6e3"

STYLE: dict[Any, Any] = {
    "axes.edgecolor": MUTED,
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "font.size": 10,
    "grid.color": GRID,
    "svg.fonttype": "path",
    "svg.hashsalt": "vitreous",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
}


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """An empty figure in the project's style; sizes in inches. Needs no display."""
    with matplotlib.rc_context(STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


@contextmanager
def chart(width: float = 5.2, height: float = 3.0) -> Iterator[tuple[Figure, Axes]]:
    """A figure with one pair of axes."""
    with drawing(width, height) as figure:
        yield figure, figure.subplots()


def floor_line(axes: Axes, level: float, text: str) -> None:
    """The dashed line that every accuracy is to be compared with."""
    axes.axhline(level, color=MUTED, linestyle="--", linewidth=1)
    axes.annotate(
        text,
        (0.01, level),
        xycoords=("axes fraction", "data"),
        xytext=(0, 4),
        textcoords="offset points",
        color=MUTED,
        fontsize=9,
    )


def whole_numbers(axes: Axes) -> None:
    """Ticks of the lower axis at whole numbers only: there is no epoch 1.5."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def svg(figure: Figure) -> str:
    """The figure as an svg element to put into a page; the same figure gives the same text."""
    file = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    return text[text.index("<svg") :]


def png(figure: Figure) -> bytes:
    """The figure as a picture file; the same figure gives the same bytes."""
    file = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(file, format="png", dpi=160, metadata={"Software": None})
    return file.getvalue()
