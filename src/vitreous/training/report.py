"""The run's own page: what it came to, how it got there, and every look at the test set."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from vitreous.checkpoints.files import write_bytes, write_json
from vitreous.data.dataset import Dataset
from vitreous.errors import RunError
from vitreous.figures import page, style
from vitreous.protocol import ledger
from vitreous.training.evaluate import Score
from vitreous.training.folder import (
    HISTORY,
    LEDGER,
    MISTAKES,
    REPORT,
    RUN,
    WRONG,
    Result,
    read_json,
    read_list,
    read_result,
)

__all__ = ["origin_of", "record_mistakes", "render_report"]

SHOWN = 24


def record_mistakes(out: Path, dataset: Dataset, tested: Score) -> None:
    """Keep which test images were read wrongly, and the first of them for the report."""
    wrong = [
        (index, answer, truth)
        for index, (answer, truth) in enumerate(
            zip(tested.predictions, dataset.test_labels.tolist(), strict=True)
        )
        if answer != truth
    ]
    names = dataset.class_names
    mistakes = [
        {
            "index": index,
            "read": names[answer],
            "truth": names[truth],
            "picture": page.image_data(dataset.test_images[index]),
        }
        for index, answer, truth in wrong[:SHOWN]
    ]
    write_json(out / MISTAKES, mistakes)
    write_json(out / WRONG, [index for index, _, _ in wrong])


def render_report(out: Path) -> Path:
    """Write `report.html` from the run's other files, and say where it is."""
    result, job = read_result(out), read_json(out / RUN)
    history = read_list(out / HISTORY)
    parts = [
        lead(result, job),
        page.section("Result", page.facts(figures_of(result))),
        page.section("Epoch by epoch", accuracy_chart(history, result), loss_chart(history)),
        page.section("Wrongly read", mistakes(read_list(out / MISTAKES), result)),
        page.section("Every look at the test set", looks(ledger.read(out / LEDGER))),
        page.section("Data", page.facts(data_of(job))),
        page.section("Recipe", page.facts(job["recipe"])),
        page.section("Model", page.facts(job["config"])),
    ]
    path = out / REPORT
    write_bytes(path, page.page(f"vitreous: {out.resolve().name}", parts).encode())
    return path


def lead(result: Result, job: Mapping[str, Any]) -> str:
    """The one sentence that a reader takes home."""
    return (
        f'<p class="lead">{result.correct:,} of {result.n:,} unseen test images were read '
        f"correctly: <b>{result.test_accuracy:.2%}</b>. Always guessing the most common class gets "
        f"{result.floor:.2%}.</p>"
        f'<p class="muted">One seed on {escape(job["machine"])}. How much another seed would '
        "differ, one run cannot tell.</p>"
    )


def figures_of(result: Result) -> dict[str, str]:
    """The result's figures, as a reader wants them."""
    return {
        "test accuracy": f"{result.test_accuracy:.4f} (n = {result.n:,})",
        "floor": f"{result.floor:.4f} (always the most common class)",
        "validation accuracy": f"{result.validation_accuracy:.4f} (n = {result.validation_n:,})",
        "weights kept": result.kept,
        "training time": f"{result.train_seconds:.1f} s, validation included",
        "epochs": f"{result.epochs} ({result.steps:,} steps)",
        "parameters": f"{result.parameters:,}",
        "seed": str(result.seed),
        "weights, sha256": result.weights_sha256,
    }


def data_of(job: Mapping[str, Any]) -> dict[str, object]:
    """Which data, how split, on what, by which command."""
    split = job["split"]
    return {
        "source": job["source"],
        "note": job["note"] or "none",
        "to train on": f"{split['training']:,} images",
        "to select on": f"the last {split['validation']:,} training images",
        **{f"{name}, sha256": value for name, value in job["data_sha256"].items()},
        "started from": origin_of(job),
        "command": job["command"],
        "started": job["started"],
        "machine": job["machine"],
        "versions": ", ".join(f"{name} {version}" for name, version in job["versions"].items()),
    }


