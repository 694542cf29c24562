"""The routes, around an engine that knows nothing of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from logging import getLogger
from pathlib import Path

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

import vitreous
from vitreous.errors import VitreousError
from vitreous.service import oip
from vitreous.service.access import Access
from vitreous.service.body import receive
from vitreous.service.contract import Reader
from vitreous.service.engine import Engine
from vitreous.service.guard import Guard
from vitreous.service.limits import Limits, RefusalError, check_image
from vitreous.service.metrics import KIND, Metrics
from vitreous.service.schemas import UPLOAD, Read, problems

__all__ = ["create_app"]

LOG = getLogger(__name__)
PAGE = Path(__file__).parent / "page"
FILES = {
    # address: file, kind
    "/": ("index.html", "text/html; charset=utf-8"),
    "/app.js": ("app.js", "text/javascript; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
}


def create_app(
    reader: Reader,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    local_only: bool = False,
) -> FastAPI:
    """The service around a reader, as an ASGI application.

    With `token`, everything but the page, the documentation and health asks for it; with
    `local_only`, requests must name this machine as their host.
    """
    limits, metrics = limits or Limits(), Metrics()
    access, engine = Access(token, limits.rate), Engine(reader, limits, metrics)

    async def admit(request: Request) -> None:
        access.admit(request)

    app = FastAPI(
        title="vitreous",
        summary="Reads handwritten numbers, and shows where it looked",
        version=vitreous.__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: running(engine),
    )
    app.add_middleware(Guard, metrics=metrics, local_only=local_only)
    add_errors(app)
    add_page(app)
    add_reading(app, engine, limits, admit)
    app.include_router(oip.routes(engine, limits, admit))

    @app.get(
        "/metrics",
        summary="Counters for Prometheus",
        dependencies=[Depends(admit)],
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, **problems(401, 421, 429)},
    )
    async def counters() -> Response:
        return Response(metrics.text(), media_type=KIND)

    return app


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator[None]:
    """The engine, for as long as the server runs; it warms up while health already answers."""
    warming = asyncio.create_task(warm(engine))
    try:
        yield
    finally:
        warming.cancel()
        with suppress(asyncio.CancelledError):
            await warming
        await engine.close()


async def warm(engine: Engine) -> None:
    """Start, and leave it unready where even the first reading fails."""
    try:
        await engine.start()
    except Exception:
        LOG.exception("the first reading failed; the service stays unready")


def add_errors(app: FastAPI) -> None:
    """Every error is one object with one sentence."""

    @app.exception_handler(RefusalError)
    async def refused(_: Request, error: RefusalError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, error.status, dict(error.headers))

    @app.exception_handler(VitreousError)
    async def unreadable(_: Request, error: VitreousError) -> JSONResponse:
        return JSONResponse({"error": str(error)}, 422)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        return JSONResponse({"error": f"{'.'.join(map(str, first['loc']))}: {first['msg']}"}, 422)

    @app.exception_handler(HTTPException)
    async def unknown(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def add_page(app: FastAPI) -> None:
    """The page and the documentation, from memory."""
    for address, (name, kind) in FILES.items():
        content = (PAGE / name).read_bytes()
        app.add_route(address, file_route(content, kind), include_in_schema=False)


def file_route(content: bytes, kind: str) -> Callable[[Request], Awaitable[Response]]:
    """Answers with one file."""

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind)

    return answer


def add_reading(
    app: FastAPI, engine: Engine, limits: Limits, admit: Callable[[Request], Awaitable[None]]
) -> None:
    """The route that everything else is for."""

    @app.post(
        "/v1/read",
        summary="Read the numbers of an image",
        response_model=None,
        dependencies=[Depends(admit)],
        openapi_extra=UPLOAD,
        responses={
            200: {"model": Read},
            **problems(400, 401, 408, 413, 415, 421, 422, 429, 500, 503),
        },
    )
    async def read(request: Request, attention: bool = False) -> JSONResponse:
        """An image file, as the field `image` of a form or as the body itself.

        PNG, JPEG, WebP, GIF, BMP, TIFF or PPM, whatever its name says. With `attention`, each line
        also has what the model saw, and where it looked for each digit as it wrote it.
        """
        async with receive(request, limits, engine.held) as upload:
            await engine.by_hand(lambda: check_image(upload.data, limits.max_pixels))
            answer = await engine.read(upload.data, attention=attention)
            return JSONResponse({**answer, "file": upload.name})
