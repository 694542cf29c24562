"""The service on a port: where it may listen, how it stops, and how long it waits for a header."""

import asyncio
import signal
import socket
from collections.abc import Callable
from logging import getLogger
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from vitreous.errors import ConfigError, RunError
from vitreous.service.access import VARIABLE, is_loopback

__all__ = ["address_of", "listen", "make_server", "require_token", "serve"]


def require_token(host: str, token: str | None) -> None:
    """Raises ConfigError where others could reach a service that asks for no token."""
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"--host {host} can be reached by others, so a token is needed: set {VARIABLE}, or "
            "give --token-file FILE; or listen on 127.0.0.1"
        )


def listen(host: str, port: int) -> socket.socket:
    """The open port; 0 takes a free one. Raises RunError where it cannot be had.

    Its connections send at once (RFC 896 would hold back the body of an answer until the peer has
    acknowledged the head, which takes it 40 ms): asyncio asks for that only where a socket names
    its protocol, and Python's `create_server` names none.
    """
    if not 0 <= port <= 65_535:
        raise RunError(f"cannot listen on {host}, port {port}: ports go from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        reason = error.strerror or error
        raise RunError(f"cannot listen on {host}, port {port}: {reason}") from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def address_of(listening: socket.socket) -> str:
    """What to type into a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Protocol(H11Protocol):
    """HTTP, whose requests must have their whole header in time.

    Without this a client that sends its header letter by letter could hold a connection for ever.
    """

    HEADER_SECONDS = 15.0
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore
        super().connection_made(transport)
        self.watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self.watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget()
        super().connection_lost(exc)

    def watch(self) -> None:
        """Start the clock where a header is due, and stop it where one is complete."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.forget()
        elif self.timer is None:
            self.timer = self.loop.call_later(self.HEADER_SECONDS, self.give_up)

    def forget(self) -> None:
        """Stop the clock."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def give_up(self) -> None:
        """Hang up, unless a request is being answered."""
        self.timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()


def make_server(app: FastAPI, *, drain: float = 30.0, proxy: str | None = None) -> uvicorn.Server:
    """A server that ends what it has begun, for at most `drain` seconds, before it stops.

    Only where `proxy` names its address is the client's address taken from that proxy's headers.
    """
    options: dict[str, Any] = {"forwarded_allow_ips": proxy} if proxy else {}
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=proxy is not None,
        timeout_graceful_shutdown=round(drain),
        **options,
    )
    return uvicorn.Server(config)


def serve(server: uvicorn.Server, listening: socket.socket, told: Callable[[str], None]) -> None:
    """Answer until SIGTERM or Ctrl-C, then drain. Raises KeyboardInterrupt after Ctrl-C."""
    getLogger("python_multipart").setLevel("ERROR")  # a damaged form is its sender's affair
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        told(address_of(listening))
        server.run(sockets=[listening])
    finally:
        signal.signal(signal.SIGTERM, before)
        listening.close()
