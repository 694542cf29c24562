"""The Open Inference Protocol, version 2."""

import base64
import json

import numpy as np
import pytest

import vitreous
from tests.service.bombs import solid_png
from tests.service.number_images import number_image, png
from tests.service.test_http import sentence_of

INFER = "/v2/models/reader/infer"


def in_base64(*numbers: str) -> dict:
    data = [base64.b64encode(png(number)).decode() for number in numbers]
    return {"name": "image", "shape": [len(data)], "datatype": "BYTES", "data": data}


def test_the_server_and_the_model_say_what_they_are(client):
    assert client.get("/v2").json()["name"] == "vitreous"
    assert client.get("/v2/health/live").json() == {"live": True, "ready": True}
    assert client.get("/v2/health/ready").json()["ready"] is True
    for version in ("", f"/versions/{vitreous.__version__}"):
        told = client.get(f"/v2/models/reader{version}").json()
        assert told["name"] == "reader"
        assert told["inputs"] == [{"name": "image", "datatype": "BYTES", "shape": [-1]}]
        assert client.get(f"/v2/models/reader{version}/ready").status_code == 200


def test_images_are_read_in_their_order(client):
    asked = {"id": "seven", "inputs": [in_base64("407", "12", "9")]}
    for version in ("", f"/versions/{vitreous.__version__}"):
        answer = client.post(f"/v2/models/reader{version}/infer", json=asked)
        assert answer.status_code == 200
        told = answer.json()
        assert (told["model_name"], told["id"]) == ("reader", "seven")
        outputs = {output["name"]: output for output in told["outputs"]}
        assert set(outputs) == {"text", "confidence", "rejected", "reading"}
        assert outputs["text"]["data"] == ["407", "12", "9"]
        assert all(output["shape"] == [3] for output in outputs.values())
        assert [json.loads(each)["text"] for each in outputs["reading"]["data"]] == [
            "407",
            "12",
            "9",
        ]


def test_only_what_is_asked_for_is_answered(client):
    asked = {"inputs": [in_base64("407")], "outputs": [{"name": "text"}]}
    told = client.post(INFER, json=asked).json()
    assert [output["name"] for output in told["outputs"]] == ["text"]
    assert "id" not in told


@pytest.mark.parametrize("nested", [True, False])
@pytest.mark.parametrize("colour", [True, False])
def test_pixels_may_be_nested_or_flat_grey_or_in_colour(client, nested, colour):
    pixels = np.asarray(number_image("407").convert("RGB" if colour else "L"))
    data = pixels.tolist() if nested else pixels.ravel().tolist()
    image = {"name": "image", "shape": list(pixels.shape), "datatype": "UINT8", "data": data}
    told = client.post(INFER, json={"inputs": [image], "outputs": [{"name": "text"}]}).json()
    assert told["outputs"][0]["data"] == ["407"]


def pixels(shape: list, data: object) -> dict:
    return {"inputs": [{"name": "image", "shape": shape, "datatype": "UINT8", "data": data}]}


BAD = {
    "no inputs": ({"inputs": []}, 422),
    "no object": ([], 422),
    "another input": ({"inputs": [in_base64("4") | {"name": "audio"}]}, 422),
    "another datatype": ({"inputs": [in_base64("4") | {"datatype": "FP32"}]}, 422),
    "shape of more": ({"inputs": [in_base64("4") | {"shape": [2]}]}, 422),
    "no base64": ({"inputs": [in_base64("4") | {"data": ["!"]}]}, 422),
    "a number for bytes": ({"inputs": [in_base64("4") | {"data": [7]}]}, 422),
    "no image": ({"inputs": [in_base64("4") | {"data": ["aGVsbG8="]}]}, 415),
    "another output": ({"inputs": [in_base64("4")], "outputs": [{"name": "x"}]}, 422),
    "fewer pixels": (pixels([3, 3], [1] * 8), 422),
    "no pixels": (pixels([0, 3], []), 422),
    "negative": (pixels([1, 2], [-1, 2]), 422),
    "above": (pixels([1, 2], [0, 256]), 422),
    "fractions": (pixels([1, 2], [0.5, 1.0]), 422),
    "truth": (pixels([1, 2], [True, False]), 422),
    "four axes": (pixels([1, 1, 1, 1], [1]), 422),
    "a huge shape": (pixels([99_999, 99_999], [1]), 422),
    "a shape of strings": (pixels(["1", "1"], [1]), 422),
    "ragged": (pixels([2, 2], [[1, 2], [3]]), 422),
    "a bomb": (
        {"inputs": [in_base64("4") | {"data": [base64.b64encode(solid_png(8000)).decode()]}]},
        413,
    ),
    "too many values": (pixels([1000, 1001], [1] * 1_001_000), 413),
}


@pytest.mark.parametrize("wrong", BAD)
def test_what_cannot_be_inferred_is_told_why(client, wrong):
    asked, status = BAD[wrong]
    sentence_of(client.post(INFER, json=asked), status)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[" * 100_000, b'{"inputs": NaN}', b'{"inputs": [Infinity]}', b"\xff\xfe{"]
)
def test_what_is_no_json_is_told_so(client, body):
    assert "JSON" in sentence_of(client.post(INFER, content=body), 400)


@pytest.mark.parametrize("address", ["/v2/models/other", "/v2/models/reader/versions/9.9.9"])
def test_what_is_not_here_is_not_found(client, address):
    for path in (address, f"{address}/ready"):
        sentence_of(client.get(path), 404)
    sentence_of(client.post(f"{address}/infer", json={}), 404)
