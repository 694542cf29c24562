"""Image folders: root/<class>/*.png, or root/train/<class> beside root/test/<class>."""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from vitreous.data.dataset import Dataset, fixed_order, joined, statistics
from vitreous.errors import DataError, ImageError
from vitreous.frontends.decode import decode
from vitreous.frontends.image import MNIST_INPUT, ImageInput, fit_image

__all__ = ["Progress", "load_folder", "natural"]

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
)
DIGITS = frozenset("0123456789")
NAMED_AT_MOST = 10

Kind: TypeAlias = Literal["digit", "picture"]
Resize: TypeAlias = Literal["stretch", "crop", "pad"]
Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of files done and of all."""
Made = TypeVar("Made")


class Item(NamedTuple):
    """One image file."""

    path: Path
    label: int
    is_test: bool


class Look(NamedTuple):
    """What an image is, before a size is chosen for all."""

    size: tuple[int, int]
    grey: bool


def load_folder(
    name: str,
    *,
    image_size: int | tuple[int, int] | None = None,
    channels: int | None = None,
    kind: Kind | None = None,
    resize: Resize | None = None,
    skip_corrupt: bool = False,
    workers: int = 4,
    progress: Progress | None = None,
) -> Dataset:
    """The data set of a folder that has a folder of images for each class.

    Classes are sorted naturally: 10 comes after 2. Images are put in a fixed order; where there
    are no folders train and test, its last fifth is the test. What is not given follows from the
    images: their size and channels if all agree, else 64×64, cropped, in colour; grey 28×28 images
    of classes "0" to "9" are digits. The result does not depend on `workers`, a number of threads
    (0: none). Raises DataError, which names them, for files that are no images, unless
    `skip_corrupt` leaves them out.
    """
    items, class_names = find_items(Path(name), name)
    reader = Reader(name, workers=workers, skip_corrupt=skip_corrupt, progress=progress)
    looks, items = reader.all(look, items)
    image_input, rule = choose_input(looks, class_names, image_size, channels, kind, resize)
    fitted, items = reader.all(partial(fit, image_input=image_input), items)
    images = np.stack(fitted)
    labels = np.array([item.label for item in items], np.int64)
    train, test = parts(np.array([item.is_test for item in items]))
    if image_input != MNIST_INPUT:
        mean, std = statistics(images[train])
        image_input = replace(image_input, mean=mean, std=std)
    return Dataset(
        name=name,
        train_images=images[train],
        train_labels=labels[train],
        test_images=images[test],
        test_labels=labels[test],
        class_names=class_names,
        input=image_input,
        note=joined(rule, reader.note),
    )


def parts(is_test: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which images train and which test: as their folders say, else the last fifth tests."""
    if is_test.any():
        train = np.flatnonzero(~is_test)
        return train[fixed_order(len(train))], np.flatnonzero(is_test)
    order = fixed_order(len(is_test))
    kept = len(order) - len(order) // 5
    return order[:kept], order[kept:]


def find_items(root: Path, name: str) -> tuple[list[Item], tuple[str, ...]]:
    """Every image file in a fixed order, and the names of the classes."""
    has_test = (root / "test").is_dir()
    train_root = root / "train" if (root / "train").is_dir() else root
    if has_test and train_root == root:
        raise DataError(f"{name} holds a folder test but no folder train")
    class_names = tuple(sorted((path.name for path in folders(train_root)), key=natural))
    items = list_images(train_root, class_names, name, is_test=False)
    if has_test:
        items += list_images(root / "test", class_names, name, is_test=True)
    return items, class_names


def list_images(root: Path, class_names: Sequence[str], name: str, *, is_test: bool) -> list[Item]:
    """The image files in the folders of all classes. Raises DataError where a class has none."""
    strange = sorted({path.name for path in folders(root)} - set(class_names))
    if strange:
        raise DataError(f"{name} tests classes that are not trained: {', '.join(strange)}")
    items = []
    for label, class_name in enumerate(class_names):
        found = images_in(root / class_name)
        if not found and not is_test:
            raise DataError(f"{name}: the folder of class {class_name!r} holds no images")
        items += [Item(path, label, is_test) for path in found]
    return items


