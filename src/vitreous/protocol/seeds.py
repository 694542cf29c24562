"""One integer in, one independent stream per purpose out."""

from hashlib import sha256

__all__ = ["stream"]


def stream(seed: int, purpose: str, index: int = 0) -> int:
    """The 32-bit seed of one purpose ("init", "shuffle", "augment") at one index (epoch, step).

    Streams share no draws: one more draw in one cannot move another, and the numbers of step 7
    need no state from steps 1 to 6.

    >>> stream(0, "init") == stream(0, "init"), stream(0, "init") == stream(0, "shuffle")
    (True, False)
    """
    return int.from_bytes(sha256(f"{seed}/{purpose}/{index}".encode()).digest()[:4])
