"""The reader that comes with the package, behind the service: it says what it says without it."""

import importlib.util
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from tests.service.hostile import COUNT
from tests.service.number_images import png
from tests.service.running import FREE, in_process, served
from tests.service.test_hostile import GROWTH, bombard
from vitreous.service.limits import Limits

HERE = importlib.util.find_spec("vitreous.reading") is not None and any(
    file.name.endswith(".safetensors") for file in files("vitreous.reading").iterdir()
)
pytestmark = pytest.mark.skipif(not HERE, reason="no reader comes with this package yet")
IMAGE = png("4071", "99")


@pytest.fixture(scope="module")
def shipped() -> Any:
    from vitreous.reading.reader import NumberReader

    return NumberReader.load()


@pytest.fixture(scope="module")
def real(shipped) -> Iterator[TestClient]:
    with in_process(shipped, limits=Limits(**FREE)) as client:
        yield client


def test_it_says_what_the_reader_says(shipped, real):
    (reading,) = shipped.read([shipped.prepare(IMAGE)])
    told = real.post("/v1/read", content=IMAGE).json()
    assert told == json.loads(json.dumps({**reading.to_dict(), "file": "-"}))
    assert told["text"] == "4071\n99"


def test_where_it_looked_moves_with_what_it_wrote(real):
    told = real.post("/v1/read?attention=true", content=IMAGE).json()
    for line in told["lines"]:
        assert line["picture"].startswith("data:image/png;base64,")
        assert len(line["attention"]) == len(line["text"])
        looked = []
        for each in line["attention"]:
            columns = [sum(column) for column in zip(*each, strict=True)]
            looked.append(sum(x * share for x, share in enumerate(columns)) / sum(columns))
        assert looked == sorted(looked)


def test_each_reply_is_its_own_images_under_many_clients(shipped):
    images = {text: png(text) for text in (str(n * 7919 % 10_000).zfill(4) for n in range(32))}
    pages = [shipped.prepare(image) for image in images.values()]
    own = [reading.text for reading in shipped.read(pages)]
    assert len(set(own)) == len(own)
    with served(shipped, limits=Limits(**FREE, room=64)) as address:

        def ask(image: bytes) -> str:
            return httpx2.post(f"{address}/v1/read", content=image, timeout=120).json()["text"]

        with ThreadPoolExecutor(32) as clients:
            assert list(clients.map(ask, images.values())) == own


@pytest.mark.slow
def test_it_stands_every_hostile_upload(shipped):
    assert bombard(range(COUNT), shipped) < GROWTH