def folders(root: Path) -> list[Path]:
    """The folders in a folder, hidden ones left out."""
    return [path for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")]


def images_in(folder: Path) -> list[Path]:
    """Image files by their suffix, naturally sorted, hidden ones left out."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES]
    return sorted((p for p in found if not p.name.startswith(".")), key=lambda p: natural(p.name))


def natural(text: str) -> tuple[list[Any], str]:
    """A key that sorts numbers in texts by their value.

    >>> sorted(["10", "2", "a10", "a9"], key=natural)
    ['2', '10', 'a9', 'a10']
    """
    pieces = re.split(r"([0-9]+)", text)
    return [int(piece) if i % 2 else piece for i, piece in enumerate(pieces)], text


def look(item: Item) -> Look:
    """Decode an image to see what it is."""
    pixels = decode(item.path)
    grey = pixels.ndim == 2 or bool((pixels == pixels[..., :1]).all())
    return Look((pixels.shape[0], pixels.shape[1]), grey)


def fit(item: Item, image_input: ImageInput) -> NDArray[np.uint8]:
    """An image as the model will see it."""
    try:
        return fit_image(decode(item.path), image_input)
    except ImageError as error:
        raise ImageError(f"{item.path}: {error}") from error


def choose_input(
    looks: Sequence[Look],
    class_names: Sequence[str],
    image_size: int | tuple[int, int] | None,
    channels: int | None,
    kind: Kind | None,
    resize: Resize | None,
) -> tuple[ImageInput, str]:
    """How the images are prepared (mean and deviation still open), and a sentence that says so."""
    sizes, grey = {look.size for look in looks}, all(look.grey for look in looks)
    like_mnist = sizes == {(28, 28)} and grey and set(class_names) <= DIGITS
    if kind == "digit" or (
        kind is None and like_mnist and not image_size and channels in (None, 1)
    ):
        size = as_pair(image_size or 28)
        return replace(MNIST_INPUT, size=size), "images were prepared as digits"
    size = as_pair(image_size or (sizes.pop() if len(sizes) == 1 else 64))
    channels = channels or (1 if grey else 3)
    resize = resize or "crop"
    blank = (0.0,) * channels, (1.0,) * channels
    chosen = ImageInput(
        size=size, channels=channels, kind="picture", resize=resize, mean=blank[0], std=blank[1]
    )
    colour = "grey" if channels == 1 else "colour"
    return chosen, f"images are {size[0]}×{size[1]} in {colour}, resize rule {resize}"


def as_pair(size: int | tuple[int, int]) -> tuple[int, int]:
    """One number is a square."""
    return (size, size) if isinstance(size, int) else size


@dataclass
class Reader:
    """Goes through image files, in threads, and gathers those that are none."""

    name: str
    workers: int
    skip_corrupt: bool
    progress: Progress | None
    corrupt: list[str] = field(default_factory=list)

    def all(
        self, make: Callable[[Item], Made], items: Sequence[Item]
    ) -> tuple[list[Made], list[Item]]:
        """What `make` makes of each file, in their order, and the files of which it made it."""
        made: list[Made] = []
        kept: list[Item] = []
        for done, (item, result) in enumerate(self._results(make, items), 1):
            if isinstance(result, ImageError):
                self.corrupt.append(str(result))
            else:
                made.append(result)
                kept.append(item)
            if self.progress:
                self.progress(done, len(items))
        if not made or (self.corrupt and not self.skip_corrupt):
            raise DataError(f"{self.name}: {self._corrupt() or 'there are no images'}")
        return made, kept

    def _results(
        self, make: Callable[[Item], Made], items: Sequence[Item]
    ) -> Iterator[tuple[Item, Made | ImageError]]:
        attempt = partial(caught, make)
        if self.workers < 1:
            yield from zip(items, map(attempt, items), strict=True)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            yield from zip(items, pool.map(attempt, items), strict=True)

    @property
    def note(self) -> str:
        """A sentence about the files that were left out."""
        return f"left out: {self._corrupt()}" if self.corrupt else ""

    def _corrupt(self) -> str:
        if not self.corrupt:
            return ""
        named = "; ".join(self.corrupt[:NAMED_AT_MOST])
        more = len(self.corrupt) - NAMED_AT_MOST
        files = "1 corrupt file" if len(self.corrupt) == 1 else f"{len(self.corrupt)} corrupt files"
        return f"{files}: {named}" + (f"; and {more} more" if more > 0 else "")


def caught(make: Callable[[Item], Made], item: Item) -> Made | ImageError:
    """What is made of a file, or why nothing is."""
    try:
        return make(item)
    except ImageError as error:
        return error
