"""On a real port: replies under load, slow clients, large bodies, and how it stops."""

import http.client
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.service.number_images import png
from tests.service.running import FREE, served
from tests.service.small_reader import SmallReader
from vitreous.errors import RunError
from vitreous.service.limits import Limits
from vitreous.service.server import Protocol, address_of, listen

ROOT = Path(__file__).parents[2]
CLIENTS = 64


@pytest.fixture(scope="module")
def images() -> dict[str, bytes]:
    return {text: png(text) for text in (str(n * 137 % 1000).zfill(3) for n in range(CLIENTS))}


def test_each_reply_belongs_to_its_own_image_under_64_clients(images):
    reader = SmallReader()
    with served(reader, limits=Limits(**FREE, room=2 * CLIENTS)) as address:

        def ask(number: int) -> dict:
            text = list(images)[number]
            form, raw = {"files": {"image": (text, images[text])}}, {"content": images[text]}
            with httpx2.Client(base_url=address, timeout=120) as client:
                return client.post("/v1/read", **(form if number % 2 else raw)).json()

        with ThreadPoolExecutor(CLIENTS) as clients:
            answers = list(clients.map(ask, range(CLIENTS)))
    for number, (text, told) in enumerate(zip(images, answers, strict=True)):
        assert (told["text"], told["file"]) == (text, text if number % 2 else "-")
    assert max(reader.sizes) > 1


def test_a_header_does_not_make_somebody_else_of_a_client():
    """Only behind a proxy that was named is X-Forwarded-For believed."""
    with served(limits=Limits(rate=1.0)) as address:
        answers = [
            httpx2.post(f"{address}/v1/read", headers={"X-Forwarded-For": f"10.0.0.{number}"})
            for number in range(3)
        ]
    assert [answer.status_code for answer in answers] == [400, 400, 429]


def talk(address: str, *pieces: bytes) -> bytes:
    """Send, and hear what comes back until the other side hangs up."""
    at = urlsplit(address)
    with socket.create_connection((at.hostname, at.port), timeout=60) as line:
        for piece in pieces:
            line.sendall(piece)
        heard = []
        while piece := line.recv(65_536):
            heard.append(piece)
    return b"".join(heard)


def test_a_chunked_body_without_a_length_is_counted():
    with served(limits=Limits(**FREE, max_bytes=100_000)) as address:
        head = b"POST /v1/read HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        chunk = b"2710\r\n" + bytes(10_000) + b"\r\n"
        heard = talk(address, head, *[chunk] * 11, b"0\r\n\r\n", b"")
        assert heard.startswith(b"HTTP/1.1 413 ")
        assert b"more than 100000 bytes" in heard


def test_who_sends_far_too_much_still_gets_to_read_why():
    with served(limits=Limits(**FREE, max_bytes=1_000_000)) as address:
        at = urlsplit(address)
        line = http.client.HTTPConnection(at.hostname, at.port, timeout=120)
        line.request("POST", "/v1/read", body=bytes(3_500_000))
        answer = line.getresponse()
        assert answer.status == 413
        assert b"more than 1000000 bytes" in answer.read()
        line.close()


def test_a_body_that_trickles_is_cut_off_and_others_are_served_meanwhile():
    with served(limits=Limits(**FREE, seconds=1.0)) as address:
        at = urlsplit(address)
        slow = socket.create_connection((at.hostname, at.port), timeout=120)
        slow.sendall(b"POST /v1/read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\nx")
        assert httpx2.post(f"{address}/v1/read", content=png("407"), timeout=120).status_code == 200
        assert slow.recv(65_536).startswith(b"HTTP/1.1 408 ")
        slow.close()


@pytest.mark.parametrize("sent", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-"])
def test_a_header_that_never_ends_is_hung_up_on(sent, monkeypatch):
    monkeypatch.setattr(Protocol, "HEADER_SECONDS", 0.2)
    with served() as address:
        assert talk(address, sent) == b""


def test_a_second_header_on_the_same_line_has_its_time_too(monkeypatch):
    monkeypatch.setattr(Protocol, "HEADER_SECONDS", 0.5)
    with served() as address:
        whole = b"GET /v2/health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
        heard = talk(address, whole, b"GET /v2/he")
        assert heard.count(b"HTTP/1.1 200 ") == 1


def test_what_is_no_http_is_a_mistake_of_the_client():
    with served() as address:
        assert talk(address, b"\x16\x03\x01\x02\x00\x01\r\n\r\n").startswith(b"HTTP/1.1 400 ")
        assert httpx2.get(f"{address}/v2/health/live").status_code == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_does_not_hold_back_the_body_until_the_head_is_acknowledged(host: str):
    try:
        listening = listen(host, 0)
    except RunError:
        pytest.skip("this machine has no IPv6")
    with listening, socket.create_connection(listening.getsockname()[:2]):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_is_said_to_be():
    with listen("127.0.0.1", 0) as taken:
        port = int(address_of(taken).rpartition(":")[2])
        with pytest.raises(RunError, match=f"port {port}"):
            listen("127.0.0.1", port)
    with pytest.raises(RunError, match="port 99999"):
        listen("127.0.0.1", 99_999)


SLOW = """
import sys, threading, types
sys.path.insert(0, sys.argv[1])
from tests.service.small_reader import SmallReader

def hold(pages):
    if any(len(line) > 1 for page in pages for line in page.lines):
        print("reading", flush=True)
        sys.stdin.readline()

class NumberReader(SmallReader):
    @classmethod
    def load(cls, path=None):
        return cls(before=hold)

module = types.ModuleType("vitreous.reading.reader")
module.NumberReader = NumberReader
sys.modules.setdefault("vitreous.reading", types.ModuleType("vitreous.reading"))
sys.modules["vitreous.reading.reader"] = module
from vitreous.cli.__main__ import main
sys.exit(main(["serve", "--port", "0"]))
"""


class Process:
    """`vitreous serve` in a second process, which says when it reads and waits for a line."""

    def __init__(self) -> None:
        self.run = subprocess.Popen(
            [sys.executable, "-c", SLOW, str(ROOT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        told = self.hear()
        assert "vitreous serves on http://127.0.0.1:" in told, told + self.run.communicate()[1]
        self.address = told.split()[-1]

    def hear(self) -> str:
        return self.run.stdout.readline()

    def end(self, line: str = "") -> str:
        return self.run.communicate(line)[1]


def test_sigterm_lets_what_has_begun_end_and_takes_nothing_new():
    process = Process()
    try:
        with ThreadPoolExecutor(1) as client:
            sent = {"content": png("407"), "timeout": 120}
            asked = client.submit(httpx2.post, f"{process.address}/v1/read", **sent)
            assert process.hear() == "reading\n"
            process.run.send_signal(signal.SIGTERM)
            refused = False
            while not refused:
                try:
                    httpx2.get(f"{process.address}/v2/health/live", timeout=120)
                except httpx2.TransportError:
                    refused = True
            assert not asked.done()
            assert process.run.poll() is None
            told = process.end("go on\n")
            assert asked.result().json()["text"] == "407"
        assert process.run.returncode == 0, told
        assert "everything that had begun was answered" in told
        assert "Traceback" not in told
    finally:
        process.run.kill()
        process.run.wait()


@pytest.mark.slow
def test_ctrl_c_ends_it_without_a_trace():
    process = Process()
    try:
        process.run.send_signal(signal.SIGINT)
        told = process.end()
        assert process.run.returncode == 130
        assert "Traceback" not in told
    finally:
        process.run.kill()
        process.run.wait()
