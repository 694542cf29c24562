"""A written ONNX file is the model, at any batch.

Tracing takes seconds and is not done under the type checkers of these tests: a file is written by a
process of its own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from vitreous.checkpoints.store import load, save
from vitreous.config import ViTConfig, preset
from vitreous.errors import CheckpointError, ConfigError, RunError
from vitreous.export import onnx as exporting
from vitreous.export.onnx import compare, export_onnx, frozen
from vitreous.models.classifier import build

needs_onnx = pytest.mark.skipif(
    any(find_spec(name) is None for name in exporting.NEEDED),
    reason="the extra vitreous[onnx] is not installed",
)
DIGITS = ViTConfig(patch_size=7, width=24, depth=1, heads=3, register_tokens=1)
"""No axis of it is 2, the batch that is traced."""
SIZE = (28, 35)
SHAPE = (1, *SIZE)


def exported(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """`vitreous export` in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "vitreous.cli", "export", str(folder), "--onnx", *options],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """A digit classifier for another size than its own: folder, file, what was said."""
    folder = tmp_path_factory.mktemp("export") / "model"
    torch.manual_seed(0)
    model = build(DIGITS)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)  # biases too: equal ones are stored once
    model.class_names = [f"digit {n}" for n in range(10)]
    save(model, folder)
    done = exported(folder, "--image-size", "28x35", "--json")
    assert done.returncode == 0, done.stderr
    return {"folder": folder, "file": folder / "model.onnx", "told": json.loads(done.stdout),
            "errors": done.stderr}  # fmt: skip


@pytest.fixture
def graph(written):
    onnx = pytest.importorskip("onnx")
    return onnx.load(written["file"])


def session(file: Path):
    import onnxruntime

    return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])


@needs_onnx
@pytest.mark.parametrize("batch", [1, 3, 7])
def test_ONX_01_every_batch_runs_and_agrees_with_eager(batch: int, written):
    images = torch.randn(batch, *SHAPE)
    (found,) = session(written["file"]).run(None, {"images": images.numpy()})
    wanted = load(written["folder"])(images).detach()
    torch.testing.assert_close(torch.from_numpy(found), wanted, rtol=1e-4, atol=1e-4)


@needs_onnx
def test_ONX_01_no_shape_in_the_graph_holds_the_traced_batch(graph):
    from onnx import numpy_helper

    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.graph.initializer}
    shapes = [
        constants[node.input[1]].ravel().tolist()
        for node in graph.graph.node
        if node.op_type in ("Reshape", "Tile", "Expand") and node.input[1] in constants
    ]
    assert shapes
    assert not [shape for shape in shapes if exporting.TRACED in shape]


@needs_onnx
def test_ONX_03_the_batch_is_one_symbol_at_both_ends_and_classes_are_fixed(graph):
    ends = (*graph.graph.input, *graph.graph.output)
    axes = [[d.dim_param or d.dim_value for d in end.type.tensor_type.shape.dim] for end in ends]
    assert axes == [["batch", *SHAPE], ["batch", 10]]
    assert [end.name for end in ends] == ["images", "logits"]


@needs_onnx
def test_ONX_03_weights_appear_once(graph, written):
    from onnx import numpy_helper

    arrays = [numpy_helper.to_array(tensor) for tensor in graph.graph.initializer]
    weights = [array for array in arrays if array.dtype.kind == "f" and array.size >= 24]
    held = [min(array.tobytes(), array.T.tobytes()) for array in weights]
    assert len(set(held)) == len(held)
    numbers = sum(p.numel() for p in load(written["folder"]).parameters())
    # The table of 16 patches becomes one of 20, with a row of zeros for the register.
    assert sum(a.size for a in arrays if a.dtype.kind == "f") - numbers in range(4 * 24, 6 * 24)


@needs_onnx
def test_the_stretched_table_is_a_constant_of_the_graph(graph, written):
    from onnx import numpy_helper

    kinds = {node.op_type for node in graph.graph.node}
    assert not kinds & {"Resize", "Upsample", "If", "Loop"}
    fixed = frozen(load(written["folder"]), SIZE).pos_embed.added
    constants = [numpy_helper.to_array(tensor) for tensor in graph.graph.initializer]
    tables = [c for c in constants if c.shape == tuple(fixed.shape)]
    assert any(torch.equal(torch.from_numpy(table.copy()), fixed) for table in tables)


@needs_onnx
def test_the_file_says_how_images_are_prepared_and_what_classes_are_called(graph):
    known = {entry.key: json.loads(entry.value) for entry in graph.metadata_props}
    assert known["class_names"] == [f"digit {n}" for n in range(10)]
    assert known["input"]["size"] == list(SIZE)
    assert known["input"]["mean"] == [0.1307]
    assert known["config.json"]["model"]["width"] == 24


@needs_onnx
def test_the_file_tells_nothing_of_the_machine_that_wrote_it(written):
    content = written["file"].read_bytes()
    assert b".py" not in content
    assert str(Path.cwd()).encode() not in content


