"""The Open Inference Protocol, version 2, over the same engine.

Source: github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md.
"""

import asyncio
import json
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

import numpy as np
from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from PIL import Image
from pydantic import ValidationError

import vitreous
from vitreous.service.body import receive
from vitreous.service.engine import Engine
from vitreous.service.limits import Limits, RefusalError, check_image
from vitreous.service.schemas import InferAnswer, InferRequest, Tensor, body, problems

__all__ = ["MODEL", "routes"]

MODEL = "reader"
MAX_VALUES = 1_000_000
"""Numbers in one request: JSON is parsed in one go, and other requests wait for it."""

OUTPUTS = {
    # name: datatype, and how it is found in an answer
    "text": ("BYTES", lambda answer: answer["text"]),
    "confidence": ("FP64", lambda answer: answer["confidence"]),
    "rejected": ("BOOL", lambda answer: answer["rejected"]),
    "reading": ("BYTES", lambda answer: json.dumps(answer, allow_nan=False)),
}
METADATA = {
    "name": MODEL,
    "versions": [vitreous.__version__],
    "platform": "pytorch",
    "inputs": [{"name": "image", "datatype": "BYTES", "shape": [-1]}],
    "outputs": [
        {"name": name, "datatype": kind, "shape": [-1]} for name, (kind, _) in OUTPUTS.items()
    ],
}


def routes(
    engine: Engine, limits: Limits, admit: Callable[[Request], Awaitable[None]]
) -> APIRouter:
    """Health, metadata and inference."""
    router = APIRouter(tags=["Open Inference Protocol"])
    guarded = [Depends(admit)]

    @router.get("/v2", summary="What this server is", responses=problems(421))
    async def server() -> dict[str, Any]:
        return {"name": "vitreous", "version": vitreous.__version__, "extensions": []}

    @router.get("/v2/health/live", summary="Whether the process runs", responses=problems(421))
    async def live() -> dict[str, bool]:
        return {"live": True, "ready": engine.ready}

    @router.get(
        "/v2/health/ready",
        summary="Whether images can be read",
        responses={421: problems(421)[421], 503: {"description": "Not yet, or no longer"}},
    )
    async def ready() -> JSONResponse:
        found = {"live": True, "ready": engine.ready}
        return JSONResponse(found, 200 if engine.ready else 503)

    for versioned in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        known = [*guarded, Depends(known_model)]
        told = problems(401, 404, 421, 422, 429)

        @router.get(
            versioned, summary="What it takes and gives", dependencies=known, responses=told
        )
        async def metadata() -> dict[str, Any]:
            return METADATA

        @router.get(
            f"{versioned}/ready",
            summary="Whether the model can be asked",
            dependencies=known,
            responses={**told, 503: {"description": "Not yet, or no longer"}},
        )
        async def model_ready() -> JSONResponse:
            return await ready()

        @router.post(
            f"{versioned}/infer",
            summary="Read images",
            dependencies=known,
            response_model=InferAnswer,
            response_model_exclude_none=True,
            responses=problems(400, 401, 404, 408, 413, 415, 421, 422, 429, 503),
            openapi_extra=body({"application/json": {"schema": InferRequest.model_json_schema()}}),
        )
        async def infer(request: Request) -> dict[str, Any]:
            async with receive(request, limits, engine.held) as upload:
                asked = await engine.by_hand(lambda: parse(upload.data))
                images = await engine.by_hand(lambda: images_of(asked.inputs[0], limits))
                answers = await asyncio.gather(*map(engine.read, images))
            return outputs_of(asked, answers)

    return router


async def known_model(request: Request) -> None:
    """Raises RefusalError (404) for a model or version that is not here."""
    model, version = (request.path_params.get(name) for name in ("model", "version"))
    if model != MODEL:
        raise RefusalError(404, f"there is no such model; there is {MODEL}")
    if version not in (None, vitreous.__version__):
        raise RefusalError(404, f"there is no such version; there is {vitreous.__version__}")


def parse(data: bytes) -> InferRequest:
    """A request from its JSON; raises RefusalError."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise RefusalError(
            413, f"the request holds more than {MAX_VALUES} values; send BYTES instead"
        )
    try:
        return InferRequest.model_validate(json.loads(data, parse_constant=no_number))
    except ValidationError as error:
        raise RefusalError(422, sentence(error)) from error
    except (ValueError, RecursionError) as error:
        raise RefusalError(400, "the body is no JSON object that can be read") from error


def no_number(name: str) -> NoReturn:
    """Raises ValueError: JSON has no NaN and no Infinity, though Python's parser takes them."""
    raise ValueError(f"{name} is no JSON")


def sentence(error: ValidationError) -> str:
    """The first thing that is wrong with a request, with its place."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'the body'}: {first['msg']}"


def images_of(tensor: Tensor, limits: Limits) -> list[bytes | Image.Image]:
    """The images of an input; raises RefusalError."""
    if tensor.name != "image":
        raise RefusalError(422, f"there is no input {tensor.name[:40]!r}; there is 'image'")
    if tensor.datatype == "UINT8":
        return [from_pixels(tensor)]
    values = flat(tensor.data)
    if (
        len(tensor.shape) != 1
        or tensor.shape != [len(values)]
        or not 1 <= len(values) <= limits.batch
    ):
        raise RefusalError(
            422,
            f"BYTES of shape {tensor.shape} with {len(values)} values: "
            f"give 1 to {limits.batch} images and as many in the shape",
        )
    images = [from_base64(value) for value in values]
    for image in images:
        check_image(image, limits.max_pixels)
    return [*images]


def from_base64(value: Any) -> bytes:
    """The file of one element; raises RefusalError."""
    try:
        return b64decode(re.sub(r"\s", "", value), validate=True)
    except (TypeError, ValueError) as error:
        raise RefusalError(422, "BYTES must be image files in base64") from error


def from_pixels(tensor: Tensor) -> Image.Image:
    """An image from its numbers; raises RefusalError."""
    values, shape = flat(tensor.data), tensor.shape
    if not (len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)) or not all(shape):
        raise RefusalError(422, f"UINT8 of shape {shape}: give one image, (y, x) or (y, x, 3)")
    if len(values) != np.prod(shape, dtype=np.int64):
        raise RefusalError(422, f"shape {shape} does not hold {len(values)} values")
    if not all(type(value) is int and 0 <= value <= 255 for value in values):
        raise RefusalError(422, "UINT8 are whole numbers from 0 to 255")
    return Image.fromarray(np.array(values, dtype=np.uint8).reshape(shape))


def flat(data: Any) -> list[Any]:
    """Values row by row, however they are nested."""
    values: list[Any] = data if isinstance(data, list) else [data]
    while values and all(isinstance(value, list) for value in values):
        values = [inner for value in values for inner in value]
    return values


def outputs_of(asked: InferRequest, answers: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer, with the outputs that were asked for; raises RefusalError for an unknown one."""
    names = [output.name for output in asked.outputs or []] or list(OUTPUTS)
    unknown = [name for name in names if name not in OUTPUTS]
    if unknown:
        raise RefusalError(
            422, f"there is no output {unknown[0][:40]!r}; there are {', '.join(OUTPUTS)}"
        )
    return {
        "model_name": MODEL,
        "model_version": vitreous.__version__,
        "id": asked.id,
        "outputs": [
            {
                "name": name,
                "datatype": OUTPUTS[name][0],
                "shape": [len(answers)],
                "data": [OUTPUTS[name][1](answer) for answer in answers],
            }
            for name in names
        ],
    }
