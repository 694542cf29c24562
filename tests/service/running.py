"""The service on a real port, in a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from starlette.testclient import TestClient

from tests.service.small_reader import SmallReader
from vitreous.service.app import create_app
from vitreous.service.limits import Limits
from vitreous.service.server import address_of, listen, make_server

FREE = {"rate": 0.0}
"""No rate limit, for tests that are about something else."""


@contextmanager
def served(reader: Any = None, *, limits: Limits | None = None, **more: Any) -> Iterator[str]:
    """The address of a service; it is drained when the block ends."""
    app = create_app(reader or SmallReader(), limits=limits or Limits(**FREE), **more)
    server, listening = make_server(app, drain=30.0), listen("127.0.0.1", 0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        address = address_of(listening)
        until_ready(address)
        yield address
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def until_ready(address: str) -> None:
    """Ask until the first reading has been done; a connection waits until the server listens."""
    with httpx2.Client(base_url=address, timeout=60) as client:
        while client.get("/v2/health/ready").status_code != 200:
            pass


@contextmanager
def in_process(
    reader: Any = None, *, base_url: str = "http://testserver", **more: Any
) -> Iterator[TestClient]:
    """A client of a service without a port, which is ready; errors in it are answers."""
    with TestClient(create_app(reader or SmallReader(), **more), base_url=base_url) as client:
        while client.get("/v2/health/ready").status_code != 200:
            pass
        yield client