@needs_onnx
def test_what_is_said_is_what_was_compared(written):
    told = written["told"]
    assert told["batches"] == [1, 3, 7]
    assert 0 <= told["largest_difference"] < 1e-4
    assert told["output"] == ["batch", 10]
    assert told["bytes"] == written["file"].stat().st_size
    assert written["errors"] == ""


@needs_onnx
@pytest.mark.parametrize("change", [lambda t: t.add_(0.01), lambda t: t.fill_(float("nan"))])
def test_a_file_that_answers_otherwise_is_refused(change, written, tmp_path):
    model = frozen(load(written["folder"]), SIZE)
    change(model.head.bias)
    with pytest.raises(RunError, match=r"new\.onnx is not written: at batch 1 ONNX Runtime gives"):
        compare(model, SHAPE, written["file"], tmp_path / "new.onnx")


@needs_onnx
def test_a_file_that_is_refused_leaves_what_was_there(written, tmp_path, monkeypatch):
    (tmp_path / "model.onnx").write_bytes(b"before")
    other = written["file"].read_bytes()
    monkeypatch.setattr(exporting, "write", lambda m, s, path, p: path.write_bytes(other))
    model = load(written["folder"])
    model.head.bias.data.add_(1.0)
    with pytest.raises(RunError, match="is not written"):
        export_onnx(model, tmp_path / "model.onnx", image_size=SIZE)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_bytes() == b"before"
    assert torch.equal(model.head.weight, load(written["folder"]).head.weight)


@needs_onnx
@pytest.mark.parametrize(
    ("size", "words"),
    [(30, "does not tile image_size"), ((28, 36), "does not tile"), (0, "must be at least 1")],
)
def test_a_size_that_does_not_fit_is_refused(size, words: str, tmp_path):
    with pytest.raises(ConfigError, match=words):
        export_onnx(build(DIGITS), tmp_path / "x.onnx", image_size=size)
    assert list(tmp_path.iterdir()) == []


def test_parts_of_the_extra_that_are_absent_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(exporting, "NEEDED", ("json", "no_such_package"))
    with pytest.raises(CheckpointError, match=r"ONNX needs no_such_package, .*'vitreous\[onnx\]'"):
        export_onnx(build(DIGITS), tmp_path / "x.onnx")


@needs_onnx
def test_a_folder_is_no_file_and_2_gb_are_the_end(monkeypatch, tmp_path):
    with pytest.raises(RunError, match="is a folder; name the file in it"):
        export_onnx(build(DIGITS), tmp_path)
    monkeypatch.setattr(exporting, "LARGEST", 1000)
    with pytest.raises(RunError, match="holds 1,000 bytes at most, and these are"):
        export_onnx(build(DIGITS), tmp_path / "x.onnx")
    assert list(tmp_path.iterdir()) == []


def test_freezing_changes_no_answer_and_leaves_the_model_as_it_was():
    model, images = build(DIGITS).train(), torch.randn(2, *SHAPE)
    fixed = frozen(model, SIZE)
    assert model.training
    assert all(p.requires_grad for p in model.parameters())
    assert torch.equal(fixed(images), model.eval()(images))


KINDS = {
    **{name: replace(preset(name), width=24, heads=3, depth=1)
       for name in ("digits", "digits-small", "digits-fast", "digits-best")},
    **{name: replace(preset(name), image_size=preset(name).patch_shape[0] * 3, width=24, heads=3,
                     depth=1, classes=5)
       for name in ("ti16", "s16", "b16", "l16", "h14", "textbook")},
    "sincos, attention, swiglu": replace(
        DIGITS, positions="sincos", pooling="attention", activation="swiglu", layer_scale=0.1),
    "rotary, quick": replace(DIGITS, positions="rotary", activation="quick_gelu", qkv_bias=False),
    "axes, mean, not square": replace(
        DIGITS, positions="learned_axes", pooling="mean", class_token=False, image_size=(14, 28),
        activation="gelu_tanh"),
    "one axis": replace(DIGITS, positions="sincos_1d"),
    "none": replace(DIGITS, positions="none", stem="convolution", patch_size=4, pooling="mean"),
}  # fmt: skip

EVERY_KIND = """
import json, sys
from vitreous import settings
from vitreous.config import ViTConfig
from vitreous.export.onnx import export_onnx
from vitreous.models.classifier import build
for name, values in json.loads(sys.argv[1]).items():
    done = export_onnx(build(settings.from_dict(ViTConfig, values)), sys.argv[2])
    print(json.dumps([name, done.input[0], done.output[0], done.largest_difference]))
"""


@needs_onnx
@pytest.mark.slow
def test_every_kind_of_model_is_written_and_agrees(tmp_path):
    from vitreous import settings

    kinds = json.dumps({name: settings.to_dict(config) for name, config in KINDS.items()})
    done = subprocess.run(
        [sys.executable, "-c", EVERY_KIND, kinds, str(tmp_path / "model.onnx")],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line[0] for line in told] == list(KINDS), done.stderr
    assert {(line[1], line[2]) for line in told} == {("batch", "batch")}
    assert max(line[3] for line in told) < 1e-4
