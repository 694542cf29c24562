"""Where data comes from: one file per kind, one table, one function that reads a specification."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from vitreous.data.dataset import Dataset
from vitreous.data.sources.folder import load_folder
from vitreous.data.sources.hub import load_hub
from vitreous.data.sources.idx import has_idx, load_idx
from vitreous.data.sources.mnist import load_mnist
from vitreous.data.sources.npz import load_npz
from vitreous.errors import DataError

__all__ = ["SOURCES", "load_source", "source_kind"]

SOURCES: Mapping[str, Callable[..., Dataset]] = {
    "mnist": load_mnist,
    "npz": load_npz,
    "idx": load_idx,
    "folder": load_folder,
    "hub": load_hub,
}

OPTIONS: Mapping[str, frozenset[str]] = {
    "idx": frozenset({"transpose"}),
    "folder": frozenset(
        {"image_size", "channels", "kind", "resize", "skip_corrupt", "workers", "progress"}
    ),
}
"""What a source can be asked for, beside its name."""

HOW_ONLY = frozenset({"workers", "progress", "skip_corrupt"})
"""Options that a source without them may ignore: they do not change what is read."""


SPEED_ONLY = frozenset({"workers", "progress"})
"""Options that change how fast data are read, and nothing of what is read."""


def load_source(spec: str | Path | Dataset, **options: Any) -> Dataset:
    """The data set that a specification names; a Dataset is passed through.

    `mnist`, `path/file.npz`, a folder of idx files, a folder of class folders, or
    `hf:OWNER/NAME@REVISION:path.npz`. Options are those of `load_folder` and `load_idx`. Raises
    DataError.
    """
    if isinstance(spec, Dataset):
        return spec
    name = str(spec)
    kind = source_kind(name)
    known = OPTIONS.get(kind, frozenset())
    refused = sorted(set(options) - known - HOW_ONLY)
    if refused:
        raise DataError(f"{name} is read as {kind}, which has no option {', '.join(refused)}")
    taken = {key: value for key, value in options.items() if key in known}
    lasting = {key: value for key, value in taken.items() if key not in SPEED_ONLY}
    return replace(SOURCES[kind](name, **taken), options=lasting)


def source_kind(name: str) -> str:
    """Which source of the table reads a specification. Raises DataError for none."""
    path = Path(name)
    if name == "mnist":
        return "mnist"
    if name.startswith("hf:"):
        return "hub"
    if path.suffix == ".npz":
        return "npz"
    if not path.is_dir():
        raise DataError(
            f"there is no data called {name!r}: it is not 'mnist', no .npz file, no folder and not "
            "of the form hf:OWNER/NAME@REVISION:path.npz"
        )
    if has_idx(path):
        return "idx"
    if any(child.is_dir() for child in path.iterdir()):
        return "folder"
    raise DataError(
        f"{name} is a folder without data: neither idx files (train-images-idx3-ubyte) nor class "
        "folders with images were found"
    )
