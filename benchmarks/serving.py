"""How many requests a second are answered, and how long does one wait: ours against others?

    python benchmarks/serving.py --seconds 5 --rounds 5 --memory-minutes 10 --write

Three servers with the same reader and as many threads take turns within one run: at 1,
8 and 64 clients, in another order each round. Then ours stands ten minutes of load while its
memory is watched, and is killed and started again under load. Clients and servers share the
machine. Every answer is compared with the reader's own. At most `--most` requests are sent in all,
to 127.0.0.1 alone. About 15 minutes, most of it the memory. LitServe is left out where it is not
installed (serving-requirements.txt).
"""

import argparse
import asyncio
import importlib.util
import io
import json
import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import psutil
from PIL import Image
from report import parser, publish, setting, spread, table
from serving_peers import PEERS

from vitreous.data.sources import load_source
from vitreous.reading.reader import NumberReader

CLIENTS = (1, 8, 64)
OURS = "vitreous"
HERE = Path(__file__).parent
EDGE = "a-boundary-of-the-form"


class Question(NamedTuple):
    """A request as it travels, and the text that the reader finds in its image."""

    request: bytes
    text: str


class Cell(NamedTuple):
    """What one load of one server came to."""

    rate: float
    """Right answers a second."""
    latencies: list[float]
    wrong: int
    failed: int


class Load:
    """Clients that ask one question after another, each on a line of its own."""

    def __init__(self, port: int, questions: Sequence[Question], most: int) -> None:
        self.port, self.questions, self.left = port, questions, most
        self.latencies: list[float] = []
        self.done: list[float] = []
        self.wrong = self.failed = 0

    async def run(self, clients: int, seconds: float) -> Cell:
        """All clients, for so long."""
        began = time.perf_counter()
        until = began + seconds
        await asyncio.gather(*(self.client(number, until) for number in range(clients)))
        rate = len(self.latencies) / (time.perf_counter() - began)
        return Cell(rate, self.latencies, self.wrong, self.failed)

    async def client(self, number: int, until: float) -> None:
        """One client; where its line breaks it takes another."""
        dice, line = random.Random(number), None
        while time.perf_counter() < until and self.left > 0:
            self.left -= 1
            question, began = dice.choice(self.questions), time.perf_counter()
            try:
                line = line or await asyncio.open_connection("127.0.0.1", self.port)
                status, text = await ask(*line, question)
            except (OSError, asyncio.IncompleteReadError):
                self.failed += 1
                line = None
                await asyncio.sleep(0.1)
                continue
            if status != 200:
                self.failed += 1
            elif text != question.text:
                self.wrong += 1
            else:
                self.done.append(time.perf_counter())
                self.latencies.append(self.done[-1] - began)
        if line:
            line[1].close()


async def ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, question: Question
) -> tuple[int, str | None]:
    """One request and its answer: status and text."""
    writer.write(question.request)
    await writer.drain()
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = int(head.split("content-length:")[1].split("\r\n")[0])
    body = json.loads(await reader.readexactly(length))
    return int(head.split(" ")[1]), body.get("text")


def pictures(count: int) -> list[bytes]:
    """Four test digits side by side, twice as large, as PNG files."""
    digits = load_source("mnist").test_images[: 4 * count, 0]
    files = []
    for row in digits.reshape(count, 4, 28, 28):
        paper = 255 - np.pad(np.hstack(list(row)), 12)
        file = io.BytesIO()
        image = Image.fromarray(paper)
        image.resize((2 * image.width, 2 * image.height)).save(file, "PNG")
        files.append(file.getvalue())
    return files


