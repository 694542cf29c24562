"""From an image to an answer: prepared in one set of threads, read in another, together."""

import asyncio
import os
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from logging import getLogger
from typing import Any, NamedTuple, TypeVar

from PIL import Image

from vitreous.service.contract import Page, Reader, Reading
from vitreous.service.limits import Limits, RefusalError, Room
from vitreous.service.metrics import Metrics
from vitreous.service.queue import Batcher

__all__ = ["Engine"]

LOG = getLogger(__name__)
T = TypeVar("T")


class Wish(NamedTuple):
    """A page to be read."""

    page: Page
    attention: bool


class Engine:
    """The reader with its queue; ready once it has read something."""

    def __init__(self, reader: Reader, limits: Limits, metrics: Metrics) -> None:
        self.reader, self.limits, self.metrics = reader, limits, metrics
        self.ready = False
        self.hands = ThreadPoolExecutor(max(2, os.cpu_count() or 2), "hands")
        self.batches: Batcher[Wish, Reading] = Batcher(
            self.read_batch,
            size=limits.batch,
            wait=limits.wait,
            waited=metrics.queued.observe,
        )
        self.room = Room(limits.room, f"{limits.room} images are waiting already; try again soon")
        self.held = Room(limits.held_bytes, "too much is being uploaded; try again soon")
        metrics.images.set_function(lambda: self.room.taken)
        metrics.held.set_function(lambda: self.held.taken)

    async def start(self) -> None:
        """Read a first image, so that nobody waits for what happens only once."""
        self.batches.start()
        first = Image.new("L", (96, 96), 255)
        first.paste(0, (44, 20, 52, 76))
        await self.read(first, attention=True)
        self.ready = True

    async def close(self) -> None:
        """No more work."""
        self.ready = False
        await self.batches.close()
        self.hands.shutdown(wait=False, cancel_futures=True)

    async def read(self, source: bytes | Image.Image, *, attention: bool = False) -> dict[str, Any]:
        """What an image says, as plain values; with `attention` also what the model was shown.

        Raises ImageError for what cannot be read, RefusalError (503) where too many images wait or
        the time is over.
        """
        with self.room.place():
            try:
                async with asyncio.timeout(self.limits.seconds):
                    page = await self.by_hand(lambda: self.reader.prepare(source))
                    reading = await self.batches.submit(Wish(page, attention))
                    return await self.by_hand(lambda: answer_of(reading, page, attention))
            except TimeoutError as error:
                sentence = f"no answer within {self.limits.seconds:g} seconds; try again later"
                raise RefusalError(503, sentence, retry_after=self.limits.seconds) from error

    async def by_hand(self, work: Callable[[], T]) -> T:
        """Off the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self.hands, work)

    def read_batch(self, wishes: list[Wish]) -> Sequence[Reading]:
        """One pass of the model, in its thread; attention is computed if anybody wants it."""
        began = time.perf_counter()
        attention = any(wish.attention for wish in wishes)
        readings = self.reader.read([wish.page for wish in wishes], attention=attention)
        self.metrics.model.observe(time.perf_counter() - began)
        self.metrics.batch.observe(len(wishes))
        for reading in readings:
            self.metrics.read(reading)
        return readings


def answer_of(reading: Reading, page: Page, attention: bool) -> dict[str, Any]:
    """A reading for programs: its own object, with alternatives, and what was asked for."""
    answer = reading.to_dict()
    pictures = page.pictures() if attention else ()
    for line, values in zip(reading.lines, answer["lines"], strict=True):
        others = [{"text": text, "confidence": chance} for text, chance in line.alternatives]
        values["alternatives"] = others
        values.pop("attention", None)  # it may be there because somebody else asked for it
        if attention:
            values["attention"] = rounded(line.attention)
            values["picture"] = in_address(pictures[line.strip])
    return answer


def in_address(picture: bytes) -> str:
    """A PNG that a page can show as it is."""
    return "data:image/png;base64," + b64encode(picture).decode()


def rounded(attention: Sequence[Any] | None) -> list[list[list[float]]] | None:
    """A map for each digit, to four places: more is not seen, and would be sent for nothing."""
    if attention is None:
        return None
    return [[[round(float(v), 4) for v in row] for row in each] for each in attention]
