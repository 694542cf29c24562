"""The figures of a study: every seed, every difference, curves, and lines along a setting."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import offset_copy

from vitreous.figures import style
from vitreous.studies.lines import Line
from vitreous.studies.statistics import Interval
from vitreous.studies.summary import ArmSummary, Summary

__all__ = ["FIGURES", "along_chart", "curve_chart", "difference_chart", "seed_chart"]

COLOURS = (style.BLUE, style.ORANGE, style.AQUA, style.PURPLE)
ROW = 0.42
"""Inches for each arm of a chart that lists them."""


def looks(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """A colour and a dash for each name; after four the colours come again, dashed."""
    dashes = (dash for dash in cycle(("-", "--", ":")) for _ in COLOURS)
    return {
        name: {"color": colour, "linestyle": dash}
        for name, colour, dash in zip(names, cycle(COLOURS), dashes)
    }


@contextmanager
def listed(names: Sequence[str], width: float = 6.4) -> Iterator[tuple[Figure, Axes]]:
    """A chart with a row for each name, the first on top."""
    with style.chart(width, 0.9 + ROW * len(names)) as (figure, axes):
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.grid(axis="y", visible=False)
        yield figure, axes


def row(axes: Axes, place: int, values: Sequence[float], interval: Interval, colour: str) -> None:
    """Every value as a dot, the mean as a bar, its interval as a line."""
    apart = np.linspace(-0.16, 0.16, len(values)) if len(values) > 1 else [0.0]
    axes.scatter(values, place + np.asarray(apart), s=16, color=colour, alpha=0.55, linewidths=0)
    if interval.low is not None and interval.high is not None:
        axes.plot([interval.low, interval.high], [place, place], color=colour, linewidth=2)
    axes.plot([interval.mean] * 2, [place - 0.24, place + 0.24], color=colour, linewidth=2)


def seed_chart(summary: Summary) -> Figure | None:
    """Every seed of every arm, the floor dashed."""
    colours = looks([arm.arm for arm in summary.arms])
    with listed([arm.arm for arm in summary.arms]) as (figure, axes):
        for place, arm in enumerate(summary.arms):
            row(axes, place, arm.values, arm.interval, colours[arm.arm]["color"])
            if arm.floor is not None:
                axes.plot([arm.floor] * 2, [place - 0.4, place + 0.4], "--", color=style.MUTED)
        floors = [arm.floor for arm in summary.arms if arm.floor is not None]
        if floors:
            axes.set_xlim(0, 1.02)
            axes.annotate(
                "always the most common class",
                (floors[0], -0.5),
                xytext=(3, 3),
                textcoords="offset points",
                color=style.MUTED,
                fontsize=8,
            )
        axes.set_xlabel(f"{words(summary.header.measure)}, each dot one seed")
        return figure


def difference_chart(summary: Summary) -> Figure | None:
    """Every difference of every contrast, paired by seed, beside what nothing looks like."""
    contrasts = [*summary.contrasts, *filter(None, [summary.null])]
    if not contrasts:
        return None
    names = [f"{one.arm} − {one.base}" for one in contrasts]
    points = 100.0 if summary.header.measure.endswith("accuracy") else 1.0
    with listed(names, width=6.8) as (figure, axes):
        for place, one in enumerate(contrasts):
            colour = style.MUTED if one is summary.null else style.BLUE
            found = one.paired
            row(
                axes,
                place,
                [points * difference for difference in found.differences],
                found.difference.times(points),
                colour,
            )
        axes.axvline(0, color=style.INK, linewidth=1)
        unit = " (points)" if points == 100 else ""
        axes.set_xlabel(f"difference of {words(summary.header.measure)}{unit}, paired by seed")
        return figure


def curve_chart(summary: Summary) -> Figure | None:
    """Validation accuracy by epoch: the mean and a band over seeds; the test scores at the end."""
    arms = [arm for arm in summary.arms if summary.of(arm.arm)[0].curves]
    if not arms:
        return None
    look = looks([arm.arm for arm in arms])
    with style.chart(6.8, 4.0) as (figure, axes):
        ends = {arm.arm: curve(axes, summary, arm, look[arm.arm]) for arm in arms}
        axes.set_ylim(0, 1.03)
        label_ends(figure, axes, ends, look)
        for floor in sorted({arm.floor for arm in arms if arm.floor is not None}):
            style.floor_line(axes, floor, f"most common class: {floor:.4f}")
        axes.set(xlabel="epoch", title="Validation accuracy, and test accuracy at the end")
        style.whole_numbers(axes)
        last = max(len(curves(line)) for arm in arms for line in summary.of(arm.arm))
        axes.set_xticks([tick for tick in axes.get_xticks() if 1 <= tick <= last])
        return figure


def curves(line: Line) -> list[float]:
    """Validation accuracy of a cell, epoch by epoch."""
    return line.curves["validation_accuracy"]


def curve(
    axes: Axes, summary: Summary, arm: ArmSummary, look: Mapping[str, str]
) -> tuple[float, float]:
    """One arm's line, band and test points; says where it ends."""
    own = [curves(line) for line in summary.of(arm.arm)]
    epochs = np.arange(1, max(map(len, own)) + 1)
    table = np.full((len(own), len(epochs)), np.nan)
    for index, values in enumerate(own):  # patience may end some before others
        table[index, : len(values)] = values
    axes.plot(epochs, np.nanmean(table, axis=0), color=look["color"], linestyle=look["linestyle"])
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    axes.fill_between(epochs, low, high, color=look["color"], alpha=0.18, linewidth=0)
    edge = epochs[-1] * 1.03
    axes.scatter([edge] * len(arm.values), arm.values, s=14, color=look["color"], linewidths=0)
    return float(edge), arm.interval.mean


