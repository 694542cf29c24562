"""What is asked, and what is answered: every reply says what its image says, or a sentence."""

import base64
import json
import threading
from dataclasses import replace

import pytest
from PIL import Image

import vitreous
from tests.service.bombs import solid_png
from tests.service.number_images import encoded, number_image, png
from tests.service.running import FREE, in_process
from tests.service.small_reader import SmallReader
from vitreous.service.guard import HEADERS
from vitreous.service.limits import Limits

IMAGE = png("4071", "99")


def sentence_of(answer, status: int) -> str:
    """The one sentence of an error: no trace, no path, nothing else."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert set(told) == {"error"}
    for leak in ("Traceback", "site-packages", "/src/", ".py", "0x", "BytesIO"):
        assert leak not in answer.text
    return told["error"]


@pytest.mark.parametrize("way", ["form", "raw", "curl's raw"])
def test_an_image_is_read_whichever_way_it_comes(client, way):
    sent = {
        "form": {"files": {"image": ("page.png", IMAGE)}},
        "raw": {"content": IMAGE, "headers": {"Content-Type": "image/png"}},
        "curl's raw": {
            "content": IMAGE,
            "headers": {"Content-Type": "application/x-www-form-urlencoded"},
        },
    }[way]
    answer = client.post("/v1/read", **sent)
    assert answer.status_code == 200
    told = answer.json()
    assert told["text"] == "4071\n99"
    assert told["file"] == ("page.png" if way == "form" else "-")
    assert [line["text"] for line in told["lines"]] == ["4071", "99"]
    assert {"text", "lines", "confidence", "rejected", "warnings", "file"} == set(told)
    line = told["lines"][0]
    assert {"text", "box", "confidence", "digits", "alternatives"} == set(line)
    assert [digit["value"] for digit in line["digits"]] == list("4071")
    assert all(0 <= digit["confidence"] <= 1 for digit in line["digits"])
    assert line["alternatives"][0]["text"] != "4071"


def test_the_answer_is_the_readers_own_object(client, reader):
    (reading,) = reader.read([reader.prepare(IMAGE)])
    told = client.post("/v1/read", content=IMAGE).json()
    for line in told["lines"]:
        del line["alternatives"]
    assert told == json.loads(json.dumps({**reading.to_dict(), "file": "-"}))


def test_attention_and_what_the_model_saw_come_on_request_alone(client):
    told = client.post("/v1/read?attention=true", content=IMAGE).json()
    for line in told["lines"]:
        kind, _, data = line["picture"].partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
        assert len(line["attention"]) == len(line["text"])
        for place, each in enumerate(line["attention"]):
            columns = [sum(column) for column in zip(*each, strict=True)]
            assert columns.index(max(columns)) // 4 == place
    assert "attention" not in client.post("/v1/read", content=IMAGE).text


def test_each_line_comes_with_its_own_picture_where_a_reader_drops_another():
    """As it does where a strip holds no digit."""

    class Dropping(SmallReader):
        def read(self, pages, *, attention=False):
            readings = super().read(pages, attention=attention)
            return [replace(each, lines=each.lines[1:]) for each in readings]

    with in_process(Dropping(), limits=Limits(**FREE)) as client:
        (line,) = client.post("/v1/read?attention=true", content=IMAGE).json()["lines"]
    _, second = SmallReader().prepare(IMAGE).pictures()
    assert line["text"] == "99"
    assert base64.b64decode(line["picture"].partition(",")[2]) == second


def test_somebody_elses_wish_for_attention_does_not_show():
    """Both are in one pass."""
    reader, answers = SmallReader(), {}
    with in_process(reader, limits=Limits(**FREE, batch=2, wait=2.0)) as client:
        reader.sizes.clear()

        def ask(address: str) -> None:
            answers[address] = client.post(address, content=IMAGE).json()

        addresses = ("/v1/read", "/v1/read?attention=true")
        threads = [threading.Thread(target=ask, args=(address,)) for address in addresses]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert reader.sizes == [2]
    assert "attention" not in answers["/v1/read"]["lines"][0]
    assert answers["/v1/read?attention=true"]["lines"][0]["attention"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\secret\\a.png", "a.png"),
        ("a\x1bb.png", "ab.png"),
        ("x" * 500, "x" * 100),
        ("/", "-"),
    ],
)
def test_a_file_name_is_repeated_without_its_folders_and_never_used(client, name, kept):
    sent = multipart([("image", name, IMAGE)])
    assert client.post("/v1/read", **sent).json()["file"] == kept


def multipart(parts: list[tuple[str, str, bytes]], *, closed: bool = True) -> dict:
    """A form as it travels."""
    pieces = []
    for field, name, data in parts:
        head = (
            f'--edge\r\nContent-Disposition: form-data; name="{field}"; filename="{name}"\r\n\r\n'
        )
        pieces += [head.encode(), data, b"\r\n"]
    pieces += [b"--edge--\r\n"] if closed else []
    headers = {"Content-Type": "multipart/form-data; boundary=edge"}
    return {"content": b"".join(pieces), "headers": headers}


FORMS = {
    "no such field": multipart([("picture", "a.png", IMAGE)]),
    "two images": multipart([("image", "a.png", IMAGE), ("image", "b.png", IMAGE)]),
    "cut short": multipart([("image", "a.png", IMAGE)], closed=False),
    "many fields": multipart([(f"f{n}", "a", b"x") for n in range(40)]),
    "no boundary": {"content": IMAGE, "headers": {"Content-Type": "multipart/form-data"}},
    "no form": {
        "content": IMAGE,
        "headers": {"Content-Type": "multipart/form-data; boundary=edge"},
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_cannot_be_read_is_told_why(client, form):
    assert "form" in sentence_of(client.post("/v1/read", **FORMS[form]), 400)


def test_other_fields_of_a_form_are_passed_over(client):
    sent = multipart([("note", "n", b"hello"), ("image", "a.png", IMAGE), ("more", "m", b"")])
    assert client.post("/v1/read", **sent).json()["text"] == "4071\n99"


UPLOADS = {
    # HTT-04
    "empty": (b"", 400),
    "cut at 60 %": (IMAGE[: len(IMAGE) * 6 // 10], 422),
    "text named .png": (b"I am no image", 415),
    "no pixels": (b"GIF89a\0\0\0\0\0\0\0,\0\0\0\0\0\0\0\0\0;", 422),
    "html": (b"<html><script>alert(1)</script></html>", 415),
    "eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n", 415),
    "over the limit": (b"\x89PNG\r\n\x1a\n" + bytes(400_000), 413),
}


@pytest.mark.parametrize("upload", UPLOADS)
@pytest.mark.parametrize("way", ["raw", "form"])
def test_htt_04_a_bad_upload_is_the_clients_mistake_and_the_next_one_is_read(upload, way):
    data, status = UPLOADS[upload]
    with in_process(limits=Limits(**FREE, max_bytes=300_000)) as client:
        sent = {"content": data} if way == "raw" else {"files": {"image": ("a.png", data)}}
        told = sentence_of(client.post("/v1/read", **sent), status)
        assert len(told.split()) > 3
        assert client.post("/v1/read", content=IMAGE).json()["text"] == "4071\n99"


def test_htt_04_the_content_decides_and_not_the_name(client):
    jpeg = encoded(number_image("407"), "JPEG")
    answer = client.post("/v1/read", files={"image": ("a.png", jpeg, "image/png")})
    assert answer.json()["text"] == "407"


@pytest.mark.parametrize("side", [14_000, 8_000])
def test_htt_01_too_many_pixels_are_refused_by_the_header(side):
    reader = SmallReader()
    with in_process(reader, limits=Limits(**FREE)) as client:
        reader.prepare = lambda source: pytest.fail("decoded")
        told = sentence_of(client.post("/v1/read", content=solid_png(side)), 413)
        assert str(side * side) in told
        assert "50000000" in told
        assert client.get("/v2/health/ready").status_code == 200


def test_every_answer_has_the_headers_that_keep_a_page_to_itself(client):
    answers = [
        client.get("/"),
        client.get("/docs"),
        client.get("/app.js"),
        client.get("/openapi.json"),
        client.get("/v2/health/live"),
        client.get("/nowhere"),
        client.delete("/v1/read"),
        client.post("/v1/read", content=b"x"),
        client.post("/v1/read", content=IMAGE),
    ]
    assert {answer.status_code for answer in answers} == {200, 404, 405, 415}
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value
    policy = answers[0].headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_the_pages_files_name_nobody_else(client):
    for address in ("/", "/app.js", "/style.css", "/docs", "/docs.js"):
        text = client.get(address).text
        assert "http://" not in text
        assert "https://" not in text
        assert "<script>" not in text
        assert "style=" not in text
        assert " onclick" not in text


@pytest.mark.parametrize("wrong", [ValueError("/secret/path"), KeyError("x"), MemoryError()])
def test_a_fault_of_ours_is_a_sentence_without_a_trace(wrong):
    def fail(_):
        raise wrong

    reader = SmallReader()
    with in_process(reader, limits=Limits(**FREE)) as client:
        reader.before = fail
        assert "secret" not in sentence_of(client.post("/v1/read", content=IMAGE), 500)
        reader.before = lambda _: None
        assert client.post("/v1/read", content=IMAGE).status_code == 200


def test_nan_is_never_sent(client, reader):
    class Doubtful(SmallReader):
        def read(self, pages, *, attention=False):
            readings = super().read(pages, attention=attention)
            return [replace(each, confidence=float("nan")) for each in readings]

    with in_process(Doubtful(), limits=Limits(**FREE)) as doubtful:
        answer = doubtful.post("/v1/read", content=IMAGE)
        assert "NaN" not in answer.text
        sentence_of(answer, 500)


def test_what_is_counted_is_what_happened(client):
    client.post("/v1/read", content=IMAGE)
    client.post("/v1/read", content=b"x")
    client.get("/some/where/1")
    client.get("/some/where/2")
    text = client.get("/metrics").text
    assert 'http_requests_total{handler="/v1/read",method="POST",status="200"} 1.0' in text
    assert 'http_requests_total{handler="/v1/read",method="POST",status="415"} 1.0' in text
    assert 'http_requests_total{handler="other",method="GET",status="404"} 2.0' in text
    assert 'vitreous_digits_total{digit="9"} 2.0' in text
    assert "vitreous_batch_size_count 2.0" in text  # the first was the service's own
    assert "vitreous_images_inside 0.0" in text
    assert "vitreous_held_bytes 0.0" in text


def test_the_documentation_is_local(client):
    assert client.get("/docs").headers["content-type"].startswith("text/html")
    told = client.get("/openapi.json").json()
    assert told["info"]["version"] == vitreous.__version__
    assert "/v1/read" in told["paths"]


def test_an_image_of_any_format_is_read(client):
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM"):
        data = encoded(number_image("407"), kind)
        assert client.post("/v1/read", content=data).json()["text"] == "407", kind


def test_blank_paper_is_no_number(client):
    told = client.post("/v1/read", content=encoded(Image.new("L", (300, 200), 255))).json()
    assert (told["text"], told["lines"]) == ("", [])
