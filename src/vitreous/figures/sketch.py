"""A drawing that grows downwards: boxes, labelled arrows, and paths that go round some of them."""

from html import escape

from vitreous.figures.style import AQUA, BLUE, INK, MUTED, ORANGE

__all__ = ["Sketch"]

WIDTH, CENTRE, BOX = 640, 320, 340
ROUND = CENTRE + BOX // 2 + 34
"""Where paths go round."""
STYLE = f"""
text {{ font: 13px system-ui, sans-serif; fill: {INK} }}
.small {{ font-size: 11.5px; fill: {MUTED} }}
.title {{ font-size: 17px; font-weight: 600 }} .name {{ font-weight: 600 }}
.flow {{ stroke: {INK}; stroke-width: 1.4; fill: none }}
.round {{ stroke: {ORANGE}; stroke-width: 1.8; fill: none }}
"""


class Sketch:
    """Each call draws below what is there; `svg` is the whole."""

    def __init__(self) -> None:
        self.y = 20
        self.marks: list[str] = []
        self.left_at: int | None = None
        self.frame_at = 0

    def heading(self, title: str, line: str) -> None:
        """What this is, at the top."""
        self.y += 10
        self.text(20, self.y, title, "title", "start")
        self.text(20, self.y + 22, line, "small", "start")
        self.y += 42

    def box(self, name: str, line: str, *, plain: bool = False) -> None:
        """Something that is done, or, plain, something that is there."""
        fill, edge = ("#ffffff", MUTED) if plain else ("#eef4fc", BLUE)
        self.marks.append(
            f'<rect x="{CENTRE - BOX // 2}" y="{self.y}" width="{BOX}" height="44" rx="6" '
            f'fill="{fill}" stroke="{edge}"/>'
        )
        self.text(CENTRE, self.y + 18, name, "name")
        self.text(CENTRE, self.y + 35, line, "small")
        self.y += 44

    def arrow(self, flow: str, remark: str = "", *, head: bool = True) -> None:
        """The way down, with what goes along it; without a head where it only goes on."""
        self.line(self.y, self.y + 30)
        if head:
            self.marks.append(
                f'<path d="M{CENTRE - 4} {self.y + 23}L{CENTRE} {self.y + 30}L{CENTRE + 4} '
                f'{self.y + 23}" class="flow"/>'
            )
        self.text(CENTRE + 10, self.y + 19, flow, "shape", "start")
        if remark:
            self.text(CENTRE - 10, self.y + 19, remark, "small", "end")
        self.y += 30

    def leave(self) -> None:
        """From here a path goes round what follows."""
        self.line(self.y, self.y + 22)
        self.left_at = self.y + 8
        self.y += 22

    def join(self) -> None:
        """Here it comes back, and is added."""
        assert self.left_at is not None
        middle = self.y + 11
        self.marks.append(
            f'<path d="M{CENTRE} {self.left_at}H{ROUND - 8}q8 0 8 8V{middle - 8}q0 8 -8 8'
            f'H{CENTRE + 13}" class="round residual"/>'
            f'<path d="M{CENTRE + 20} {middle - 4}L{CENTRE + 13} {middle}L{CENTRE + 20} '
            f'{middle + 4}" class="round"/>'
            f'<circle cx="{CENTRE}" cy="{middle}" r="11" fill="#ffffff" class="flow"/>'
            f'<path d="M{CENTRE - 6} {middle}h12M{CENTRE} {middle - 6}v12" class="flow"/>'
        )
        self.left_at = None
        self.y += 22

    def open_frame(self, name: str, *lines: str) -> None:
        """Round what is there several times."""
        self.frame_at = self.y
        self.text(36, self.y + 22, name, "name", "start")
        for number, line in enumerate(lines):
            self.text(36, self.y + 40 + 16 * number, line, "small", "start")
        self.line(self.y, self.y + 62)
        self.y += 62

    def close_frame(self) -> None:
        """The end of it."""
        height = self.y - self.frame_at + 6
        self.marks.insert(
            0,
            f'<rect x="22" y="{self.frame_at}" width="{WIDTH - 44}" height="{height}" rx="10" '
            f'fill="#fbfbf9" stroke="{AQUA}" stroke-dasharray="5 4"/>',
        )
        self.line(self.y, self.y + 6)
        self.y += 6

    def line(self, start: int, end: int) -> None:
        """A stretch of the way down."""
        self.marks.append(f'<path d="M{CENTRE} {start}V{end}" class="flow"/>')

    def text(self, x: int, y: int, words: str, kind: str, anchor: str = "middle") -> None:
        """Words at a place."""
        self.marks.append(
            f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def svg(self, title: str) -> str:
        """The whole drawing, on white paper."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.y + 20}" '
            f'width="{WIDTH}" height="{self.y + 20}" role="img"><title>{escape(title)}</title>'
            f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#ffffff"/>'
            + "".join(self.marks)
            + "</svg>\n"
        )
