"""Images that arrive one by one are read together: a small queue before a worker thread."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

__all__ = ["Batcher"]

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Ticket(NamedTuple, Generic[Item, Answer]):
    """What somebody waits for."""

    item: Item
    answer: "asyncio.Future[Answer]"
    arrived: float


class Batcher(Generic[Item, Answer]):
    """Hands items to `work` in batches, off the event loop, and each answer to who asked.

    A batch goes when it holds `size` items, or `wait` seconds after its first one was taken up.
    Where `work` fails for a batch, each of its items is tried alone, so that one bad item costs
    the others nothing. An item that nobody waits for any more is not worked on.
    """

    def __init__(
        self,
        work: Callable[[list[Item]], Sequence[Answer]],
        *,
        size: int,
        wait: float,
        waited: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.work, self.size, self.wait, self.waited = work, size, wait, waited
        self.thread = ThreadPoolExecutor(1, "model")
        self.tickets: asyncio.Queue[Ticket[Item, Answer]] = asyncio.Queue()
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work, on the running event loop."""
        self.task = asyncio.create_task(self.run())

    async def close(self) -> None:
        """Stop; what is being worked on ends in its thread, and what waits is given up."""
        if self.task:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task
        while not self.tickets.empty():
            self.tickets.get_nowait().answer.cancel()
        self.thread.shutdown(wait=False, cancel_futures=True)

    async def submit(self, item: Item) -> Answer:
        """The answer to one item. Raises what `work` raised for it."""
        loop = asyncio.get_running_loop()
        ticket = Ticket(item, loop.create_future(), loop.time())
        self.tickets.put_nowait(ticket)
        return await ticket.answer

    async def run(self) -> None:
        """Batch after batch."""
        while True:
            await self.answer(await self.collect())

    async def collect(self) -> list[Ticket[Item, Answer]]:
        """The next batch."""
        batch = [await self.tickets.get()]
        with suppress(TimeoutError):
            async with asyncio.timeout(self.wait):
                while len(batch) < self.size:
                    batch.append(await self.tickets.get())
        return batch

    async def answer(self, batch: list[Ticket[Item, Answer]]) -> None:
        """Work on those that somebody still waits for."""
        loop = asyncio.get_running_loop()
        batch = [ticket for ticket in batch if not ticket.answer.done()]
        if not batch:
            return
        for ticket in batch:
            self.waited(loop.time() - ticket.arrived)
        try:
            items = [ticket.item for ticket in batch]
            answers = await loop.run_in_executor(self.thread, self.work, items)
            pairs = list(zip(batch, answers, strict=True))
        except asyncio.CancelledError:
            for ticket in batch:
                ticket.answer.cancel()
            raise
        except Exception as error:
            await self.answer_apart(batch, error)
            return
        for ticket, answer in pairs:
            if not ticket.answer.done():
                ticket.answer.set_result(answer)

    async def answer_apart(self, batch: list[Ticket[Item, Answer]], error: Exception) -> None:
        """A batch that failed: each item again, alone; a single one has its error."""
        if len(batch) == 1:
            if not batch[0].answer.done():
                batch[0].answer.set_exception(error)
            return
        for ticket in batch:
            await self.answer([ticket])
