"""What the service asks of a reader: image work apart from the model's work, which is batched."""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from PIL import Image

__all__ = ["Line", "Page", "Reader", "Reading"]


@runtime_checkable
class Line(Protocol):
    """One number of an image, as far as the service looks into it."""

    @property
    def text(self) -> str:
        """The digits."""
        ...

    @property
    def strip(self) -> int:
        """Which of its page's pictures it was read in."""
        ...

    @property
    def alternatives(self) -> Sequence[tuple[str, float]]:
        """Other readings with their probabilities."""
        ...

    @property
    def attention(self) -> Sequence[Any] | None:
        """For each digit a map (row, col) over the patches of the line, where it was asked for."""
        ...


@runtime_checkable
class Reading(Protocol):
    """What an image says."""

    @property
    def text(self) -> str:
        """All digits in reading order."""
        ...

    @property
    def lines(self) -> Sequence[Line]:
        """Every number that was found."""
        ...

    @property
    def confidence(self) -> float:
        """The probability of the whole text."""
        ...

    @property
    def rejected(self) -> bool:
        """Whether the reader would rather not say."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The object that programs get, of plain values."""
        ...


@runtime_checkable
class Page(Protocol):
    """An image that is ready for the model."""

    def pictures(self) -> Sequence[bytes]:
        """What the model is shown, as PNG files."""
        ...


@runtime_checkable
class Reader(Protocol):
    """Reads numbers; its methods are called from worker threads."""

    def prepare(self, source: bytes | Image.Image) -> Any:
        """The image work alone. Raises ImageError for what cannot be read."""
        ...

    def read(self, pages: Sequence[Any], *, attention: bool = False) -> Sequence[Reading]:
        """Read all pages in one pass of the model, in their order."""
        ...
