"""What a study's report says, and what it must not say."""

import json
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.figures.page_reader import Page
from vitreous.errors import RunError
from vitreous.studies.cell import pack
from vitreous.studies.lines import LINES, Header, Line, write_lines
from vitreous.studies.report import PAGE, TEXT, read_summary, render, verdicts
from vitreous.studies.study import NULL_SEED

FLOOR = 0.1135
LEARNED = [0.90, 0.91, 0.92, 0.93, 0.94, 0.95, 0.91, 0.92]
DROP = [0.05, 0.06, 0.04, 0.05, 0.07, 0.05, 0.06, 0.05]
HEADER = Header(
    study="small",
    question="Are <positions> worth it?",
    base="learned",
    null="learned again",
    arms={"learned": {}, "none": {"positions": "none"}, "rotary": {"positions": "rotary"}},
    contrasts={"none": "learned", "rotary": "learned"},
    measure="test_accuracy",
    along="",
    series={},
    note="",
    code="abc",
)


def line(arm: str, seed: int, accuracy: float, **changes: Any) -> Line:
    wrong = range(round(100 * (1 - accuracy)))
    values: dict[str, Any] = {
        "cell": f"{arm}-{seed}",
        "arm": arm,
        "seed": seed,
        "settings": {},
        "measures": {"test_accuracy": accuracy, "floor": FLOOR, "parameters": 1234},
        "curves": {"validation_accuracy": [accuracy - 0.2, accuracy]},
        "n": 100,
        "wrong": pack(list(wrong), 100),
        "data_sha256": {"test_images": "a", "test_labels": "b"},
        "train_seconds": 12.5,
        "machine": "a machine, 2 cores",
        "versions": {"torch": "2.13.0"},
    }
    return Line(**values | changes)


def lines(n: int) -> list[Line]:
    found = []
    for seed in range(n):
        found += [
            line("learned", seed, LEARNED[seed]),
            line("none", seed, LEARNED[seed] - DROP[seed]),
            line("rotary", seed, LEARNED[seed] + (0.01 if seed % 2 else -0.01)),
            line("learned again", NULL_SEED + seed, LEARNED[-1 - seed]),
        ]
    return found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_lines(tmp_path, HEADER, lines(8))
    return tmp_path


def text(out: Path) -> str:
    return (out / TEXT).read_text()


def test_a_report_has_every_arm_contrast_and_figure(out: Path):
    render(out)
    page = Page((out / PAGE).read_text())
    assert page.scripts == 0
    assert page.open == []
    assert (out / PAGE).read_text().count("<svg") == 3
    for name in ("curves", "seeds", "differences"):
        assert f"({name}.png)" in text(out)
        with Image.open(out / f"{name}.png") as picture:
            assert len(set(picture.convert("L").tobytes())) > 20, f"{name} is not empty"
    assert "none − learned" in text(out)
    assert "-5.38 points" in text(out)
    assert escape(HEADER.question) in (out / PAGE).read_text()
    assert HEADER.question not in (out / PAGE).read_text()


def test_the_floor_and_n_stand_beside_every_accuracy(out: Path):
    render(out)
    for arm in HEADER.arms:
        (row,) = re.findall(rf"^\| {arm} \| (.*)$", text(out), re.MULTILINE)
        assert row.startswith("8 |")
        assert "0.1135" in row


def test_a_difference_is_paired_by_seed(out: Path):
    summary = read_summary(out)
    none = summary.contrasts[0]
    assert none.paired.differences == pytest.approx([-drop for drop in DROP])
    assert none.paired.difference.mean == pytest.approx(-sum(DROP) / 8)


def test_pairs_are_found_by_seed_and_not_by_place(out: Path):
    before = read_summary(out)
    write_lines(out, HEADER, list(reversed(lines(8))))
    assert read_summary(out).to_dict() == before.to_dict()
    some = [one for one in lines(8) if (one.arm, one.seed) != ("learned", 0)]
    write_lines(out, HEADER, some)
    fewer = read_summary(out).contrasts[0].paired
    assert fewer.differences == pytest.approx([-drop for drop in DROP[1:]])


def test_the_null_arm_is_the_base_on_other_seeds(out: Path):
    null = read_summary(out).null
    assert null is not None
    expected = [LEARNED[-1 - i] - LEARNED[i] for i in range(8)]
    assert null.paired.differences == pytest.approx(expected)
    assert "A difference of nothing: learned again against learned" in text_of(out)


def text_of(out: Path) -> str:
    return " ".join(verdicts(read_summary(out)))


