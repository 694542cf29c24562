"""The page in a real Chromium: drawn on, given files, refused, narrow, dark, without a mouse."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.number_images import number_image, png
from tests.service.running import served
from tests.service.small_reader import SmallReader
from vitreous.service.limits import Limits

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
if CHROMIUM is None and os.environ.get("CI") == "true":
    pytest.fail("the browser tests may not be skipped here: install chromium", pytrace=False)
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium here: apt-get install chromium, to test the page"
)
PICTURES = os.environ.get("VITREOUS_PICTURES")
"""A folder for screenshots, for people to look at."""


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(SmallReader(), limits=Limits(rate=0.0, max_bytes=300_000)) as where:
        yield where


class Visit:
    """One window; what it asks of other hosts, and what goes wrong in it, is kept."""

    def __init__(self, browser, address: str, **options) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.troubles, self.foreign = [], []
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self.hear)
        self.page.on("request", lambda request: self.see(request.url, address))
        self.page.goto(address)

    def hear(self, message) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.troubles.append(message.text)

    def see(self, url: str, address: str) -> None:
        if not url.startswith((address, "data:", "blob:")):
            self.foreign.append(url)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def draw(self, *strokes: list[tuple[float, float]]) -> None:
        """Strokes with the mouse, in shares of the drawing area."""
        box = self.page.locator("#pad").bounding_box()
        for stroke in strokes:
            points = [
                (box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in stroke
            ]
            self.page.mouse.move(*points[0])
            self.page.mouse.down()
            for point in points[1:]:
                self.page.mouse.move(*point, steps=8)
            self.page.mouse.up()

    def answered(self) -> None:
        self.page.locator("#lines .line").first.wait_for()
        self.page.locator("body:not(.waiting)").wait_for()

    def photograph(self, name: str) -> None:
        if PICTURES:
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)


@pytest.fixture
def visit(browser, address: str):
    visits = []

    def begin(**options) -> Visit:
        visits.append(Visit(browser, address, **options))
        return visits[-1]

    yield begin
    for each in visits:
        each.context.close()
        assert each.troubles == []
        assert each.foreign == []


SEVEN = [(0.2, 0.2), (0.4, 0.2), (0.3, 0.8)]
ONE = [(0.7, 0.2), (0.7, 0.8)]


def image_file(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "number.png"
    file.write_bytes(png(*lines))
    return file


def is_painted(page, selector: str) -> bool:
    """Whether a canvas shows more than one colour."""
    script = """(canvas) => new Set(new Uint32Array(canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size > 1"""
    return page.locator(selector).evaluate(script)


def test_what_is_drawn_is_read_and_shown(visit):
    window = visit()
    window.photograph("empty")
    window.draw(SEVEN, ONE)
    window.answered()
    assert window.text("#text") == "71"
    assert "that all of it is right" in window.text("#sure")
    assert window.page.locator(".digits button").count() == 2
    assert is_painted(window.page, ".seen")
    assert "cut into patches" in window.text("figcaption >> nth=0")
    window.photograph("drawn")
    window.page.locator("#undo").click()
    window.page.locator("#text", has_text="7").wait_for()
    window.page.locator(".digits button").nth(1).wait_for(state="detached")
    window.page.locator("#clear").click()
    assert "Nothing to read yet" in window.text("#text")
    assert window.page.locator(".line").count() == 0


@pytest.mark.slow
def test_a_finger_draws_as_a_mouse_does(visit):
    window = visit(has_touch=True, viewport={"width": 390, "height": 844}, is_mobile=True)
    wire = window.context.new_cdp_session(window.page)
    box = window.page.locator("#pad").bounding_box()
    way = [(0.5, 0.2), (0.5, 0.5), (0.5, 0.8)]
    points = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]} for x, y in way]
    for kind, at in zip(("touchStart", "touchMove", "touchMove"), points, strict=True):
        wire.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    wire.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    window.answered()
    assert window.text("#text") == "1"
    assert window.page.evaluate("scrollY") == 0
    window.photograph("finger")


def test_where_it_looked_is_shown_for_each_digit(visit, tmp_path):
    window = visit()
    window.page.set_input_files("#file", image_file(tmp_path, "4071", "99"))
    window.answered()
    assert window.text("#text") == "4071\n99"
    assert window.page.locator(".line").count() == 2
    assert is_painted(window.page, "#original")
    first = window.page.locator(".line").first
    before = first.locator(".seen").evaluate("(canvas) => canvas.toDataURL()")
    first.locator(".digits button").nth(2).click()
    assert first.locator(".digits button").nth(2).get_attribute("aria-pressed") == "true"
    said = first.locator("figcaption").inner_text()
    assert said.startswith("Where it looked as it wrote the 7")
    assert "of 16" in said
    column = int(said.split("column ")[1].split(" ")[0])
    assert 9 <= column <= 12
    assert first.locator(".seen").evaluate("(canvas) => canvas.toDataURL()") != before
    window.photograph("looked")


@pytest.mark.slow
def test_a_number_is_shown_as_it_is_written(visit, tmp_path):
    window = visit()
    window.page.set_input_files("#file", image_file(tmp_path, "40"))
    window.answered()
    window.page.get_by_role("button", name="Watch it being written").click()
    for digit in "40":
        window.page.locator("figcaption", has_text=f"as it wrote the {digit}").wait_for()
    assert window.page.locator(".unwritten").count() == 0


def test_what_cannot_be_read_is_said_and_the_next_image_is_read(visit, tmp_path):
    window = visit()
    wrong = tmp_path / "text.png"
    wrong.write_text("no image")
    window.page.set_input_files("#file", wrong)
    window.page.get_by_role("alert").wait_for()
    assert "no image that can be read" in window.text("#problem")
    window.photograph("refused")
    wrong.write_bytes(bytes(400_000))
    window.page.set_input_files("#file", wrong)
    window.page.locator("#problem", has_text="more than 300000 bytes").wait_for()
    window.page.set_input_files("#file", image_file(tmp_path, "5"))
    window.answered()
    assert window.text("#text") == "5"
    assert not window.page.locator("#problem").is_visible()


@pytest.mark.slow
def test_blank_paper_is_no_number(visit, tmp_path):
    window = visit()
    file = tmp_path / "blank.png"
    number_image("1").point(lambda _: 250).save(file)
    window.page.set_input_files("#file", file)
    window.page.locator("#text", has_text="No number was found").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["drop", "paste"])
def test_an_image_is_dropped_or_pasted(visit, way):
    window = visit()
    script = """async ([way, bytes]) => {
      const data = new DataTransfer();
      data.items.add(new File([new Uint8Array(bytes)], "n.png", {type: "image/png"}));
      document.body.dispatchEvent(way === "drop"
        ? new DragEvent("drop", {dataTransfer: data, bubbles: true})
        : new ClipboardEvent("paste", {clipboardData: data, bubbles: true}));
    }"""
    window.page.evaluate(script, [way, list(png("86"))])
    window.answered()
    assert window.text("#text") == "86"


@pytest.mark.parametrize("scheme", [pytest.param("light", marks=pytest.mark.slow), "dark"])
def test_it_fits_a_narrow_screen(visit, tmp_path, scheme):
    window = visit(viewport={"width": 320, "height": 640}, color_scheme=scheme)
    window.page.set_input_files("#file", image_file(tmp_path, "407123456", "99"))
    window.answered()
    window.page.locator(".digits button").first.click()
    window.photograph(f"narrow-{scheme}")
    assert window.page.evaluate("document.documentElement.scrollWidth") <= 320


def test_it_is_used_with_the_keyboard_alone(visit, tmp_path):
    window = visit()
    page, seen = window.page, []
    page.set_input_files("#file", image_file(tmp_path, "40"))
    window.answered()
    page.locator("body").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                "document.activeElement.id || document.activeElement.className"
                " || document.activeElement.getAttribute('aria-label')"
            )
        )
    assert seen[:4] == ["skip", "pad", "file", "camera"]
    assert page.locator("#camera").get_attribute("capture") == "environment"
    first = page.locator(".digits button").first
    first.focus()
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Space")
    assert first.get_attribute("aria-pressed") == "false"


def test_everything_that_acts_has_a_name_and_the_answer_is_announced(visit, tmp_path):
    window = visit()
    window.page.set_input_files("#file", image_file(tmp_path, "40"))
    window.answered()
    nameless = window.page.evaluate(
        """() => [...document.querySelectorAll("button, input:not([hidden]), canvas, a")]
        .filter((each) => !(each.innerText || each.getAttribute("aria-label") ||
                            each.labels?.[0]?.innerText)).map((each) => each.outerHTML)"""
    )
    assert nameless == []
    assert window.page.locator("[aria-live=polite] #text").inner_text() == "40"
    assert window.page.locator("html").get_attribute("lang") == "en"


def test_a_token_is_asked_for_and_kept_out_of_addresses(browser, tmp_path):
    secret = "a-token-of-sixteen-and-more"
    with served(limits=Limits(rate=0.0), token=secret) as where:
        window = Visit(browser, where)
        urls = []
        window.page.on("request", lambda request: urls.append(request.url))
        window.page.set_input_files("#file", image_file(tmp_path, "40"))
        window.page.get_by_label("asks for a token").fill(secret)
        window.photograph("token")
        window.page.keyboard.press("Enter")
        window.answered()
        assert window.text("#text") == "40"
        assert secret not in str(urls)
        window.context.close()


@pytest.mark.slow
def test_a_service_that_has_gone_is_said_to_have_gone(browser, tmp_path):
    with served() as where:
        window = Visit(browser, where)
    window.page.set_input_files("#file", image_file(tmp_path, "40"))
    window.page.locator("#problem", has_text="does not answer").wait_for()
    window.context.close()


@pytest.mark.slow
def test_the_documentation_is_drawn_without_anybody_else(visit, address):
    window = visit()
    window.page.goto(f"{address}/docs")
    window.page.locator("code", has_text="POST /v1/read").wait_for()
    assert window.page.locator("h2", has_text="InferRequest").count() == 0
    window.photograph("docs")
