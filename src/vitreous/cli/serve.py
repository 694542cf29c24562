"""Read numbers over HTTP: a page to draw on, and an interface for programs.

Listens on 127.0.0.1 alone, unless a token is set: VITREOUS_TOKEN or --token-file. SIGTERM and
Ctrl-C end what has begun. Needs FastAPI and uvicorn: pip install 'vitreous[serve]'.
"""

import argparse
from pathlib import Path

from vitreous.cli.options import warn
from vitreous.errors import ConfigError

__all__ = ["add_arguments", "run"]

BOUNDS = {
    # option: its type and what it bounds; the defaults stand in service/limits.py
    "max-bytes": (int, "of one upload (default: 20 million)"),
    "max-pixels": (int, "of one image, by its header (default: 50 million)"),
    "seconds": (float, "for an upload to arrive, and for an answer (default: 30)"),
    "held-bytes": (int, "of all uploads at one time (default: 200 million)"),
    "room": (int, "images that may wait; the next is told to come back (default: 64)"),
    "batch": (int, "images in one pass of the model (default: 16)"),
    "wait": (float, "seconds that an image waits for others (default: 0.004)"),
    "rate": (float, "requests a second of one token or address, 0 for any (default: 50)"),
}


def add_arguments(verb: argparse.ArgumentParser) -> None:
    """What `vitreous serve` understands."""
    verb.add_argument("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    verb.add_argument("--port", type=int, default=8000, help="0 takes a free one (default: 8000)")
    verb.add_argument("--token-file", metavar="FILE", type=Path, help="holds the token to ask for")
    verb.add_argument("--weights", metavar="FILE", type=Path, help="another reader than ours")
    verb.add_argument("--threads", type=int, help="of the model (default: torch's choice)")
    verb.add_argument("--drain", type=float, default=30.0, help="seconds to end what has begun")
    verb.add_argument("--proxy", metavar="ADDRESS", help="a proxy to believe about who is asking")
    for name, (kind, text) in BOUNDS.items():
        verb.add_argument(f"--{name}", type=kind, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop; returns the exit code."""
    try:
        from vitreous.service.access import is_loopback, read_token
        from vitreous.service.app import create_app
        from vitreous.service.limits import Limits
        from vitreous.service.server import listen, make_server, require_token, serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("vitreous"):
            raise
        raise ConfigError(
            f"serving needs {error.name}, which is not installed: pip install 'vitreous[serve]'"
        ) from error
    names = {name: name.replace("-", "_") for name in BOUNDS}
    given = {field: getattr(arguments, field) for field in names.values()}
    limits = Limits(**{field: value for field, value in given.items() if value is not None})
    if not 0 <= arguments.drain < 86_400:
        raise ConfigError(f"--drain {arguments.drain:g} must be seconds from 0 to a day")
    if arguments.threads is not None and arguments.threads < 1:
        raise ConfigError(f"--threads {arguments.threads} must be at least 1")
    token = read_token(arguments.token_file)
    require_token(arguments.host, token)
    listening = listen(arguments.host, arguments.port)
    with listening:
        local = token is None and is_loopback(arguments.host)
        app = create_app(load(arguments), limits=limits, token=token, local_only=local)
        server = make_server(app, drain=arguments.drain, proxy=arguments.proxy)
        serve(server, listening, lambda address: print(f"vitreous serves on {address}", flush=True))
    warn("vitreous serve: everything that had begun was answered")
    return 0


def load(arguments: argparse.Namespace):
    """The reader, with as many threads as were asked for."""
    import torch

    from vitreous.cli.progress import busy
    from vitreous.reading.reader import NumberReader

    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    with busy("loading the reader"):
        return NumberReader.load(arguments.weights)
