"""Data sets on the Hugging Face hub: hf:OWNER/NAME@REVISION:path/to/file.npz."""

import re
from pathlib import Path

from vitreous.data.dataset import Dataset
from vitreous.data.sources import npz
from vitreous.errors import DataError

__all__ = ["load_hub"]

SPEC = re.compile(r"hf:(?P<repo>[^/@:]+/[^/@:]+)@(?P<revision>[^@:]+):(?P<path>[^:]+\.npz)")


def load_hub(name: str) -> Dataset:
    """An .npz file of a hub data set at one revision; downloaded once, then taken from the cache.

    Needs the extra `vitreous[hub]`. Raises DataError.
    """
    match = SPEC.fullmatch(name)
    if match is None:
        raise DataError(f"{name} is not of the form hf:OWNER/NAME@REVISION:path/to/file.npz")
    return npz.load_npz(name, download(name, **match.groupdict()))


def download(name: str, repo: str, revision: str, path: str) -> Path:
    """The local copy of a file on the hub."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError as error:
        raise DataError(f"{name} needs the hub's client: pip install 'vitreous[hub]'") from error
    try:
        return Path(hf_hub_download(repo, path, repo_type="dataset", revision=revision))
    # The client raises its own errors, those of its HTTP library, OSError and ValueError.
    except Exception as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{name} could not be had from the hub: {reason[0]}") from error
