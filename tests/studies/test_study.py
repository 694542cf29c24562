"""What a study is, before anything is run."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.studies.small_study import make_study
from vitreous.config import preset
from vitreous.errors import ConfigError
from vitreous.studies.scores import RandomScores
from vitreous.studies.study import NULL_SEED, Study


def test_every_arm_has_every_seed_and_the_null_arm_others(tmp_path: Path):
    study = make_study(tmp_path)
    cells = [(cell.arm, cell.seed) for cell in study.cells]
    assert cells == [
        *[("learned", 0), ("none", 0), ("faster", 0), ("learned again", NULL_SEED)],
        *[("learned", 1), ("none", 1), ("faster", 1), ("learned again", NULL_SEED + 1)],
    ]


def test_an_arm_is_the_base_with_its_changes(tmp_path: Path):
    study = make_study(tmp_path)
    base, none, faster = (study.cell(arm, 0).parts for arm in ("learned", "none", "faster"))
    assert none == (replace(base[0], positions="none"), base[1], base[2])
    assert faster == (base[0], replace(base[1], learning_rate=0.05), base[2])


def test_a_cells_name_is_its_settings_and_seed_and_not_its_arm(tmp_path: Path):
    study = make_study(tmp_path)
    renamed = make_study(tmp_path, arms={"without": {"positions": "none"}})
    assert study.cell("none", 3).name == renamed.cell("without", 3).name
    names = {study.cell(arm, seed).name for arm in ("learned", "none", "faster") for seed in (0, 1)}
    assert len(names) == 6
    null = study.cell(study.null_name, NULL_SEED)
    assert null.parts == study.cell("learned", 0).parts
    assert null.name != study.cell("learned", 0).name


@pytest.mark.parametrize(
    "changes",
    [
        {"recipe": "fast"},
        {"base": replace(preset("digits"), depth=1)},
    ],
)
def test_any_setting_changes_the_name(tmp_path: Path, changes):
    study = make_study(tmp_path)
    other = make_study(tmp_path, **changes)
    assert study.cell("learned", 0).name != other.cell("learned", 0).name


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"arms": {"a": {"positons": "none"}}},
            "arm 'a': no setting is called 'positons'; did you",
        ),
        (
            {"arms": {"a": {"positions": "learned"}}},
            "arm 'a': it changes nothing: positions='learn",
        ),
        ({"arms": {"a": {}}}, "arm 'a' does not differ from 'learned'"),
        (
            {"arms": {"a": {"positions": "none"}, "b": {"positions": "none"}}},
            "arm 'b' does not differ from 'a'",
        ),
        ({"arms": {"a": {"width": 7}}}, "arm 'a': width=7 does not split over heads=2"),
        ({"arms": {}}, "needs arms"),
        ({"arms": {"learned": {"positions": "none"}}}, "needs arms beside its base"),
        ({"seeds": (0, 1, 1)}, "seed 1 is given twice"),
        ({"seeds": ()}, "has no seeds"),
        ({"seeds": (-1, 0)}, "seeds are 0 to 999"),
        ({"seeds": (0, 1000)}, "those above are the null arm's"),
        ({"recipe": "fsat"}, "no recipe is called 'fsat'; did you mean 'fast'"),
        ({"against": {"none": "fastr"}}, "no arm is called 'fastr'; did you mean 'faster'"),
        ({"against": {"none": "none"}}, "'none' cannot be compared with 'none'"),
        ({"against": {"learned": "none"}}, "'learned' cannot be compared with 'none'"),
        ({"series": {"line": {"nane": 1.0}}}, "no arm is called 'nane'; did you mean 'none'"),
    ],
)
def test_a_study_that_makes_no_sense_says_so(tmp_path: Path, changes, sentence: str):
    with pytest.raises(ConfigError, match=sentence):
        make_study(tmp_path, **changes)


def test_an_arm_that_others_are_compared_with_is_itself_compared_with_nothing(tmp_path: Path):
    study = make_study(tmp_path, against={"none": "faster"})
    assert study.contrasts == {"none": "faster"}
    both = make_study(tmp_path, against={"none": "faster", "faster": "learned"})
    assert both.contrasts == {"none": "faster", "faster": "learned"}
    assert make_study(tmp_path).contrasts == {"none": "learned", "faster": "learned"}


def test_a_study_of_scores_knows_their_settings_only():
    study = Study(name="s", question="?", base=RandomScores(), arms={"plain": {"scaled": False}})
    assert study.cell("plain", 0).parts == (RandomScores(scaled=False),)
    with pytest.raises(ConfigError, match="no setting is called 'depth'"):
        replace(study, arms={"deep": {"depth": 2}})
