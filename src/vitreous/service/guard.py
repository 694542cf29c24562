"""What stands around every answer: headers, the last resort for errors, and the count of them."""

import time
from ipaddress import ip_address
from logging import getLogger

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vitreous.service.metrics import Metrics

__all__ = ["HEADERS", "Guard", "names_loopback"]

LOG = getLogger(__name__)

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data: blob:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer. The page may use nothing but its own files, and nobody may frame it."""


class Guard:
    """An ASGI application around the service.

    With `local_only`, a request must name this machine as its host: otherwise any web page could
    reach a service without a token by a name that it points here.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, *, local_only: bool) -> None:
        self.app, self.metrics, self.local_only = app, metrics, local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, sender = time.perf_counter(), Sender(send)
        try:
            if self.local_only and not names_loopback(Headers(scope=scope).get("host", "")):
                sentence = "this service answers to localhost alone, as it has no token"
                await refuse(421, sentence)(scope, receive, sender)
            else:
                await self.app(scope, receive, sender)
        except Exception:
            LOG.exception("a request failed")
            if not sender.status:
                await refuse(500, "the service failed; its log says why")(scope, receive, sender)
        finally:
            handler = getattr(scope.get("route"), "path", "other")
            seconds = time.perf_counter() - began
            self.metrics.answered(scope["method"], handler, sender.status, seconds)


class Sender:
    """Sends an answer with our headers, and remembers its status; 0 before it has begun."""

    def __init__(self, send: Send) -> None:
        self.send, self.status = send, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message).update(HEADERS)
        await self.send(message)


def refuse(status: int, sentence: str) -> JSONResponse:
    """An error as every route answers it."""
    return JSONResponse({"error": sentence}, status)


def names_loopback(host: str) -> bool:
    """Whether a Host header (a name or address, perhaps with a port) means this machine."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name.lower() == "localhost"