def origin_of(job: Mapping[str, Any]) -> str:
    """Which weights the run began with, and how they were to follow."""
    start = job.get("start")
    if not start:
        return "random numbers"
    pace = f"layer decay {start['layer_decay']}" if start["layer_decay"] else "all at one rate"
    pace = "frozen but for its head" if start["freeze"] else pace
    return f"{start['weights']}, sha256 {start['sha256']}; {pace}; {'; '.join(start['notes'])}"


def accuracy_chart(history: Sequence[Mapping[str, Any]], result: Result) -> str:
    """Validation accuracy by epoch, the floor dashed, the final test accuracy at the right edge."""
    epochs = [epoch["epoch"] for epoch in history]
    values = [epoch["validation_accuracy"] for epoch in history]
    with style.chart() as (figure, axes):
        axes.plot(epochs, values, color=style.BLUE, marker="o", markersize=4)
        axes.annotate(
            f"validation {values[-1]:.4f}",
            (epochs[-1], values[-1]),
            xytext=(-6, -16),
            textcoords="offset points",
            ha="right",
            color=style.BLUE,
        )
        axes.plot(epochs[-1], result.test_accuracy, "D", color=style.ORANGE, markersize=6)
        axes.annotate(
            f"test {result.test_accuracy:.4f}",
            (epochs[-1], result.test_accuracy),
            xytext=(-6, -32),
            textcoords="offset points",
            ha="right",
            color=style.ORANGE,
        )
        style.floor_line(axes, result.floor, f"always the most common class: {result.floor:.4f}")
        axes.set(title="Accuracy", xlabel="epoch", ylim=(0, 1.03))
        style.whole_numbers(axes)
        return page.chart(style.svg(figure), "Validation accuracy after each epoch.")


def loss_chart(history: Sequence[Mapping[str, Any]]) -> str:
    """Training and validation loss by epoch."""
    epochs = [epoch["epoch"] for epoch in history]
    lines = {"training": ("train_loss", style.AQUA), "validation": ("validation_loss", style.BLUE)}
    above = max(lines, key=lambda name: history[-1][lines[name][0]])
    with style.chart() as (figure, axes):
        for name, (key, colour) in lines.items():
            values = [epoch[key] for epoch in history]
            axes.plot(epochs, values, color=colour, marker="o", markersize=4)
            axes.annotate(
                name,
                (epochs[-1], values[-1]),
                xytext=(8, 0),
                va="bottom" if name == above else "top",
                textcoords="offset points",
                color=colour,
            )
        axes.margins(y=0.12)
        axes.set(title="Loss (nats per image)", xlabel="epoch", ylim=(0, None))
        style.whole_numbers(axes)
        return page.chart(
            style.svg(figure),
            "Training loss is the mean over the epoch, while the weights still move and with "
            "augmentation and label smoothing where the recipe has them; so it can lie above.",
        )


def mistakes(wrong: Sequence[Mapping[str, Any]], result: Result) -> str:
    """The first wrongly read images, each with what was read and what it is."""
    if not wrong:
        return "<p>None.</p>"
    tiles = [
        page.tile(one["picture"], f"read {one['read']}, is {one['truth']}", f"test {one['index']}")
        for one in wrong
    ]
    count = f"<p>The first {len(wrong)} of {result.n - result.correct:,}.</p>"
    return count + page.tiles(tiles)


def looks(touches: Sequence[ledger.Touch]) -> str:
    """The test ledger as a table; raises RunError where there is none, which cannot be."""
    if not touches:
        raise RunError("the test ledger is empty, though the test set was scored")
    rows = [(moment(t.time), t.purpose, f"{t.correct:,} of {t.n:,}", t.command) for t in touches]
    return page.table(rows, head=("when (UTC)", "why", "right", "command"))


def moment(time: str) -> str:
    """An ISO time in UTC, as a person reads it."""
    return time.replace("T", " ").removesuffix("+00:00")
