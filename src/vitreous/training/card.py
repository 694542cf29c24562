"""The model card of a run: what it really came to, and how that was made."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitreous.checkpoints.card import Measured, rewrite_results, write_card
from vitreous.checkpoints.store import CONFIG
from vitreous.protocol import ledger
from vitreous.training.folder import LEDGER, RUN, Result, read_json, read_result
from vitreous.training.report import origin_of

__all__ = ["render_card", "renew_card"]


def render_card(out: Path) -> None:
    """Write the card of a run that has ended, from the run's own files."""
    result = read_result(out)
    job = read_json(out / RUN)
    figures = {"test accuracy": result.test_accuracy, "test loss": result.test_loss}
    measured = Measured(results_of(out, result, job), dataset_name(job["source"]), figures)
    write_card(out, read_json(out / CONFIG), parameters=result.parameters, measured=measured)


def renew_card(out: Path) -> None:
    """Write the results into the card anew, after another look at the test set."""
    rewrite_results(out, results_of(out, read_result(out), read_json(out / RUN)))


def dataset_name(source: str) -> str:
    """What the hub may call the data: never a path of this machine.

    >>> [dataset_name(source) for source in ("mnist", "hf:o/digits@main:a.npz", "/home/me/a.npz")]
    ['mnist', 'o/digits', 'a']
    """
    if source.startswith("hf:"):
        return source.removeprefix("hf:").partition("@")[0]
    return Path(source).stem


def results_of(out: Path, result: Result, job: Mapping[str, Any]) -> str:
    """Figures, how they came about, and every look at the test set."""
    rows = [*figures(result), *origins(job), ("weights, sha256", result.weights_sha256)]
    looks = [
        (touch.time, touch.purpose, f"{touch.correct:,} of {touch.n:,}", f"`{touch.command}`")
        for touch in ledger.read(out / LEDGER)
    ]
    return "\n\n".join(
        [
            "One seed is one run: how much another seed would differ, it cannot tell.",
            table(("", ""), rows),
            "Every look at the test set:",
            table(("when (UTC)", "why", "right", "command"), looks),
        ]
    )


def figures(result: Result) -> list[tuple[str, str]]:
    """The figures, each with what it was measured on."""
    return [
        ("test accuracy", f"{result.test_accuracy:.4f}, {result.correct:,} of n = {result.n:,}"),
        ("floor", f"{result.floor:.4f}, always the most common class"),
        ("validation accuracy", f"{result.validation_accuracy:.4f}, n = {result.validation_n:,}"),
        ("seed", str(result.seed)),
        ("weights kept", result.kept),
        ("training", f"{result.train_seconds:.1f} s, {result.epochs} epochs, {result.steps} steps"),
    ]


def origins(job: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Command, machine, data, and the weights that it started from."""
    return [
        ("started from", origin_of(job)),
        ("command", f"`{job['command']}`"),
        ("machine", job["machine"]),
        ("data", f"{job['source']}; {job['note']}" if job["note"] else job["source"]),
        *((f"{name}, sha256", value) for name, value in job["data_sha256"].items()),
    ]


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A markdown table; a bar in a cell is no border."""
    lines = [head, ("---",) * len(head), *rows]
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
