"""How fast is one trained-size model in different runtimes, and how far are their answers?

Eager PyTorch, torch.compile, ONNX Runtime in float32 and in int8 (dynamic quantisation of the
weights), and OpenVINO held to float32 and as it chooses itself, at two batch sizes and with one and
two threads. All runtimes of one setting run in every round, in random order. Needs the extras
`onnx` and `bench`.

    python benchmarks/inference.py --rounds 20 --write

About 5 minutes on two cores.
"""

import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray
from report import BUSY, parser, publish, setting, spread, table

from vitreous.config import preset
from vitreous.export.onnx import export_onnx, frozen
from vitreous.models.classifier import Classifier, build

Run = Callable[[], NDArray[np.float32]]
"""One answer to one batch that is already there."""


def eager(model: Classifier, images: torch.Tensor) -> Run:
    """The model as it is."""

    def run() -> NDArray[np.float32]:
        with torch.inference_mode():
            return model(images).numpy()

    return run


def compiled(model: Classifier, images: torch.Tensor) -> Run:
    """torch.compile with frozen weights."""
    import torch._inductor.config as inductor

    inductor.freezing = True
    torch._dynamo.reset()
    return eager(torch.compile(model), images)


def onnx_runtime(file: Path, images: torch.Tensor, threads: int) -> Run:
    """ONNX Runtime, whose pool is sized here: it does not read OMP_NUM_THREADS."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    pixels = images.numpy()
    return lambda: session.run(None, {"images": pixels})[0]


def openvino(file: Path, images: torch.Tensor, threads: int, precision: str | None) -> Run:
    """OpenVINO, which on a processor with AMX computes in bfloat16 unless it is told otherwise."""
    import openvino

    properties = {"INFERENCE_NUM_THREADS": threads}
    if precision:
        properties["INFERENCE_PRECISION_HINT"] = precision
    request = openvino.Core().compile_model(str(file), "CPU", properties).create_infer_request()
    pixels = images.numpy()
    return lambda: request.infer([pixels])[0]


def quantised(file: Path) -> Path:
    """The file with its matrices as int8, and activations quantised as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    small = file.with_name("int8.onnx")
    # Not the stem: ONNX Runtime's integer convolutions are slower than its float ones.
    kinds = ["MatMul", "Gemm"]
    quantize_dynamic(file, small, weight_type=QuantType.QInt8, op_types_to_quantize=kinds)
    return small


def runtimes(model: Classifier, file: Path, images: torch.Tensor, threads: int) -> dict[str, Run]:
    """Every way to the same answer."""
    return {
        "eager": eager(model, images),
        "torch.compile, frozen": compiled(model, images),
        "ONNX Runtime, float32": onnx_runtime(file, images, threads),
        "ONNX Runtime, int8": onnx_runtime(file.with_name("int8.onnx"), images, threads),
        "OpenVINO, held to f32": openvino(file, images, threads, "f32"),
        "OpenVINO, its default": openvino(file, images, threads, None),
    }


def milliseconds(run: Run, repeats: int) -> float:
    """The median of several answers in a row."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) * 1e3)
    return median(times)


def race(runs: dict[str, Run], rounds: int, repeats: int) -> dict[str, list[float]]:
    """Milliseconds of each runtime in every round."""
    for run in runs.values():
        run(), run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name in random.sample(list(runs), len(runs)):
            times[name].append(milliseconds(runs[name], repeats))
    return times


def rows(runs: dict[str, Run], times: dict[str, list[float]]) -> list[list[object]]:
    """One line for each runtime: time, time over eager's in the same round, distance of logits."""
    wanted, lines = runs["eager"](), []
    for name, run in runs.items():
        ratio = [mine / theirs for mine, theirs in zip(times[name], times["eager"], strict=True)]
        distance = float(np.abs(run() - wanted).max())
        lines.append([name, spread(times[name], 2), spread(ratio, 2), f"{distance:.1e}"])
    return lines


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=20)
    options.add_argument("--repeats", type=int, default=7, help="answers in a row in a round")
    options.add_argument("--preset", default="digits-fast")
    chosen = options.parse_args()
    config = preset(chosen.preset)
    torch.manual_seed(0)
    whole = build(config)
    header = ["runtime", "ms (min–max)", "over eager (min–max)", "largest difference of logits"]
    sections = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        export_onnx(whole, file)
        quantised(file)
        model = frozen(whole, config.image_shape)
        for threads in sorted({1, chosen.threads}):
            torch.set_num_threads(threads)
            for batch in (1, 32):
                images = torch.randn(batch, config.channels, *config.image_shape)
                runs = runtimes(model, file, images, threads)
                times = race(runs, chosen.rounds, chosen.repeats)
                title = f"## Batch {batch}, {threads} thread{'s' * (threads > 1)}\n\n"
                sections.append(title + table(header, rows(runs, times)))
    counted = (
        f"Preset `{chosen.preset}` with random weights, positions frozen. Medians of n = "
        f"{chosen.rounds} interleaved rounds, each the median of {chosen.repeats} answers; ratios "
        "within a round.\n"
    )
    if BUSY > 1:
        counted += (
            f"\nOther work was running (load {BUSY:.1f} before): milliseconds say little, and of "
            "the ratios only those that stay away from 1 over all rounds.\n"
        )
    parts = ["# Inference in several runtimes\n", setting(), counted, *sections]
    publish("inference", "\n".join(parts), write=chosen.write)


if __name__ == "__main__":
    main()
