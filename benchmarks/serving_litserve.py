"""LitServe with our reader; in a file of its own, as its worker process must be able to find it."""

from pathlib import Path
from typing import Any

import litserve as ls
from fastapi import Request

from vitreous.reading.reader import NumberReader


class Api(ls.LitAPI):
    """Batches of the same size and wait as ours."""

    weights: Path | None = None

    def setup(self, device: str) -> None:  # noqa: ARG002
        self.reader = NumberReader.load(self.weights)

    def decode_request(self, request: Request) -> Any:
        return self.reader.prepare(request["image"].file.read())

    def batch(self, inputs: list[Any]) -> list[Any]:
        return inputs

    def predict(self, pages: list[Any]) -> list[Any]:
        return self.reader.read(pages)

    def unbatch(self, output: list[Any]) -> list[Any]:
        return output

    def encode_response(self, output: Any) -> dict[str, Any]:
        return output.to_dict()


def serve(port: int, weights: Path | None, *, batch: int, wait: float) -> None:
    """Answer on 127.0.0.1, with one worker."""
    api = Api(max_batch_size=batch, batch_timeout=wait, api_path="/v1/read")
    api.weights = weights
    server = ls.LitServer(api, accelerator="cpu", timeout=120)
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="error")
