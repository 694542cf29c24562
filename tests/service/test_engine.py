"""Health never waits behind the model; what is too much is told to come back."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from tests.service.number_images import png
from tests.service.running import FREE
from tests.service.small_reader import SmallReader
from vitreous.service.app import create_app
from vitreous.service.limits import Limits

IMAGE = png("407")
LONG = 120
"""Seconds after which a test that would wait for ever has failed."""


class Held(SmallReader):
    """A reader that, once it is told to, stays in its pass until it is let go."""

    def __init__(self) -> None:
        super().__init__(before=self.hold)
        self.holds, self.inside, self.go_on = False, threading.Event(), threading.Event()

    def hold(self, _: Any) -> None:
        if self.holds:
            self.inside.set()
            assert self.go_on.wait(LONG), "nobody let go: health waited behind the model"


@asynccontextmanager
async def asked(reader: SmallReader, **limits: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A client on the service's own event loop, which is ready."""
    app = create_app(reader, limits=Limits(**FREE, **limits))
    transport = httpx2.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", timeout=LONG
        ) as client,
    ):
        while (await client.get("/v2/health/ready")).status_code != 200:
            await asyncio.sleep(0)
        yield client


@pytest.mark.parametrize("count", [1, 60])
def test_htt_03_health_answers_while_the_model_is_at_work(count):
    async def scene() -> None:
        reader = Held()
        async with asked(reader) as client:
            reader.holds = True
            reads = [
                asyncio.create_task(client.post("/v1/read", content=IMAGE)) for _ in range(count)
            ]
            await asyncio.to_thread(reader.inside.wait, LONG)
            for address in ("live", "ready"):
                assert (await client.get(f"/v2/health/{address}")).status_code == 200
            assert (await client.get("/metrics")).status_code == 200
            assert not any(read.done() for read in reads)
            reader.go_on.set()
            answers = await asyncio.gather(*reads)
            assert {answer.json()["text"] for answer in answers} == {"407"}

    asyncio.run(scene())


def test_a_full_queue_is_told_when_to_come_back_and_empties_again():
    async def scene() -> None:
        reader = Held()
        async with asked(reader, room=5, batch=2) as client:
            reader.holds = True
            reads = [asyncio.create_task(client.post("/v1/read", content=IMAGE)) for _ in range(9)]
            await asyncio.to_thread(reader.inside.wait, LONG)
            early, _ = await asyncio.wait(reads, return_when=asyncio.FIRST_COMPLETED)
            while len(early) < 4:
                await asyncio.sleep(0)
                early = {read for read in reads if read.done()}
            for read in early:
                assert read.result().status_code == 503
                assert read.result().headers["retry-after"] == "1"
            reader.go_on.set()
            answers = await asyncio.gather(*reads)
            assert sorted(answer.status_code for answer in answers) == [200] * 5 + [503] * 4
            assert (await client.post("/v1/read", content=IMAGE)).json()["text"] == "407"

    asyncio.run(scene())


def test_images_that_come_together_are_read_together_by_one_thread_of_its_own():
    async def scene() -> None:
        reader = SmallReader()
        async with asked(reader, batch=4, wait=0.5) as client:
            reader.sizes.clear()
            reads = [client.post("/v1/read", content=IMAGE) for _ in range(8)]
            await asyncio.gather(*reads)
            assert sum(reader.sizes) == 8
            assert max(reader.sizes) == 4
            assert all(name.startswith("model") for name in reader.threads)

    asyncio.run(scene())


def test_an_answer_that_takes_too_long_is_given_up_and_the_service_lives():
    async def scene() -> None:
        reader = Held()
        async with asked(reader, seconds=1.0) as client:
            reader.holds = True
            answer = await client.post("/v1/read", content=IMAGE)
            assert answer.status_code == 503
            assert answer.headers["retry-after"] == "1"
            reader.go_on.set()
            reader.holds = False
            assert (await client.post("/v1/read", content=IMAGE)).status_code == 200

    asyncio.run(scene())


def test_it_is_alive_before_it_is_ready_and_unready_where_it_cannot_read():
    async def scene() -> None:
        reader = Held()
        reader.holds = True
        app = create_app(reader, limits=Limits(**FREE))
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            await asyncio.to_thread(reader.inside.wait, LONG)
            assert (await client.get("/v2/health/live")).status_code == 200
            assert (await client.get("/v2/health/ready")).status_code == 503
            assert (await client.get("/v2/models/reader/ready")).status_code == 503
            reader.go_on.set()
            while (await client.get("/v2/health/ready")).status_code != 200:
                await asyncio.sleep(0)

    asyncio.run(scene())


def test_a_reader_that_fails_its_first_reading_is_never_ready(caplog):
    def fail(_: Any) -> None:
        raise RuntimeError("no weights")

    async def scene() -> None:
        app = create_app(SmallReader(before=fail), limits=Limits(**FREE))
        transport = httpx2.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client,
        ):
            while "stays unready" not in caplog.text:
                await asyncio.sleep(0.01)
            assert (await client.get("/v2/health/ready")).status_code == 503
            assert (await client.get("/v2/health/live")).status_code == 200

    asyncio.run(scene())