def question_of(picture: bytes, text: str) -> Question:
    """A whole request with one form."""
    head = (
        f'--{EDGE}\r\nContent-Disposition: form-data; name="image"; filename="a.png"\r\n'
        "Content-Type: image/png\r\n\r\n"
    )
    body = head.encode() + picture + f"\r\n--{EDGE}--\r\n".encode()
    start = (
        "POST /v1/read HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Content-Type: multipart/form-data; boundary={EDGE}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return Question(start.encode() + body, text)


def questions(weights: Path | None, count: int = 32) -> list[Question]:
    """Pictures, with what the reader itself says of them."""
    reader = NumberReader.load(weights)
    files = pictures(count)
    readings = reader.read([reader.prepare(file) for file in files])
    return [question_of(file, read.text) for file, read in zip(files, readings, strict=True)]


def start(name: str, port: int, weights: Path | None) -> subprocess.Popen[bytes]:
    """A server in a process of its own."""
    words = [sys.executable, str(HERE / "serving_peers.py"), name, str(port)]
    return subprocess.Popen(words + ([str(weights)] if weights else []))


def until_answering(port: int, asked: Sequence[Question], patience: float = 180.0) -> None:
    """Ask until there is one good answer."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if asyncio.run(Load(port, asked, 1).run(1, 1.0)).latencies:
            return
        time.sleep(0.1)
    raise SystemExit(f"no server answered on port {port} within {patience:.0f} s")


@contextmanager
def running(name: str, asked: Sequence[Question], weights: Path | None) -> Iterator[int]:
    """A server that answers, on a port of its own."""
    port = free_port()
    process = start(name, port, weights)
    try:
        until_answering(port, asked)
        yield port
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server, and what it has started."""
    children = (
        psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    )
    process.terminate()
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
    for child in children:
        if child.is_running():
            child.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def percentile(values: Sequence[float], share: float) -> float:
    """In milliseconds."""
    return 1000 * float(np.quantile(values, share)) if values else float("nan")


def compare(names: Sequence[str], asked: Sequence[Question], given: argparse.Namespace) -> str:
    """The table of all servers at all numbers of clients, interleaved."""
    cells: dict[tuple[str, int], list[Cell]] = {}
    with ExitStack() as stack:
        ports = {name: stack.enter_context(running(name, asked, given.weights)) for name in names}
        for number in range(given.rounds):
            turns = [(name, clients) for name in names for clients in CLIENTS]
            random.Random(number).shuffle(turns)
            for name, clients in turns:
                load = Load(ports[name], asked, given.most // (given.rounds * len(turns)))
                cell = asyncio.run(load.run(clients, given.seconds))
                cells.setdefault((name, clients), []).append(cell)
                print(f"round {number + 1}: {name}, {clients}: {cell.rate:.0f}/s", file=sys.stderr)
    rows = [row(name, clients, cells[name, clients]) for clients in CLIENTS for name in names]
    head = ("server", "clients", "answers/s", "p50 ms", "p99 ms", "wrong", "failed")
    ratios = [verdict(other, cells) for other in names if other != OURS]
    return table(head, rows) + "\n" + "\n".join(ratios) + "\n"


def row(name: str, clients: int, found: Sequence[Cell]) -> tuple[object, ...]:
    """One line of the table: medians over rounds, with the least and the greatest."""
    return (
        name,
        clients,
        spread([cell.rate for cell in found]),
        spread([percentile(cell.latencies, 0.5) for cell in found], 1),
        spread([percentile(cell.latencies, 0.99) for cell in found], 1),
        sum(cell.wrong for cell in found),
        sum(cell.failed for cell in found),
    )


def verdict(other: str, cells: dict[tuple[str, int], list[Cell]]) -> str:
    """Ours over another's, within rounds."""
    parts = []
    for clients in CLIENTS:
        pairs = zip(cells[OURS, clients], cells[other, clients], strict=True)
        parts.append(f"{spread([a.rate / max(b.rate, 1e-9) for a, b in pairs], 2)} at {clients}")
    return f"Answers a second, ours over {other}'s in the same round: {', '.join(parts)}."


def memory(asked: Sequence[Question], minutes: float, weights: Path | None, most: int) -> str:
    """Resident memory of ours under eight clients."""
    if not minutes:
        return ""
    port = free_port()
    process = start(OURS, port, weights)
    try:
        until_answering(port, asked)
        load = Load(port, asked, most)

        async def scene() -> list[float]:
            task = asyncio.create_task(load.run(8, 60 * minutes))
            seen = []
            while not task.done():
                seen.append(psutil.Process(process.pid).memory_info().rss / 2**20)
                await asyncio.wait([task], timeout=60 * minutes / 60)
            return seen

        seen = asyncio.run(scene())
    finally:
        stop(process)
    tenth = max(1, len(seen) // 10)
    return (
        f"\nUnder 8 clients for {minutes:g} minutes ({len(load.latencies)} answers, "
        f"{load.wrong} wrong, {load.failed} failed): resident memory "
        f"{median(seen[tenth : 2 * tenth]):.1f} MB in the second tenth, "
        f"{median(seen[-tenth:]):.1f} MB in the last, {max(seen):.1f} MB at most.\n"
    )


def after(load: Load, moment: float) -> list[float]:
    """When answers came to what was asked after a moment; one that was under way does not count."""
    pairs = zip(load.done, load.latencies, strict=True)
    return [done for done, latency in pairs if done - latency > moment]


def killed(asked: Sequence[Question], weights: Path | None, most: int) -> str:
    """Ours is killed under load and started again on the same port."""
    port = free_port()
    processes = [start(OURS, port, weights)]
    try:
        until_answering(port, asked)
        load = Load(port, asked, most)

        async def scene() -> float:
            task = asyncio.create_task(load.run(8, 180.0))
            await asyncio.sleep(3)
            processes[0].kill()
            processes[0].wait()
            dead = time.perf_counter()
            processes.append(start(OURS, port, weights))
            while not task.done() and not after(load, dead):
                await asyncio.sleep(0.1)
            await asyncio.wait([task], timeout=5)
            load.left = 0
            await task
            return min(after(load, dead), default=float("nan")) - dead

        back = asyncio.run(scene())
    finally:
        for process in processes:
            stop(process)
    return (
        "\nKilled (SIGKILL) under 8 clients and started again: the first answer after "
        f"{back:.1f} s; {len(load.latencies)} right answers, {load.wrong} wrong, "
        f"{load.failed} failed tries while it was gone.\n"
    )


def main() -> None:
    """Run all parts, and keep the table."""
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=5.0, help="of each load (default: 5)")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--memory-minutes", type=float, default=10.0, help="0 leaves it out")
    options.add_argument("--most", type=int, default=400_000, help="requests in each part")
    options.add_argument("--weights", type=Path, help="another reader than the shipped one")
    options.add_argument("--beside", default="nothing that was known", help="what else was running")
    given = options.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(given.threads)  # for the servers, which inherit it
    names = [n for n in PEERS if n != "LitServe" or importlib.util.find_spec("litserve")]
    asked = questions(given.weights)
    text = "# Requests answered, ours against others\n\n" + compare(names, asked, given)
    text += memory(asked, given.memory_minutes, given.weights, given.most)
    text += killed(asked, given.weights, given.most)
    beside = f"n = {given.rounds} rounds of {given.seconds:g} s. Beside it ran: {given.beside}.\n"
    publish("serving", f"{text}\n{beside}\n{setting()}", write=given.write)


if __name__ == "__main__":
    main()
