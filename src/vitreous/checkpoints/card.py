"""The model card: a README with the front matter that the Hugging Face hub reads.

What the model is comes from its config. What it is worth comes from a run that measured it, or the
card says that nothing was measured.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitreous.checkpoints.files import write_bytes
from vitreous.errors import CheckpointError

__all__ = ["CARD", "Measured", "card_text", "rewrite_results", "write_card"]

CARD = "README.md"
BEGIN, END = "<!-- vitreous: results -->", "<!-- vitreous: end of results -->"
NOTHING = "No results: this model was saved on its own, and nothing here was measured on it."


@dataclass(frozen=True)
class Measured:
    """What a run measured: prose for people, and the figures for the hub's own index."""

    text: str
    dataset: str
    figures: Mapping[str, float]
    """Name in words and value, as `test accuracy`; the hub's type is the last word."""


def write_card(
    folder: Path,
    config: Mapping[str, Any],
    *,
    parameters: int,
    measured: Measured | None = None,
    licence: str | None = None,
) -> None:
    """Write the card of a checkpoint; a README that is not a card of ours stays as it is."""
    path = folder / CARD
    if path.exists() and BEGIN not in read_text(path):
        return
    text = card_text(
        config, folder.resolve().name, parameters=parameters, measured=measured, licence=licence
    )
    write_bytes(path, text.encode())


def rewrite_results(folder: Path, text: str) -> None:
    """Put other results between the marks of a card; what people wrote around them stays."""
    path = folder / CARD
    whole = read_text(path) if path.exists() else ""
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        write_bytes(path, f"{before}{results(text)}{after}".encode())


def read_text(path: Path) -> str:
    """A card's text; raises CheckpointError for a file that is no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path}: not readable as text: {error}") from error


def results(text: str) -> str:
    """Results between the marks by which they are found again."""
    return f"{BEGIN}\n{text.strip()}\n{END}"


def card_text(
    config: Mapping[str, Any],
    name: str,
    *,
    parameters: int,
    measured: Measured | None = None,
    licence: str | None = None,
) -> str:
    """The whole card of a checkpoint's config."""
    model, names = config["model"], config["class_names"]
    parts = [
        front_matter(name, measured, licence),
        f"# {name}",
        f"A Vision Transformer of {parameters:,} parameters, in the format of vitreous: "
        f"{sentence(model)}.",
        "## Use",
        '```python\nimport vitreous\n\nmodel = vitreous.load("FOLDER OR OWNER/NAME")\n'
        f"logits = model(images)  # {shape(model)} -> (b, {len(names)})\n```",
        preparation(config["input"]),
        f"Classes: {listed(names)}.",
        "## Results",
        results(NOTHING if measured is None else measured.text),
    ]
    return "\n\n".join(parts) + "\n"


def front_matter(name: str, measured: Measured | None, licence: str | None) -> str:
    """The YAML block that the hub reads. JSON is YAML, so values are written as JSON."""
    lines = ["library_name: vitreous", "pipeline_tag: image-classification"]
    lines += ["tags:", "- vitreous", "- vision-transformer"]
    if licence is not None:
        lines.append(f"license: {json.dumps(licence)}")
    if measured is not None:
        index = [{"name": name, "results": [hub_result(measured)]}]
        lines.append(f"model-index: {json.dumps(index, allow_nan=False)}")
    return "\n".join(["---", *lines, "---"])


def hub_result(measured: Measured) -> dict[str, Any]:
    """The figures in the form of the hub's model index."""
    return {
        "task": {"type": "image-classification"},
        "dataset": {"name": measured.dataset, "type": measured.dataset},
        "metrics": [
            {"type": name.split()[-1], "name": name, "value": value}
            for name, value in measured.figures.items()
        ],
    }


def sentence(model: Mapping[str, Any]) -> str:
    """The settings that people ask for first."""
    names = ("image_size", "channels", "patch_size", "stem", "width", "depth", "heads")
    names += ("positions", "pooling", "classes")
    return ", ".join(f"{name} {model[name]}" for name in names if name in model)


def shape(model: Mapping[str, Any]) -> str:
    """The shape of a batch of images."""
    size = model["image_size"]
    y, x = size if isinstance(size, list) else (size, size)
    return f"(b, {model['channels']}, {y}, {x})"


def preparation(image_input: Mapping[str, Any] | None) -> str:
    """How an image becomes the model's input."""
    if image_input is None:
        return "How images are to be prepared is not recorded."
    mean, std = image_input["mean"], image_input["std"]
    return (
        f"Images: pixels as 0..1, minus {numbers(mean)}, over {numbers(std)}; a "
        f"{image_input['kind']} of another size is fitted by `{image_input['resize']}` "
        "(`vitreous predict` does all of it)."
    )


def numbers(values: Sequence[float]) -> str:
    """One number, or several in brackets."""
    return str(values[0]) if len(values) == 1 else f"({', '.join(map(str, values))})"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Class names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "none"
