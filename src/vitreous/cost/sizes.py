"""Large numbers as people write and read them; every one with its unit."""

import re

from vitreous.errors import ConfigError

__all__ = ["in_bytes", "in_count", "in_seconds", "parse_bytes"]

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGTP]?)(i?)B", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """A size with its unit, in bytes; raises ConfigError for what is none.

    >>> parse_bytes("24GB"), parse_bytes("1.5 KiB")
    (24000000000, 1536)
    """
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"{text!r} is no size of memory; write it as 24GB, 512MB or 8GiB")
    number, unit, binary = found.groups()
    scale = UNITS[unit.upper()]
    if binary:
        scale = 1 << 10 * list(UNITS).index(unit.upper())
    size = int(float(number) * scale)
    if size < 1:
        raise ConfigError(f"{text!r} is no memory at all; write it as 24GB, 512MB or 8GiB")
    return size


def in_bytes(size: int) -> str:
    """Bytes in decimal units.

    >>> in_bytes(24_000_000_000), in_bytes(-1_500)
    ('24.0 GB', '-1.5 kB')
    """
    for unit, scale in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if abs(size) >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"


def in_count(count: int) -> str:
    """A large count with three decimals, as the field prints them.

    >>> in_count(17_563_828_224), in_count(1_795_968)
    ('17.564 G', '1.796 M')
    """
    unit, scale = ("G", 1e9) if count >= 1e8 else ("M", 1e6)
    return f"{count / scale:,.3f} {unit}"


def in_seconds(seconds: int | float) -> str:
    """A duration with three digits.

    >>> in_seconds(12.345), in_seconds(0.0123), in_seconds(0.0000123)
    ('12.3 s', '12.3 ms', '12.3 µs')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"
