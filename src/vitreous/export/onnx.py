"""A model as an ONNX file: any batch, one image size, and everything that it needs inside it."""

import json
import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from vitreous.checkpoints.files import require_room
from vitreous.checkpoints.store import CONFIG, described
from vitreous.config import Pair, pair
from vitreous.errors import CheckpointError, ConfigError, RunError, ShapeError
from vitreous.models.classifier import Classifier
from vitreous.nn.positions import Placed
from vitreous.shapes import Grid

__all__ = ["Exported", "export_onnx", "frozen"]

Shape: TypeAlias = tuple[int, int, int]
"""Channels, rows and columns of an image."""

INPUT, BATCH = "images", "batch"
BATCHES = (1, 3, 7)
"""Sizes that are compared; none of them is the one that the graph is traced with."""
TRACED = 2
TOLERANCE = 1e-4
LARGEST = 2_000_000_000
"""Bytes of weights; a protocol buffer ends at 2 GiB."""
NEEDED = ("onnx", "onnxruntime", "onnxscript")


@dataclass(frozen=True)
class Exported:
    """What was written, and how it compared."""

    file: str
    bytes: int
    input: tuple[str | int, ...]
    """Axes of the images; text is the name of a free one."""
    output: tuple[str | int, ...]
    batches: tuple[int, ...]
    """Batch sizes at which ONNX Runtime was compared with the model itself."""
    largest_difference: float
    """Between any two logits, over all of these."""
    nodes: int


class FixedPositions(nn.Module):
    """Positions of one grid as numbers: nothing is left to compute."""

    def __init__(self, placed: Placed) -> None:
        super().__init__()
        self.added, self.angle = (None if t is None else t.detach().clone() for t in placed)

    def forward(self, grid: Grid, like: Tensor) -> Placed:  # noqa: ARG002 - asked as all are
        return Placed(self.added, self.angle)


def export_onnx(
    model: Classifier, path: str | Path, *, image_size: int | Pair | None = None
) -> Exported:
    """Write a model as one ONNX file, after ONNX Runtime has agreed with it.

    Input `images` (batch, c, y, x), prepared pixels; output `logits` (batch, classes). The batch is
    free; the image size is the config's, or another one, to which positions are stretched and then
    frozen. How images are prepared, class names and config stand in the file's metadata. Needs the
    extra `vitreous[onnx]`. Raises CheckpointError where a part of it is absent, ConfigError for an
    image size that does not fit, RunError, and writes nothing, where logits differ by more than
    1e-4 of the largest.
    """
    require_parts()
    y, x = pair(model.config.image_size if image_size is None else image_size)
    fixed = frozen(model, (y, x))
    shape = (model.config.channels, y, x)
    path = Path(path)
    weights = sum(tensor.nbytes for tensor in fixed.state_dict().values())
    if path.is_dir():
        raise RunError(f"{path} is a folder; name the file in it")
    if weights > LARGEST:
        raise RunError(f"one ONNX file holds {LARGEST:,} bytes at most, and these are {weights:,}")
    require_room(path.parent, 2 * weights + 1_000_000)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        write(fixed, shape, temporary, metadata(model, (y, x)))
        exported = compare(fixed, shape, temporary, path)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return exported


def require_parts() -> None:
    """Raise CheckpointError where a package of the extra is absent, and name it."""
    from importlib.util import find_spec

    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        raise CheckpointError(
            f"ONNX needs {', '.join(absent)}, which is not installed: pip install 'vitreous[onnx]'"
        )


def frozen(model: Classifier, size: Pair) -> Classifier:
    """A copy on the CPU in float32 and eval mode that knows one image size, with fixed positions.

    Raises ConfigError where the patch does not tile the size.
    """
    if min(size) < 1:
        raise ConfigError(f"image_size={size} must be at least 1")
    copy = deepcopy(model).cpu().float().eval().requires_grad_(False)
    like = torch.zeros(1, model.config.channels, *size)
    try:
        placed = copy.pos_embed(copy.patch_embed.grid(like), like=like)
    except ShapeError as error:
        raise ConfigError(str(error)) from error
    copy.pos_embed = FixedPositions(placed)
    return copy