def label_ends(
    figure: Figure,
    axes: Axes,
    ends: Mapping[str, tuple[float, float]],
    look: Mapping[str, Mapping[str, str]],
) -> None:
    """Names beside the ends of lines, moved apart where they would touch."""
    low, high = axes.get_ylim()
    places = {name: y for name, (_, y) in ends.items()}
    heights = spread_out(places, gap=0.062 * (high - low), top=high)
    for name, (x, _) in ends.items():
        height = heights[name]
        beside = offset_copy(axes.transData, figure, x=7, units="points")
        axes.text(x, height, name, transform=beside, color=look[name]["color"], va="center")


def spread_out(places: Mapping[str, float], gap: float, top: float) -> dict[str, float]:
    """Places in the same order, a gap apart at least, none above the top, near where they were.

    >>> spread_out({"a": 1.0, "b": 1.0}, gap=0.5, top=2.0)
    {'a': 1.25, 'b': 0.75}
    """

    def middle(group: list[str]) -> float:
        wanted = sum(places[name] for name in group) / len(group)
        return min(wanted, top - gap * (len(group) - 1) / 2)

    groups: list[list[str]] = []
    for name in sorted(places, key=lambda name: -places[name]):
        groups.append([name])
        while len(groups) > 1:
            above, below = groups[-2:]
            reach = gap * (len(above) + len(below)) / 2
            if middle(above) - middle(below) >= reach:
                break
            groups[-2:] = [above + below]
    return {
        name: middle(group) + gap * ((len(group) - 1) / 2 - place)
        for group in groups
        for place, name in enumerate(group)
    }


def along_chart(summary: Summary) -> Figure | None:
    """The measures along the study's axis: a line for each series, a panel for each measure."""
    header = summary.header
    if not header.series or not summary.arms:
        return None
    trained = header.measure == "test_accuracy"
    measures = [header.measure] if trained else list(summary.lines[0].measures)
    with style.drawing(6.8 if trained else 3.9 * len(measures), 3.8) as figure:
        panels = figure.subplots(1, len(measures), squeeze=False)[0]
        for axes, measure in zip(panels, measures, strict=True):
            series_panel(figure, axes, summary, measure)
        floor = summary.arms[0].floor
        if trained and floor is not None:
            panels[0].set_ylim(0, 1.03)
            style.floor_line(panels[0], floor, f"most common class: {floor:.4f}")
        return figure


def series_panel(figure: Figure, axes: Axes, summary: Summary, measure: str) -> None:
    """One measure along the axis, every seed a dot."""
    header = summary.header
    look, ends = looks(list(header.series)), {}
    for name, places in header.series.items():
        points = sorted((x, arm) for arm, x in places.items() if summary.of(arm))
        values = [[line.measures[measure] for line in summary.of(arm)] for _, arm in points]
        if not points:
            continue
        xs, means = [x for x, _ in points], [float(np.mean(some)) for some in values]
        axes.plot(xs, means, color=look[name]["color"], linestyle=look[name]["linestyle"])
        for x, some in zip(xs, values, strict=True):
            axes.scatter([x] * len(some), some, s=14, color=look[name]["color"], linewidths=0)
        ends[name] = (xs[-1], means[-1])
    ticks = sorted({x for places in header.series.values() for x in places.values()})
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel=header.along, title=words(measure), ylim=(0, None))
    label_ends(figure, axes, ends, look)


def words(measure: str) -> str:
    """A measure's name as a reader knows it."""
    return measure.replace("_", " ")


FIGURES: Mapping[str, tuple[Callable[[Summary], Figure | None], str]] = {
    "along": (along_chart, "Means over seeds as lines, every seed as a dot."),
    "curves": (
        curve_chart,
        "Lines are means over seeds, bands reach from the lowest seed to the highest, dots at the "
        "right edge are test accuracies, one a seed.",
    ),
    "seeds": (seed_chart, "Dots are seeds; the bar is the mean, with its 95 % interval."),
    "differences": (
        difference_chart,
        "Dots are differences of two runs with the same seed; the bar is their mean, with its "
        "95 % interval. The grey row is the base against itself on other seeds: what a difference "
        "of nothing looks like.",
    ),
}
"""Every figure of a report, in its order, and what it shows."""
