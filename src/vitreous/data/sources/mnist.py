"""MNIST, which comes with the package."""

from importlib.resources import as_file, files

from vitreous.data.dataset import Dataset
from vitreous.data.sources import npz

__all__ = ["load_mnist"]


def load_mnist(name: str = "mnist") -> Dataset:
    """70,000 handwritten digits (LeCun, Cortes and Burges), 10,000 of them for the test."""
    with as_file(files("vitreous.data") / "mnist.npz") as path:
        return npz.load_npz(name, path)