def output_name(model: Classifier) -> str:
    """Logits, or the pooled features of a model without a head."""
    return "logits" if model.config.classes else "features"


def example(shape: Shape, batch: int) -> Tensor:
    """Random prepared pixels, the same in every process."""
    return torch.randn(batch, *shape, generator=torch.Generator().manual_seed(batch))


def metadata(model: Classifier, size: Pair) -> dict[str, str]:
    """What a program must know to use the file, as text."""
    known: dict[str, Any] = described(model)
    if known["input"] is not None:
        known["input"] = {**known["input"], "size": list(size)}
    return {
        CONFIG: json.dumps(known),
        "class_names": json.dumps(known["class_names"]),
        "input": json.dumps(known["input"]),
    }


def write(model: Classifier, shape: Shape, path: Path, properties: dict[str, str]) -> None:
    """Trace the model with a free batch, and write it as ONNX with its metadata."""
    import onnx

    with quiet():
        # Strict: a `len` of a tensor stays a free number instead of becoming the traced batch.
        program = torch.export.export(
            model,
            (example(shape, TRACED),),
            dynamic_shapes=({0: torch.export.Dim(BATCH)},),
            strict=True,
        )
        torch.onnx.export(
            program,
            f=path,
            input_names=[INPUT],
            output_names=[output_name(model)],
            external_data=False,
            verbose=False,
        )
    graph = onnx.load(path)
    name_batch(graph)
    forget_origins(graph)
    onnx.helper.set_model_props(graph, properties)
    onnx.checker.check_model(graph, full_check=True)
    onnx.save(graph, path)


@contextmanager
def quiet() -> Iterator[None]:
    """Inside, the exporter does not speak of packages that this model does not need."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def name_batch(graph: Any) -> None:
    """Call the free axis `batch` at the input and at the output; forget sizes in between."""
    (images,) = graph.graph.input
    traced = images.type.tensor_type.shape.dim[0].dim_param
    for value in (*graph.graph.input, *graph.graph.output):
        for axis in value.type.tensor_type.shape.dim:
            if axis.dim_param == traced:
                axis.dim_param = BATCH
    del graph.graph.value_info[:]


def forget_origins(graph: Any) -> None:
    """Leave out what the exporter says of the code that it traced: its files, line by line."""
    for part in (*graph.graph.node, *graph.graph.initializer, *graph.graph.input):
        del part.metadata_props[:]
        part.doc_string = ""
    del graph.graph.metadata_props[:]


@torch.no_grad()
def compare(model: Classifier, shape: Shape, written: Path, path: Path) -> Exported:
    """Run the written file at several batch sizes; raises RunError where it answers otherwise."""
    import onnx
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(written, options, providers=["CPUExecutionProvider"])
    largest = 0.0
    for batch in BATCHES:
        images = example(shape, batch)
        wanted = model(images)
        found = torch.from_numpy(session.run([output_name(model)], {INPUT: images.numpy()})[0])
        difference = (found - wanted).abs().max().item() if found.shape == wanted.shape else None
        limit = TOLERANCE * max(1.0, wanted.abs().max().item())
        # Written so that NaN is refused too.
        if difference is None or not difference <= limit:
            raise RunError(
                f"{path} is not written: at batch {batch} ONNX Runtime gives "
                f"{tuple(found.shape)} logits that differ by {difference}, and {limit:.1e} is the "
                "most that is accepted"
            )
        largest = max(largest, difference)
    return Exported(
        file=str(path),
        bytes=written.stat().st_size,
        input=tuple(session.get_inputs()[0].shape),
        output=tuple(session.get_outputs()[0].shape),
        batches=BATCHES,
        largest_difference=largest,
        nodes=len(onnx.load(written).graph.node),
    )
