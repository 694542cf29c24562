"""Who may ask, and how often."""

import os
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from pathlib import Path
from secrets import compare_digest

from starlette.requests import Request

from vitreous.errors import ConfigError
from vitreous.service.limits import RefusalError

__all__ = ["Access", "RateLimit", "is_loopback", "peer", "read_token"]

VARIABLE = "VITREOUS_TOKEN"
SHORTEST = 16


def read_token(file: Path | None) -> str | None:
    """The token from a file, or else from the environment; None where there is neither.

    Raises ConfigError for one that cannot be read, is shorter than 16 characters, or could not
    stand in a header.
    """
    if file is None:
        token, origin = os.environ.get(VARIABLE), VARIABLE
        if token is None:
            return None
    else:
        origin = str(file)
        try:
            token = file.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise ConfigError(f"the token file {file} cannot be read: {error}") from error
    token = token.strip()
    if len(token) < SHORTEST:
        raise ConfigError(
            f"the token in {origin} has {len(token)} characters; use at least {SHORTEST}, as from "
            "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"the token in {origin} must be of plain characters without spaces")
    return token


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def peer(request: Request) -> str:
    """Who is at the other end; of IPv6 the network, of which one customer usually has all."""
    host = request.client.host if request.client else ""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False))
    return host


class RateLimit:
    """A bucket for each name that fills at `rate` a second and holds two seconds of it."""

    NAMES = 10_000
    """Buckets that are kept; the one that was used longest ago goes first, and it is full."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.clock = rate, clock
        self.burst = max(1.0, 2 * rate)
        self.buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """One request; raises RefusalError (429), which says when the next one may come."""
        if not self.rate:
            return
        now = self.clock()
        level, before = self.buckets.pop(name, (self.burst, now))
        level = min(self.burst, level + (now - before) * self.rate)
        self.buckets[name] = (level - 1 if level >= 1 else level, now)
        if len(self.buckets) > self.NAMES:
            self.buckets.popitem(last=False)
        if level < 1:
            raise RefusalError(
                429,
                f"more than {self.rate:g} requests a second; wait and try again",
                retry_after=(1 - level) / self.rate,
            )


class Access:
    """Asks for the token, where there is one, and counts requests by token or by peer."""

    def __init__(self, token: str | None, rate: float) -> None:
        self.token = token
        self.limit = RateLimit(rate)

    def admit(self, request: Request) -> None:
        """Raises RefusalError: 429 too often, 401 without the token; guesses count for a peer."""
        known = self.token is not None and self.holds_token(request)
        self.limit.take("token" if known else f"peer {peer(request)}")
        if self.token is not None and not known:
            raise RefusalError(
                401, "this needs the service's token, as the header Authorization: Bearer TOKEN"
            )

    def holds_token(self, request: Request) -> bool:
        """Compare in a time that does not depend on where the first wrong character stands."""
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        wanted = (self.token or "").encode()
        return scheme.lower() == "bearer" and compare_digest(given.strip().encode(), wanted)
