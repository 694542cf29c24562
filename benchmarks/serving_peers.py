"""The servers that serving.py compares, each in a process of its own, on 127.0.0.1 alone.

    python benchmarks/serving_peers.py vitreous 8000 [WEIGHTS]

All have the same reader, and take the same form with the field `image`. The plain one is what most
people write first: one request, one pass of the model, in the framework's threads. LitServe batches
as ours does; its default of a worker process of its own is kept.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vitreous.reading.reader import NumberReader

BATCH, WAIT = 16, 0.004


def vitreous(port: int, weights: Path | None) -> None:
    """Ours, without a rate limit, with room for all clients."""
    from vitreous.service.app import create_app
    from vitreous.service.limits import Limits
    from vitreous.service.server import listen, make_server, serve

    limits = Limits(rate=0.0, room=256, batch=BATCH, wait=WAIT)
    app = create_app(NumberReader.load(weights), limits=limits)
    serve(make_server(app), listen("127.0.0.1", port), lambda _: None)


def plain(port: int, weights: Path | None) -> None:
    """One request, one pass."""
    import uvicorn
    from fastapi import FastAPI, UploadFile

    app, reader = FastAPI(), NumberReader.load(weights)

    @app.post("/v1/read")
    def read(image: UploadFile) -> dict[str, Any]:
        (reading,) = reader.read([reader.prepare(image.file.read())])
        return reading.to_dict()

    uvicorn.run(app, host="127.0.0.1", port=port, access_log=False, log_level="error")


def litserve(port: int, weights: Path | None) -> None:
    """LitServe, with batches of the same size and wait."""
    import serving_litserve

    serving_litserve.serve(port, weights, batch=BATCH, wait=WAIT)


PEERS: Mapping[str, Callable[[int, Path | None], None]] = {
    "vitreous": vitreous,
    "plain FastAPI": plain,
    "LitServe": litserve,
}

if __name__ == "__main__":
    PEERS[sys.argv[1]](int(sys.argv[2]), Path(sys.argv[3]) if sys.argv[3:] else None)
