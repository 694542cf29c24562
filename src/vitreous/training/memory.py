"""Keep memory from step to step instead of giving it back and asking again."""

import ctypes
import platform

__all__ = ["hold_memory"]

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Of glibc's malloc.h."""


def hold_memory() -> bool:
    """Tell glibc's allocator to hold on to what it has; False where there is no glibc.

    A training step frees its activations and needs as much again a moment later. glibc gives large
    blocks back to the system at once, so each step pays for tens of thousands of page faults:
    holding them made steps 12 to 17 % faster on two cores (`benchmarks/results`, the profile of the
    training step). Results do not change.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    libc = ctypes.CDLL(None)
    limits = {M_MMAP_THRESHOLD: 1 << 30, M_TRIM_THRESHOLD: (1 << 31) - 1, M_TOP_PAD: 1 << 26}
    answers = [libc.mallopt(kind, value) for kind, value in limits.items()]
    return all(answers)
