"""What became of every tensor of a file, and by which conventions the model now computes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, TypeAlias

__all__ = ["Action", "Report", "Row"]

Action: TypeAlias = Literal[
    "taken", "reshaped", "transposed", "joined", "split", "folded", "reordered", "dropped"
]


@dataclass(frozen=True)
class Row:
    """One tensor of the file."""

    source: str
    shape: tuple[int, ...]
    action: Action
    target: str = ""
    """The tensor or tensors of ours that it went into."""
    note: str = ""
    """Why it was changed or dropped."""


@dataclass(frozen=True)
class Report:
    """The account of one file: its format, one row a tensor, conventions, and what was checked."""

    format: str
    path: str
    rows: tuple[Row, ...]
    conventions: Mapping[str, Any]
    """What no tensor holds and a wrong guess would change silently."""
    notes: tuple[str, ...] = ()
    checks: Mapping[str, float] = field(default_factory=dict)
    """Largest difference over largest value, for each output that was compared."""

    @property
    def counts(self) -> dict[str, int]:
        """How many tensors each thing was done to."""
        return dict(Counter(row.action for row in self.rows))

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "format": self.format,
            "path": self.path,
            "conventions": dict(self.conventions),
            "notes": list(self.notes),
            "checks": dict(self.checks),
            "counts": self.counts,
            "rows": [{**vars(row), "shape": list(row.shape)} for row in self.rows],
        }

    def __str__(self) -> str:
        lines = [f"{self.path}: {self.format}, {len(self.rows)} tensors: {self.summary()}"]
        lines += [f"  {name}: {value}" for name, value in self.conventions.items()]
        lines += [f"  {note}" for note in self.notes]
        dropped = [row for row in self.rows if row.action == "dropped"]
        lines += [f"  dropped {row.source}: {row.note}" for row in dropped]
        lines += [f"  {name} differs by {gap:.1e} of its size" for name, gap in self.checks.items()]
        return "\n".join(lines)

    def summary(self) -> str:
        """The counts in words."""
        return ", ".join(f"{count} {action}" for action, count in self.counts.items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(row.source)}<td>{row.action}<td>{escape(row.target)}"
            f"<td>{escape(row.note)}"
            for row in self.rows
        )
        head = escape(f"{self.format}: {self.summary()}")
        return f"<table><caption>{head}</caption>{rows}</table>"
