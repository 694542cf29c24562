"""Ctrl-C between two steps, never in the middle of one."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts_held"]


@contextmanager
def interrupts_held() -> Iterator[Callable[[], bool]]:
    """Inside, the first Ctrl-C or SIGTERM only makes the yielded function true; a second one acts.

    Outside the main thread signals are not ours, and the function stays false.
    """
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.getsignal(kind) for kind in kinds}

    def ask(_kind: int, _frame: FrameType | None) -> None:
        asked.set()
        for kind in kinds:
            signal.signal(kind, before[kind])

    for kind in kinds:
        signal.signal(kind, ask)
    try:
        yield asked.is_set
    finally:
        for kind in kinds:
            signal.signal(kind, before[kind])
