"""Bodies are counted as they arrive, kept in memory, and not waited for without end."""

import asyncio
import os
import sys
import tempfile
import threading

import pytest
from starlette.requests import Request

from tests.service.number_images import png
from tests.service.running import FREE, in_process
from vitreous.service.body import Upload, receive
from vitreous.service.limits import Limits, RefusalError, Room

BOUNDS = Limits(max_bytes=1000, held_bytes=1500, seconds=1.0)


class Sending:
    """A client that sends pieces; None is a piece that never comes."""

    def __init__(self, *pieces: bytes | None, headers: dict[str, str] | None = None) -> None:
        self.pieces = list(pieces)
        pairs = [(name.lower().encode(), v.encode()) for name, v in (headers or {}).items()]
        scope = {"type": "http", "method": "POST", "path": "/", "headers": pairs}
        self.request = Request(scope, self.receive)

    async def receive(self) -> dict:
        if not self.pieces:
            return {"type": "http.disconnect"}
        piece = self.pieces.pop(0)
        if piece is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}


def received(sending: Sending, limits: Limits = BOUNDS, held: Room | None = None) -> Upload:
    room = held or Room(limits.held_bytes, "too much")

    async def scene() -> Upload:
        async with receive(sending.request, limits, room) as upload:
            assert room.taken >= len(upload.data)
            return upload

    try:
        return asyncio.run(scene())
    finally:
        assert held or room.taken == 0, "bytes that nobody holds still count"


def refused(sending: Sending, limits: Limits = BOUNDS, held: Room | None = None) -> RefusalError:
    with pytest.raises(RefusalError) as error:
        received(sending, limits, held)
    return error.value


def test_pieces_become_what_was_sent():
    assert received(Sending(b"ab", b"", b"cd")).data == b"abcd"


@pytest.mark.parametrize("size", [1, 7, 400])
def test_a_form_may_be_cut_into_pieces_anywhere(size):
    head = b'--e\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    data = bytes(range(256)) + b"\r\n--d--\r\n-"
    whole = head + data + b"\r\n--e--\r\n"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    sending = Sending(*pieces, headers={"Content-Type": "multipart/form-data; boundary=e"})
    assert received(sending) == Upload("a", data)


def test_the_limit_itself_is_allowed_and_one_more_is_not():
    assert len(received(Sending(b"x" * 600, b"x" * 400)).data) == 1000
    assert refused(Sending(b"x" * 600, b"x" * 401)).status == 413


def test_a_length_that_is_declared_too_large_is_refused_before_a_byte_is_kept():
    sending = Sending(b"x", headers={"Content-Length": "1001", "Expect": "100-continue"})
    assert refused(sending).status == 413
    assert sending.pieces == [b"x"]


def test_a_length_that_lies_is_not_believed():
    headers = {"Content-Length": "3"}
    assert refused(Sending(*[b"x" * 100] * 20, headers=headers)).status == 413


def test_the_rest_of_what_is_refused_is_taken_off_the_wire_within_bounds():
    """Else its sender, still sending, would see a broken connection instead of the answer."""
    sending = Sending(*[b"x" * 100] * 30)
    assert refused(sending).status == 413
    assert sending.pieces == []
    endless = Sending(*[b"x" * 100] * 1000)
    assert refused(endless).status == 413
    assert len(endless.pieces) > 900


def test_who_sends_too_slowly_is_told_so(monkeypatch):
    monkeypatch.setattr("vitreous.service.body.PATIENCE", 0.01)
    error = refused(Sending(b"x", None), Limits(seconds=1.0))
    assert error.status == 408
    assert "1 seconds" in str(error)


def test_what_is_cut_off_is_refused():
    sending = Sending()
    assert refused(sending).status == 400


def test_all_bodies_together_are_bounded_and_a_place_comes_free_again():
    held = Room(1500, "too much")
    held.take(1000)
    error = refused(Sending(b"x" * 501), held=held)
    assert error.status == 503
    assert error.headers == {"Retry-After": "1"}
    assert held.taken == 1000
    assert len(received(Sending(b"x" * 500), held=held).data) == 500
    assert held.taken == 1000


OPENED: list[object] = []
LISTENING = threading.Event()


def note(event: str, arguments: tuple) -> None:
    """Python tells of every file that anything in this process opens."""
    if event == "open" and LISTENING.is_set():
        path, mode, flags = arguments
        written = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TMPFILE)
        if written or set(mode or "") & set("wax+"):
            OPENED.append(path)


def test_an_upload_never_touches_the_disk():
    """Form parsers spool what is larger than a megabyte to temporary files."""
    sys.addaudithook(note)
    sent = {"image": ("a.png", png("407") + bytes(3_000_000), "image/png")}
    with in_process(limits=Limits(**FREE)) as client:
        LISTENING.set()
        try:
            answer = client.post("/v1/read", files=sent)
            assert OPENED == []
            with tempfile.TemporaryFile():
                assert OPENED, "writing was not noticed at all"
        finally:
            LISTENING.clear()
    assert answer.json()["text"] == "407"


@pytest.mark.parametrize(
    ("setting", "value"),
    [("max_bytes", 0), ("seconds", float("nan")), ("room", 0), ("wait", -1.0), ("rate", -1.0)],
)
def test_a_limit_that_would_let_nothing_in_is_refused(setting, value):
    from vitreous.errors import ConfigError

    with pytest.raises(ConfigError, match=setting):
        Limits(**{setting: value})
    with pytest.raises(ConfigError, match="held_bytes"):
        Limits(max_bytes=100, held_bytes=99)
