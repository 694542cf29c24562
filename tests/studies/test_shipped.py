"""The studies that the project ships, and their committed results."""

from pathlib import Path

import pytest
import torch

from vitreous.cost.parameters import count_parameters
from vitreous.cost.plan import plan
from vitreous.studies.book import brought_up_to_date
from vitreous.studies.catalogue import read_study, results_of, study_files
from vitreous.studies.cell import measure
from vitreous.studies.lines import LINES
from vitreous.studies.report import TEXT, markdown, read_summary

FOLDER = Path(__file__).parents[2] / "studies"
STUDIES = study_files(FOLDER)
MEASURED = [name for name, path in STUDIES.items() if (results_of(path) / LINES).exists()]
UNFINISHED: set[str] = set()
"""Studies of which some cells are committed and some are still to be run."""


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_bears_its_files_name_and_says_how_to_run_it(name: str):
    study = read_study(STUDIES[name])
    assert study.name == name
    text = STUDIES[name].read_text()
    assert f"    vitreous study {name}\n" in text
    assert study.question.endswith("?")


@pytest.mark.parametrize("name", MEASURED)
def test_committed_results_are_of_the_study_and_whole(name: str):
    study, out = read_study(STUDIES[name]), results_of(STUDIES[name])
    summary = read_summary(out)
    assert set(summary.header.arms) == {study.base_name, *study.arms}
    assert not summary.failed
    done = {(line.arm, line.seed) for line in summary.lines}
    asked = {(cell.arm, cell.seed) for cell in study.cells}
    assert done < asked if name in UNFINISHED else done == asked
    current = brought_up_to_date(summary.lines, list(study.cells))
    assert all(line.cell == study.cell(line.arm, line.seed).name for line in current)


@pytest.mark.parametrize("name", MEASURED)
def test_a_committed_report_is_what_its_lines_say(name: str):
    out = results_of(STUDIES[name])
    figures = [path.stem for path in out.glob("*.png")]
    text = (out / TEXT).read_text()
    order = sorted(figures, key=lambda figure: text.index(f"({figure}.png)"))
    assert markdown(read_summary(out), order) == text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["norm", "scaling"])
def test_a_committed_cell_comes_out_again(name: str, tmp_path: Path):
    """To the last bit on the machine that it was made on; elsewhere rounding differs a little."""
    study = read_study(STUDIES[name])
    line = next(line for line in read_summary(results_of(STUDIES[name])).lines if line.seed == 0)
    parts = study.cell(line.arm, line.seed).parts
    found = measure(parts, line.seed, tmp_path, torch.device("cpu"))["measures"]
    assert found.keys() == line.measures.keys()
    for what, value in line.measures.items():
        assert found[what] == pytest.approx(value, abs=0.01, rel=0.01), what


def test_patches_of_equal_cost_cost_the_same_within_a_tenth():
    study = read_study(STUDIES["patch-size"])
    base = plan(study.base).multiply_adds
    equal = [arm for arm in study.arms if "equal cost" in arm]
    assert len(equal) == 3
    for arm in equal:
        cost = plan(study.cell(arm, 0).parts[0]).multiply_adds
        assert cost == pytest.approx(base, rel=0.1), arm


def test_the_convolutional_network_has_as_many_parameters_as_the_transformer():
    study = read_study(STUDIES["data-size"])
    ours = count_parameters(study.base)
    assert count_parameters(study.cell("convolutions, 500", 0).parts[0]) == pytest.approx(
        ours, rel=0.02
    )
