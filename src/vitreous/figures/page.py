"""One self-contained HTML page: no script, no network, light and dark, phone and paper."""

import base64
import io
from collections.abc import Iterable, Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["chart", "facts", "image_data", "page", "section", "table", "tile", "tiles"]

CSS = """
:root { color-scheme: light dark; --ink: #1c2126; --muted: #5b6570; --line: #e6e6e3; --paper: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaec; --muted: #a3adb7; --line: #353b41; --paper: #16191c }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem; max-width: 46rem; color: var(--ink);
  background: var(--paper); font: 1rem/1.55 system-ui, sans-serif }
h1 { font-size: 1.5rem; line-height: 1.25 } h2 { font-size: 1.1rem; margin-top: 2.2rem }
p.lead { font-size: 1.15rem } .muted, figcaption, th { color: var(--muted) }
.wide { overflow-x: auto } table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; border-bottom: 1px solid var(--line);
  font-weight: normal; vertical-align: top }
td:last-child { overflow-wrap: anywhere; padding-right: 0 }
@media (min-width: 40rem) { td:first-child { min-width: 11rem } }
figure { margin: 1rem 0 } figure.chart { background: #fff; border-radius: .4rem; padding: .5rem }
svg { width: 100%; max-width: 36rem; height: auto; display: block; margin: auto }
figcaption { font-size: .9rem }
figure.chart figcaption { color: #5b6570 }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem } .tiles figure { margin: 0; width: 6rem }
.tiles img { width: 6rem; height: 6rem; image-rendering: pixelated; border-radius: .3rem }
@media print { body { max-width: none; padding: 0 } figure { break-inside: avoid } }
"""


def page(title: str, parts: Iterable[str], *, style: str = "") -> str:
    """A whole page from its parts, which are HTML already; `style` is more CSS, after our own."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{CSS}{style}</style></head>\n<body>"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A heading and what stands under it."""
    return f"<h2>{escape(title)}</h2>\n" + "\n".join(parts)


def table(rows: Iterable[Iterable[object]], head: Iterable[str] = ()) -> str:
    """A table of plain values, escaped."""
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table>{f"<tr>{header}</tr>" if header else ""}{body}</table></div>'


def facts(values: Mapping[str, object]) -> str:
    """Names and values as a table of two columns."""
    return table(values.items())


def image_data(pixels: NDArray[np.uint8]) -> str:
    """A picture (c, y, x) of one or three channels as a data address."""
    picture = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(file, format="PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def tile(address: str, text: str, hint: str) -> str:
    """A small picture with its text under it."""
    return (
        f'<figure><img alt="{escape(text)}" title="{escape(hint)}" src="{escape(address)}">'
        f"<figcaption>{escape(text)}</figcaption></figure>"
    )


def tiles(those: Iterable[str]) -> str:
    """Tiles side by side, as many as fit."""
    return f'<div class="tiles">{"".join(those)}</div>'


def chart(svg: str, caption: str) -> str:
    """A drawing with a caption."""
    return f'<figure class="chart">{svg}<figcaption>{escape(caption)}</figcaption></figure>'
