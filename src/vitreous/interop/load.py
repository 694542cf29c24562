"""Anyone's weights as one of our models, with a full account."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vitreous.checkpoints import store
from vitreous.config import Pair, ViTConfig, pair
from vitreous.errors import CheckpointError, ConfigError
from vitreous.frontends.image import ImageInput
from vitreous.interop import clip, dino, google, hugging_face, torchvision, vit_pytorch
from vitreous.interop.asked import Asked, Colours, Format, Found
from vitreous.interop.change import change_channels, change_size
from vitreous.interop.check import compare
from vitreous.interop.containers import Container, open_weights, some
from vitreous.interop.pieces import Pieces, Tensors
from vitreous.interop.report import Report, Row
from vitreous.interop.unwrap import unwrap
from vitreous.models.classifier import Classifier, build, positions

__all__ = ["FORMATS", "load_weights", "recognise"]


def load_weights(
    path: str | Path,
    heads: int | None = None,
    *,
    source_size: int | Pair | None = None,
    image_size: int | Pair | None = None,
    channels: int | None = None,
    config: ViTConfig | None = None,
    check: str | Path | None = None,
) -> tuple[Classifier, Report]:
    """A model in eval mode from a file or folder of another library, and the account of it.

    `heads` and `source_size` (pixels of the images that its position table is for) are asked for
    where the file does not tell. `image_size` stretches positions by the source's own convention,
    `channels` turns colour weights to grey with the normalisation folded in, or grey ones to
    colour. `config` is for bare tensors of ours. `check` is an npz file with images `x` and the
    library's own outputs, which are compared. Nothing is ever unpickled.

    Raises CheckpointError for a format that is not known, a tensor that is missing, surplus, of the
    wrong shape or kind, numbers that are not finite, and outputs that differ.
    """
    container = open_weights(path)
    if store.CONFIG in container.metadata:
        model, report = own(container)
    else:
        model, report = foreign(container, heads, source_size, config)
    report = replace(report, path=str(path))
    if check is not None:
        report = replace(report, checks=compare(model, Path(check), report.format))
    return changed(model, report, image_size, channels)


def own(container: Container) -> tuple[Classifier, Report]:
    """A checkpoint of ours, whose config travels in it."""
    model = store.load(container.path)
    rows = [
        Row(name, tuple(tensor.shape), "taken", name) for name, tensor in container.content.items()
    ]
    return model, Report("vitreous", str(container.path), tuple(rows), conventions(model))


def foreign(
    container: Container,
    heads: int | None,
    source_size: int | Pair | None,
    config: ViTConfig | None,
) -> tuple[Classifier, Report]:
    """Another library's file, or bare tensors of ours."""
    try:
        tensors, rows, notes = unwrap(container.content)
        asked = Asked(Tensors(tensors), container.config or {}, heads, source_size)
        form = recognise(asked.tensors, config)
        found = form.read(asked)
        model, taken = assemble(found)
    except (CheckpointError, ConfigError) as error:
        raise CheckpointError(f"{container.path}: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise CheckpointError(
            f"{container.path}: its config or names cannot be read: {error!r}"
        ) from error
    report = Report(
        form.name,
        str(container.path),
        (*taken, *rows),
        conventions(model),
        notes=(*notes, *found.notes),
    )
    return model, report


def recognise(tensors: Tensors, config: ViTConfig | None) -> Format:
    """The one format whose names these are. Raises CheckpointError for none, or several."""
    if OURS in tensors:
        return Format("vitreous", lambda _: True, lambda asked: read_ours(asked, config))
    fitting = [form for form in FORMATS if form.knows(tensors)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise CheckpointError(f"its names fit {' and '.join(form.name for form in fitting)}")
    known = ", ".join(form.name for form in FORMATS)
    raise CheckpointError(
        f"its names are of no known format; the first are {some(tensors)}; known are {known}"
    )


def assemble(found: Found) -> tuple[Classifier, list[Row]]:
    """The model of a config, filled with pieces; nothing of it is left to chance."""
    with torch.device("meta"):
        model = build(found.config)
    wanted: dict[str, Tensor] = dict(model.named_parameters())
    buffers = {f"pos_embed.{n}": b for n, b in positions(found.config).named_buffers()}
    wanted |= {name: buffer for name, buffer in buffers.items() if name in found.pieces.pieces}
    state, rows = found.pieces.build(wanted)
    model.load_state_dict(buffers | state, assign=True)
    model.image_input = prepared(found.config, found.colours)
    if found.class_names is not None:
        model.class_names = found.class_names
    return model.eval(), rows


def prepared(config: ViTConfig, colours: Colours | None) -> ImageInput | None:
    """How the source library normalises pictures, where it does."""
    if colours is None or config.channels != len(colours.mean):
        return None
    return ImageInput(
        size=config.image_shape,
        channels=config.channels,
        kind="picture",
        resize="crop",
        mean=colours.mean,
        std=colours.std,
    )


def conventions(model: Classifier) -> dict[str, Any]:
    """What fails silently where two libraries differ."""
    config, given = model.config, model.image_input
    return {
        "norm_eps": config.norm_eps,
        "activation": config.activation,
        "heads": config.heads,
        "position_resize": config.position_resize if config.positions == "learned" else None,
        "grid": list(config.grid),
        "prefix_tokens": config.prefix_tokens,
        "pooling": config.pooling,
        "mean": given and list(given.mean),
        "std": given and list(given.std),
    }


def changed(
    model: Classifier, report: Report, image_size: int | Pair | None, channels: int | None
) -> tuple[Classifier, Report]:
    """The model for other images, as far as that was asked for."""
    notes = list(report.notes)
    if channels is not None and channels != model.config.channels:
        notes.append(f"{model.config.channels} channels became {channels}")
        model = change_channels(model, channels)
    if image_size is not None and pair(image_size) != model.config.image_shape:
        was = "×".join(map(str, model.config.image_shape))
        notes.append(f"positions for {was} pixels were stretched: {model.config.position_resize}")
        model = change_size(model, image_size)
    return model, replace(report, notes=tuple(notes), conventions=conventions(model))


OURS = "encoder.blocks.0.attn.qkv.weight"


def read_ours(asked: Asked, config: ViTConfig | None) -> Found:
    """Bare tensors of ours, as a training script saved them: their config is given."""
    if config is None:
        raise CheckpointError(
            "it holds tensors of ours and no config: give config=..., or load the run's folder"
        )
    pieces = Pieces(asked.tensors)
    for name in build_on_meta(config).state_dict():
        pieces.take(name, name)
    grid = "pos_embed.grid"
    if grid in asked.tensors:
        if tuple(asked.tensors[grid].tolist()) != config.grid:
            raise CheckpointError(f"{grid} is {asked.tensors[grid].tolist()}, not {config.grid}")
        pieces.leave([grid], "the config says it")
    pieces.pieces.pop(grid, None)
    return Found(config, pieces, None)


def build_on_meta(config: ViTConfig) -> nn.Module:
    """A model without numbers."""
    with torch.device("meta"):
        return build(config)


FORMATS: tuple[Format, ...] = (
    *dino.FORMATS,
    *hugging_face.FORMATS,
    *clip.FORMATS,
    *torchvision.FORMATS,
    *google.FORMATS,
    *vit_pytorch.FORMATS,
)
"""Every format that is read."""
