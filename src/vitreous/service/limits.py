"""How much a client may ask for, and how it is told that this was too much."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields

from vitreous.errors import ConfigError, VitreousError
from vitreous.frontends.decode import FORMATS, check_size, open_image, opener_for

__all__ = ["Limits", "RefusalError", "Room", "check_image"]

IMAGE = "the image"


class RefusalError(VitreousError):
    """An answer that is no reading: an HTTP status, and a sentence for whoever asked."""

    def __init__(self, status: int, sentence: str, *, retry_after: float | None = None) -> None:
        super().__init__(sentence)
        self.status, self.retry_after = status, retry_after

    @property
    def headers(self) -> Mapping[str, str]:
        """What the status needs beside it."""
        if self.status == 401:
            return {"WWW-Authenticate": "Bearer"}
        if self.retry_after is None:
            return {}
        return {"Retry-After": str(max(1, math.ceil(self.retry_after)))}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Every bound of the service. Raises ConfigError for one that could never let anything in."""

    max_bytes: int = 20_000_000
    """Of one request's body, counted as it arrives."""
    max_pixels: int = 50_000_000
    """Of one image, by its header."""
    seconds: float = 30.0
    """For a body to arrive, and again for an answer to be found."""
    held_bytes: int = 200_000_000
    """Of all bodies that are held at one time; at least one of `max_bytes`."""
    room: int = 64
    """Images between their arrival and their answer."""
    batch: int = 16
    """Images that the model reads in one pass."""
    wait: float = field(default=0.004)
    """Seconds for which an image waits for company."""
    rate: float = 50.0
    """Requests a second of one token or peer, over time; 0 for no limit."""

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            least = 0 if setting.name in ("wait", "rate") else 1
            if not least <= value < math.inf:
                raise ConfigError(f"{setting.name} {value} must be a number of at least {least}")
        if self.held_bytes < self.max_bytes:
            raise ConfigError(
                f"held_bytes {self.held_bytes} is less than max_bytes {self.max_bytes}: "
                "not even one upload could be held"
            )


class Room:
    """So much of something, and no more; for one event loop."""

    def __init__(self, size: int, sentence: str) -> None:
        self.size, self.taken, self.sentence = size, 0, sentence

    def take(self, amount: int) -> None:
        """Take some; raises RefusalError (503) where it is not there."""
        if self.taken + amount > self.size:
            raise RefusalError(503, self.sentence, retry_after=1.0)
        self.taken += amount

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of it, for as long as the block runs."""
        self.take(1)
        try:
            yield
        finally:
            self.taken -= 1


def check_image(data: bytes, max_pixels: int) -> None:
    """Look at the header alone, before anything is decoded.

    Raises RefusalError: 415 where the content is of no format that is read, whatever its name, 413
    for more than `max_pixels` pixels; and ImageError where the header itself is damaged.
    """
    if not data:
        raise RefusalError(400, "the body is empty; send an image")
    if opener_for(data) is None:
        raise RefusalError(415, f"the content is no image that can be read ({', '.join(FORMATS)})")
    x, y = open_image(data, IMAGE).size
    if x * y > max_pixels:
        raise RefusalError(
            413, f"the image has {x} × {y} = {x * y} pixels; at most {max_pixels} are read here"
        )
    check_size((x, y), IMAGE, max_pixels)
