"""The shapes of requests and answers, as OpenAPI shows them."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from vitreous.service.body import FIELD

__all__ = ["InferAnswer", "InferRequest", "Problem", "Read", "body", "problems"]

Chance = Annotated[float, Field(ge=0, le=1)]
Box = Annotated[
    list[int],
    Field(
        min_length=4,
        max_length=4,
        description="left, top, width, height, in pixels of the upright image",
    ),
]


class Problem(BaseModel):
    """What went wrong, in a sentence."""

    error: str


class Digit(BaseModel):
    """One digit, with its place in the image."""

    value: str
    confidence: Chance
    box: Box


class Alternative(BaseModel):
    """Another reading of a line."""

    text: str
    confidence: Chance


class Line(BaseModel):
    """One number."""

    text: str
    box: Box
    confidence: Chance
    digits: list[Digit]
    alternatives: list[Alternative]
    picture: str = Field("", description="what the model saw, as a data address")
    attention: list[list[list[float]]] | None = Field(
        None, description="for each digit, a map (row, column) over the patches of the line"
    )


class Read(BaseModel):
    """What an image says; `text` stays where `rejected` says that it is not sure."""

    file: str = Field(description="what the client called the image; - for raw bytes")
    text: str
    lines: list[Line]
    confidence: Chance
    rejected: bool
    warnings: list[str]


class Tensor(BaseModel):
    """A tensor of the Open Inference Protocol; `data` row by row, nested or flat."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(max_length=100)
    shape: list[Annotated[int, Field(ge=0, le=100_000, strict=True)]] = Field(
        min_length=1, max_length=4
    )
    datatype: Literal["BYTES", "UINT8"]
    data: list[Any] | str


class Output(BaseModel):
    """An output that is asked for."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(max_length=100)


class InferRequest(BaseModel):
    """Images to read: BYTES (n) of base64, or UINT8 pixels (y, x) or (y, x, 3)."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(None, max_length=200)
    inputs: list[Tensor] = Field(min_length=1, max_length=1)
    outputs: list[Output] | None = Field(None, max_length=16)


class InferOutput(BaseModel):
    """One output, a value for each image."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]


class InferAnswer(BaseModel):
    """The outputs that were asked for, or all."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferOutput]


SENTENCES = {
    400: "The body cannot be read",
    401: "The token is missing or wrong",
    404: "There is no such model",
    408: "The body took too long to arrive",
    413: "Too many bytes or pixels",
    415: "The content is no image of a known format",
    421: "Not a name of this machine",
    422: "An image or a value that cannot be used",
    429: "Too many requests",
    500: "The service failed",
    503: "Busy, starting or stopping; Retry-After says when to ask again",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that are no answers."""
    return {status: {"model": Problem, "description": SENTENCES[status]} for status in statuses}


def body(content: dict[str, Any]) -> dict[str, Any]:
    """A route's request body, which it reads by itself."""
    return {"requestBody": {"required": True, "content": content}}


IMAGE = {"type": "string", "contentMediaType": "application/octet-stream", "format": "binary"}
UPLOAD = body(
    {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {FIELD.decode(): IMAGE},
                "required": [FIELD.decode()],
            }
        },
        **{
            kind: {"schema": IMAGE}
            for kind in ("application/octet-stream", "image/png", "image/jpeg", "image/webp")
        },
    }
)
"""An image as a form's field, or alone."""
