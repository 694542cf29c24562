"""Two thousand uploads that mean harm: always a sentence, never a fault of ours, nothing left."""

import gc
import json
from typing import Any

import psutil
import pytest

from tests.service.hostile import COUNT, hostile
from tests.service.number_images import png
from tests.service.running import FREE, in_process
from vitreous.service.limits import Limits

MEGABYTE = 1 << 20
SETTLED, GROWTH = 0.4, 48 * MEGABYTE
"""After this share of the uploads every path has been walked; from then on no more may be added
than the allocator's own breathing."""


def resident() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


def bombard(numbers: range, reader: Any = None) -> int:
    """Send all of them; returns by how many bytes the process grew after it had settled."""
    limits = Limits(**FREE, max_pixels=2_000_000, max_bytes=2_000_000)
    before = 0
    with in_process(reader, limits=limits) as client:
        for place, number in enumerate(numbers):
            sent = hostile(number)
            answer = client.post("/v1/read?attention=true", **sent)
            told = json.loads(answer.text, parse_constant=lambda word: pytest.fail(word))
            assert answer.status_code == 200 or 400 <= answer.status_code < 500, (number, told)
            assert ("error" in told) == (answer.status_code != 200)
            for leak in ("Traceback", "site-packages", "/src/", "0x7f", "BytesIO"):
                assert leak not in answer.text, number
            if place == int(SETTLED * len(numbers)):
                before = resident()
        grown = resident() - before
        assert client.post("/v1/read", content=png("407")).json()["text"] == "407"
        text = client.get("/metrics").text
        assert "vitreous_images_inside 0.0" in text
        assert "vitreous_held_bytes 0.0" in text
    return grown


def test_a_tenth_of_the_hostile_uploads_is_refused_in_sentences():
    assert bombard(range(0, COUNT, 10)) < GROWTH


@pytest.mark.slow
def test_every_hostile_upload_is_refused_in_a_sentence_and_nothing_of_it_stays():
    assert bombard(range(COUNT)) < GROWTH


def test_hostile_uploads_are_the_same_every_time():
    assert [hostile(number) for number in range(20)] == [hostile(number) for number in range(20)]
