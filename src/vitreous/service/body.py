"""Request bodies, counted as they arrive and kept in memory alone.

A framework's form parser writes larger files to the disk; here the stream is parsed directly.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from vitreous.service.limits import Limits, RefusalError, Room

__all__ = ["FIELD", "Upload", "receive"]

FIELD = b"image"
MAX_PARTS = 16
UNNAMED = "-"
"""What an upload without a name is called, as standard input is on the command line."""

PATIENCE = 2.0
"""Seconds for which the rest of a refused body is read and dropped, so that its sender, who is
still busy sending, gets to read why."""


class Upload(NamedTuple):
    """What was sent, and what the client calls it: for the answer only, never a path here."""

    name: str
    data: bytes


@asynccontextmanager
async def receive(request: Request, limits: Limits, held: Room) -> AsyncIterator[Upload]:
    """The upload of a request, which counts as held until the block ends.

    Raises RefusalError: 413 over the limit, 408 where it takes too long, 503 where too much is held
    already, 400 for a form that is damaged or lacks the field.
    """
    pieces = Pieces(request, limits, held)
    try:
        yield await collect(request, pieces)
    except RefusalError:
        await pieces.drop_rest()
        raise
    finally:
        pieces.release()


async def collect(request: Request, pieces: "Pieces") -> Upload:
    """The raw bytes, or the one field of a form, in time."""
    seconds = pieces.limits.seconds
    try:
        async with asyncio.timeout(seconds):
            kind, options = parse_options_header(request.headers.get("content-type"))
            if kind == b"multipart/form-data":
                return await collect_form(options.get(b"boundary", b""), pieces)
            return Upload(UNNAMED, b"".join([piece async for piece in pieces.arriving()]))
    except TimeoutError as error:
        raise RefusalError(408, f"the upload took longer than {seconds:g} seconds") from error


async def collect_form(boundary: bytes, pieces: "Pieces") -> Upload:
    """The field of a form."""
    try:
        form = Form(boundary)
        async for piece in pieces.arriving():
            form.feed(piece)
    except FormParserError as error:
        raise RefusalError(400, f"the form cannot be read: {error}") from error
    return form.upload()


class Pieces:
    """A body, piece by piece, within its limits."""

    def __init__(self, request: Request, limits: Limits, held: Room) -> None:
        self.request, self.limits, self.held = request, limits, held
        self.size, self.more = 0, True

    async def arriving(self) -> AsyncIterator[bytes]:
        """Each piece as it comes; raises RefusalError."""
        declared = self.request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self.limits.max_bytes:
            raise self.too_large()
        while self.more:
            piece = await self.next()
            self.held.take(len(piece))
            self.size += len(piece)
            if self.size > self.limits.max_bytes:
                raise self.too_large()
            yield piece

    def too_large(self) -> RefusalError:
        """What to say of more than is allowed."""
        return RefusalError(413, f"the upload has more than {self.limits.max_bytes} bytes")

    async def next(self) -> bytes:
        """What arrives next."""
        message = await self.request.receive()
        if message["type"] == "http.disconnect":
            self.more = False
            raise RefusalError(400, "the upload was cut off")
        self.more = message.get("more_body", False)
        return message.get("body", b"")

    async def drop_rest(self) -> None:
        """Read on for a little, and keep nothing; not where the client waits for a go-ahead."""
        if "expect" in self.request.headers and not self.size:
            return
        left = 4 * self.limits.max_bytes
        with suppress(TimeoutError, RefusalError):
            async with asyncio.timeout(PATIENCE):
                while self.more and left > 0:
                    left -= len(await self.next())

    def release(self) -> None:
        """Nothing of it is held any more."""
        self.held.taken -= self.size


class Form:
    """A multipart form, of which one field is kept."""

    def __init__(self, boundary: bytes) -> None:
        if not boundary:
            raise RefusalError(400, "the form's Content-Type names no boundary")
        self.parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self.on_part_begin,
                "on_header_field": self.on_header_field,
                "on_header_value": self.on_header_value,
                "on_header_end": self.on_header_end,
                "on_headers_finished": self.on_headers_finished,
                "on_part_data": self.on_part_data,
                "on_end": self.on_end,
            },
        )
        self.parts, self.whole, self.wanted = 0, False, False
        self.field, self.value, self.disposition = bytearray(), bytearray(), b""
        self.name, self.pieces = UNNAMED, list[bytes]()
        self.found = False

    def feed(self, piece: bytes) -> None:
        """Parse what has arrived; raises FormParserError or RefusalError."""
        self.parser.write(piece)

    def upload(self) -> Upload:
        """The field, once everything has arrived; raises RefusalError where there is none."""
        if not self.whole:
            raise RefusalError(400, "the form was cut short: its closing boundary is missing")
        if not self.found:
            raise RefusalError(400, f"the form has no field named {FIELD.decode()}")
        return Upload(self.name, b"".join(self.pieces))

    def on_part_begin(self) -> None:
        self.parts += 1
        self.disposition = b""
        if self.parts > MAX_PARTS:
            raise RefusalError(400, f"the form has more than {MAX_PARTS} fields")

    def on_header_field(self, data: bytes, start: int, end: int) -> None:
        self.field += data[start:end]

    def on_header_value(self, data: bytes, start: int, end: int) -> None:
        self.value += data[start:end]

    def on_header_end(self) -> None:
        if self.field.lower() == b"content-disposition":
            self.disposition = bytes(self.value)
        self.field.clear()
        self.value.clear()

    def on_headers_finished(self) -> None:
        _, options = parse_options_header(self.disposition)
        self.wanted = options.get(b"name") == FIELD
        if not self.wanted:
            return
        if self.found:
            raise RefusalError(
                400, f"the form has more than one field named {FIELD.decode()}; send one"
            )
        self.found = True
        self.name = plain_name(options.get(b"filename", b""))

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self.wanted:
            self.pieces.append(data[start:end])

    def on_end(self) -> None:
        self.whole = True


def plain_name(given: bytes) -> str:
    """A file name as it may be repeated: no folders, nothing that does not print, not too long."""
    last = given.decode(errors="replace").replace("\\", "/").rpartition("/")[2]
    return "".join(filter(str.isprintable, last))[:100] or UNNAMED