def test_without_a_null_arm_the_report_says_so(out: Path):
    write_lines(out, HEADER, [one for one in lines(8) if one.seed < NULL_SEED])
    assert "There is no null arm yet" in text_of(out)


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_the_word_is_refused_where_no_outcome_could_earn_it(out: Path, n: int):
    """Two contrasts need seven pairs."""
    write_lines(out, HEADER, lines(n))
    told = text_of(out)
    assert "ignificant" not in told
    assert f"{n} pairs cannot tell: 7 are needed for 2 contrasts" in told


def test_the_word_is_given_and_withheld_by_the_numbers(out: Path):
    none, rotary, *_ = verdicts(read_summary(out))
    assert "Significant at 5 %" in none
    assert "sign-flip p = 0.0078, Holm over 2: 0.0156" in none
    assert "Not significant at 5 %" in rotary


def test_holm_counts_the_contrasts_and_not_the_null_arm(out: Path):
    summary = read_summary(out)
    assert [one.family for one in summary.contrasts] == [2, 2]
    assert summary.contrasts[0].p_holm == pytest.approx(2 * summary.contrasts[0].paired.p)


def test_one_seed_has_no_spread(out: Path):
    write_lines(out, HEADER, lines(1))
    render(out)
    assert text(out).count("one seed: none") == 6
    assert "no interval" in text(out)
    assert read_summary(out).to_dict()["arms"][0]["low"] is None


def test_mcnemar_is_labelled_as_another_question(out: Path):
    render(out)
    assert "Another question: do the two models of the first seed differ" in text(out)
    assert "It says nothing about other seeds" in text(out)
    images = read_summary(out).contrasts[0].images
    assert images is not None
    assert (images.only_first_wrong, images.only_second_wrong) == (5, 0)


def test_mcnemar_is_not_asked_of_other_images(out: Path):
    others = [
        replace(one, data_sha256={"test_images": "z"}) if one.arm == "none" else one
        for one in lines(8)
    ]
    write_lines(out, HEADER, others)
    assert read_summary(out).contrasts[0].images is None


def test_a_study_that_runs_has_a_report_of_what_there_is(out: Path):
    write_lines(out, HEADER, lines(8)[:2])
    summary = render(out)
    assert [arm.arm for arm in summary.arms] == ["learned", "none"]
    assert [one.arm for one in summary.contrasts] == ["none"]


def test_failed_cells_are_told_and_not_counted(out: Path):
    broken = line("none", 7, 0.0, measures={}, error="the run diverged <at once>")
    write_lines(out, HEADER, [*(one for one in lines(8) if one.cell != "none-7"), broken])
    summary = render(out)
    assert [arm.n for arm in summary.arms] == [8, 7, 8]
    assert "1 cells failed, among them none, seed 7: the run diverged" in text(out)
    assert "<at once>" not in (out / PAGE).read_text()


def test_nothing_yet_is_an_error(out: Path):
    write_lines(out, HEADER, [])
    with pytest.raises(RunError, match="no cell of a study has ended"):
        render(out)
    (out / LINES).unlink()
    with pytest.raises(RunError, match="no cell of a study has ended"):
        render(out)


def test_programs_get_every_number(out: Path):
    told = json.loads(json.dumps(read_summary(out).to_dict(), allow_nan=False))
    arm, contrast = told["arms"][1], told["contrasts"][0]
    assert {"n", "mean", "low", "high", "values"} <= set(arm)
    assert {"arm", "base", "mean_difference", "low", "high", "p", "p_holm"} <= set(contrast)
    assert arm["mean"] == pytest.approx(sum(arm["values"]) / arm["n"])
    assert contrast["low"] < contrast["mean_difference"] < contrast["high"] < 0
    assert told["null"]["arm"] == "learned again"


def test_the_same_lines_give_the_same_page(out: Path):
    render(out)
    before = [(out / name).read_bytes() for name in (PAGE, TEXT, "curves.png")]
    render(out)
    assert [(out / name).read_bytes() for name in (PAGE, TEXT, "curves.png")] == before


def test_a_notebook_shows_the_tables(out: Path):
    shown = read_summary(out)._repr_html_()
    assert "none − learned" in shown
    assert "<positions>" not in shown


def test_arms_along_an_axis_are_drawn_in_its_order(out: Path):
    header = replace(HEADER, along="size", series={"all": {"none": 4.0, "learned": 16.0}})
    write_lines(out, header, lines(8))
    render(out)
    assert "(along.png)" in text(out)
