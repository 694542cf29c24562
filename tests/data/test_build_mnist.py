"""MNIST in the package is built from four known files, to the same bytes each time."""

import gzip
import importlib.util
import io
import struct
import tarfile
from hashlib import md5
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "build_mnist.py"
RNG = np.random.default_rng(0)
ARRAYS = {
    "x_train": RNG.integers(0, 256, (6, 5, 4), dtype=np.uint8),
    "y_train": np.arange(6, dtype=np.uint8),
    "x_test": RNG.integers(0, 256, (3, 5, 4), dtype=np.uint8),
    "y_test": np.arange(3, dtype=np.uint8),
}


def idx(array: np.ndarray) -> bytes:
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.tobytes()


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, told the md5 sums of a small MNIST."""
    if not SCRIPT.is_file():
        pytest.skip("the scripts are not here: this is no checkout of the repository")
    spec = importlib.util.spec_from_file_location("build_mnist", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files = {
        key: (name, md5(idx(ARRAYS[key])).hexdigest()) for key, (name, _) in module.FILES.items()
    }
    monkeypatch.setattr(module, "FILES", files)
    return module


def package(script: ModuleType, file: Path, *, packed: bool, damage: str = "") -> Path:
    """A tarball as npm makes them."""
    with tarfile.open(file, "w:gz") as tar:
        for key, (name, _) in script.FILES.items():
            data = idx(ARRAYS[key])
            data = data[:-1] + bytes([data[-1] ^ 1]) if key == damage else data
            data = gzip.compress(data) if packed else data
            info = tarfile.TarInfo(f"package/data/{name}{'.gz' if packed else ''}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return file


@pytest.mark.parametrize("packed", [False, True])
def test_the_archive_holds_the_arrays_of_the_package(script, tmp_path: Path, packed: bool):
    archive = script.build(package(script, tmp_path / "package.tgz", packed=packed))
    with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:
        assert set(arrays) == set(ARRAYS)
        for key, array in ARRAYS.items():
            np.testing.assert_array_equal(arrays[key], array)


def test_the_same_files_make_the_same_bytes(script, tmp_path: Path):
    plain = script.build(package(script, tmp_path / "plain.tgz", packed=False))
    packed = script.build(package(script, tmp_path / "packed.tgz", packed=True))
    assert plain == packed


def test_a_file_of_another_sum_is_refused(script, tmp_path: Path):
    damaged = package(script, tmp_path / "package.tgz", packed=False, damage="y_test")
    with pytest.raises(SystemExit, match="t10k-labels-idx1-ubyte has md5 "):
        script.build(damaged)
