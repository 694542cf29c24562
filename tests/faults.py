"""Faults that people really make, and the test that must see each.

Every one changes a number rather than only raising. `tests/test_faults.py` plants them, one at a
time, in a copy of the project.
"""

from typing import NamedTuple

__all__ = ["FAULTS", "Fault"]


class Fault(NamedTuple):
    """One edit that must turn one test red."""

    name: str
    file: str
    find: str
    replace: str
    caught_by: str


FAULTS: tuple[Fault, ...] = ()
