"""Draw the README's figure from finished runs: a digit cut into patches, and how the runs learned.

    python scripts/readme_figure.py RUN RUN RUN --out docs/figures/digits.png

The runs are the same job with different seeds; their line is the mean, their band the spread.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vitreous import load_source, patchify
from vitreous.figures import style


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("runs", nargs="+", type=Path)
    words.add_argument("--out", type=Path, required=True)
    arguments = words.parse_args()
    with style.drawing(10, 3.6) as figure:
        draw(figure, arguments.runs)
        figure.savefig(arguments.out, dpi=200)


def draw(figure: Figure, runs: list[Path]) -> None:
    picture, patches, curves = figure.subplots(1, 3, width_ratios=[1, 1, 2.1])
    dataset = load_source("mnist")
    image = torch.from_numpy(dataset.test_images[:1]).float()
    show(picture, image[0, 0].numpy(), "An image, 28×28 …")
    show(patches, spread(patchify(image, 4)[0].numpy(), 7, 4), "… is 49 patches")
    draw_curves(curves, runs)


def show(axes: Axes, pixels: np.ndarray, title: str) -> None:
    axes.imshow(pixels, cmap="gray", vmin=0, vmax=255)
    axes.set_title(title)
    axes.set_axis_off()


def spread(patches: np.ndarray, side: int, size: int) -> np.ndarray:
    """Patches laid out in their grid with a pixel of nothing (NaN) between them."""
    sheet = np.full((side * (size + 1) - 1,) * 2, np.nan)
    for index, patch in enumerate(patches):
        row, column = (part * (size + 1) for part in divmod(index, side))
        sheet[row : row + size, column : column + size] = patch.reshape(size, size)
    return sheet


def draw_curves(axes: Axes, runs: list[Path]) -> None:
    results = [json.loads((run / "result.json").read_text()) for run in runs]
    values = np.array([accuracies(run) for run in runs])
    epochs = np.arange(1, values.shape[1] + 1)
    mean = values.mean(axis=0)
    axes.plot(epochs, mean, color=style.BLUE, marker="o", markersize=4)
    axes.fill_between(epochs, values.min(0), values.max(0), color=style.BLUE, alpha=0.2, lw=0)
    tests = np.array([result["test_accuracy"] for result in results])
    axes.plot([epochs[-1] + 0.12] * len(tests), tests, "D", color=style.ORANGE, markersize=4)
    axes.annotate("validation", (epochs[-1], mean[-1]), (-150, -22), color=style.BLUE, **OFFSET)
    text = f"test {tests.mean():.4f} (mean of {len(tests)} seeds)"
    axes.annotate(text, (epochs[-1], tests.mean()), (-150, -38), color=style.ORANGE, **OFFSET)
    floor = results[0]["floor"]
    style.floor_line(axes, floor, f"always the most common digit: {floor:.4f}")
    seconds = np.mean([result["train_seconds"] for result in results])
    axes.set(xlabel="epoch", ylim=(0, 1.05))
    axes.set_title(f"Accuracy, {seconds:.0f} s of training on two cores")
    style.whole_numbers(axes)


OFFSET = {"textcoords": "offset points"}


def accuracies(run: Path) -> list[float]:
    """Validation accuracy after each epoch of a run."""
    history = json.loads((run / "history.json").read_text())
    return [epoch["validation_accuracy"] for epoch in history]


if __name__ == "__main__":
    main()
