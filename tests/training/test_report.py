import json
import re
from html import escape
from pathlib import Path

import pytest

from tests.figures.page_reader import Page
from tests.training.small import make_job, whole
from vitreous.errors import RunError
from vitreous.protocol import ledger
from vitreous.training.folder import LEDGER, MISTAKES, REPORT, RESULT, RUN, WRONG, record_test
from vitreous.training.report import render_report
from vitreous.training.run import fresh_state, score_test


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "a <b> run"
    whole(make_job(), folder)
    return folder


def html(out: Path) -> str:
    return (out / REPORT).read_text(encoding="utf-8")


def test_the_page_stands_on_its_own(out: Path):
    page = Page(html(out))
    assert page.open == []
    assert page.scripts == 0
    assert page.outside == []


def test_it_says_what_the_result_says(out: Path):
    result = json.loads((out / RESULT).read_text())
    text = Page(html(out)).text
    assert f"{result['correct']} of {result['n']} unseen test images" in text
    assert f"{result['test_accuracy']:.2%}" in text
    assert f"{result['floor']:.2%}" in text
    for wanted in (
        f"{result['test_accuracy']:.4f} (n = {result['n']})",
        f"{result['floor']:.4f}",
        f"{result['validation_accuracy']:.4f} (n = {result['validation_n']})",
        f"{result['parameters']:,}",
        f"{result['epochs']} ({result['steps']} steps)",
        result["kept"],
        result["weights_sha256"],
    ):
        assert wanted in text


def test_it_shows_recipe_model_data_and_machine(out: Path):
    job = json.loads((out / RUN).read_text())
    text = Page(html(out)).text
    for part in ("recipe", "config", "data_sha256"):
        for name, value in job[part].items():
            assert name in text
            assert str(value) in text
    assert job["machine"] in text


def test_every_look_at_the_test_set_is_shown(out: Path):
    job = make_job()
    tested = score_test(fresh_state(job).working.master, job.dataset, job.device)
    for _ in range(2):
        record_test(out, "evaluate", tested)
    render_report(out)
    text = Page(html(out)).text
    touches = ledger.read(out / LEDGER)
    assert len(touches) == 3
    assert text.count(f"{tested.correct} of {tested.n}") >= 2
    assert len(re.findall(r"(train|evaluate)\s*\d+ of 10", text)) == 3


def test_without_a_ledger_there_is_no_report(out: Path, tmp_path: Path):
    for path in out.iterdir():
        if path.name != LEDGER:
            (tmp_path / path.name).write_bytes(path.read_bytes())
    with pytest.raises(RunError, match="the test ledger is empty"):
        render_report(tmp_path)


def test_names_from_outside_cannot_become_markup(out: Path):
    job = json.loads((out / RUN).read_text())
    job["machine"] = job["source"] = job["note"] = "<script>alert('x')</script>"
    plain = (out / RUN).read_text()
    (out / RUN).write_text(json.dumps(job))
    render_report(out)
    (out / RUN).write_text(plain)
    page = Page(html(out))
    assert page.scripts == 0
    assert page.open == []
    assert escape("a <b> run") in html(out)


def test_the_mistakes_that_are_shown_are_mistakes(out: Path):
    shown = json.loads((out / MISTAKES).read_text())
    result = json.loads((out / RESULT).read_text())
    labels, names = make_job().dataset.test_labels, make_job().dataset.class_names
    assert len(shown) == result["n"] - result["correct"] > 0
    for one in shown:
        assert one["truth"] == names[labels[one["index"]]] != one["read"]
    assert json.loads((out / WRONG).read_text()) == [one["index"] for one in shown]


def test_the_same_run_gives_the_same_page(out: Path):
    render_report(out)
    before = html(out)
    render_report(out)
    assert html(out) == before
