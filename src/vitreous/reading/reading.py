"""What was read in an image, and how sure that is."""

from dataclasses import dataclass
from html import escape
from typing import Any, TypeAlias

__all__ = ["Box", "Digit", "Line", "Reading"]

Box: TypeAlias = tuple[int, int, int, int]
"""Left, top, width and height, in pixels of the upright image."""


@dataclass(frozen=True)
class Digit:
    """One digit of a line."""

    value: str
    confidence: float
    """How likely it is right, given the digits before it."""
    box: Box

    def to_dict(self) -> dict[str, Any]:
        """The digit as JSON values."""
        return {"value": self.value, "confidence": self.confidence, "box": list(self.box)}


@dataclass(frozen=True)
class Line:
    """One number."""

    text: str
    """Its digits, leading zeros too."""
    box: Box
    confidence: float
    """How likely the whole text is right."""
    digits: tuple[Digit, ...]
    strip: int = 0
    """Which of its page's strips it was read in; a strip without a digit makes no line."""
    alternatives: tuple[tuple[str, float], ...] = ()
    """Other texts and how likely each is, the likeliest first."""
    attention: list[list[list[float]]] | None = None
    """Where the model looked for each digit: for each, its patches' shares as rows of a grid."""

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON values; the attention only where it was asked for."""
        line: dict[str, Any] = {
            "text": self.text,
            "box": list(self.box),
            "confidence": self.confidence,
            "digits": [digit.to_dict() for digit in self.digits],
            "alternatives": [{"text": t, "confidence": c} for t, c in self.alternatives],
        }
        return line if self.attention is None else {**line, "attention": self.attention}


@dataclass(frozen=True)
class Reading:
    """All numbers of an image, in reading order."""

    text: str
    """All digits, lines joined by a newline; empty where there is no number."""
    lines: tuple[Line, ...]
    confidence: float
    """How likely all of the text is right."""
    rejected: bool
    """Whether it is too unsure to be used unseen; the text stays."""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The reading as JSON values."""
        return {
            "text": self.text,
            "lines": [line.to_dict() for line in self.lines],
            "confidence": self.confidence,
            "rejected": self.rejected,
            "warnings": list(self.warnings),
        }

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><code>{escape(line.text)}</code></td><td>{line.confidence:.1%}</td></tr>"
            for line in self.lines
        )
        notes = "".join(f"<li>{escape(warning)}</li>" for warning in self.warnings)
        verdict = "not sure: please check" if self.rejected else "sure enough"
        head = "<tr><th>number</th><th>how sure</th></tr>"
        body = f"<table>{head}{rows}</table><p>{verdict}</p>" if rows else "<p>no number</p>"
        return body + (f"<ul>{notes}</ul>" if notes else "")
