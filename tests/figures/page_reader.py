"""Reads a page as a browser would, as far as the tests ask."""

from html.parser import HTMLParser

__all__ = ["Page"]

VOID = {"meta", "img", "br", "link", "input", "hr"}
REFERENCES = {"src", "href", "xlink:href", "action", "data", "poster", "srcset", "background"}


class Page(HTMLParser):
    """The text, what is still open at the end, scripts, and references to anything outside."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.scripts = 0
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self.look(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.look(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.outside += [part for part in data.split() if "url(" in part or "@import" in part]
        else:
            self.text += data

    def look(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for name, value in attrs:
            self.scripts += name.startswith("on")
            own = (value or "").startswith(("#", "data:"))
            if name in REFERENCES and not own:
                self.outside.append(f"{tag} {name}={value}")
            if "url(" in (value or "") and "url(#" not in (value or ""):
                self.outside.append(f"{tag} {name}={value}")
