"""The search over a recipe."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.training.small import CONFIG, RECIPE, digits, make_job
from vitreous.errors import ConfigError, RunError
from vitreous.studies.tune import Range, best_of, read_space, tune
from vitreous.training import run
from vitreous.training.job import Job

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SPACE = {"learning_rate": Range(1e-3, 1e-1), "batch_size": Range(choices=(4, 8))}


def test_trials_go_on_where_they_stopped_and_the_best_is_the_best(tmp_path: Path):
    first = list(tune(make_job(), tmp_path, SPACE, trials=2))
    more = list(tune(make_job(), tmp_path, SPACE, trials=4))
    assert [trial.number for trial in (*first, *more)] == [0, 1, 2, 3]
    finished = [t for t in (*first, *more) if t.state == "finished"]
    best = best_of(tmp_path)
    assert best is not None
    assert best.validation_accuracy == max(t.validation_accuracy or 0 for t in finished)
    assert set(best.changes) == set(SPACE)


def test_the_test_set_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_):
        raise AssertionError("the test set was scored")

    monkeypatch.setattr(run, "score_test", refuse)
    assert len(list(tune(make_job(), tmp_path, SPACE, trials=2))) == 2


def test_a_trial_scores_what_validation_says(tmp_path: Path):
    space = {"learning_rate": Range(choices=(0.02,))}
    (trial,) = tune(make_job(), tmp_path, space, trials=1)
    result = run.train(
        CONFIG, digits(), recipe=replace(RECIPE, learning_rate=0.02), out=tmp_path / "run"
    )
    assert trial.validation_accuracy == result.validation_accuracy
    assert trial.changes == {"learning_rate": 0.02}


def test_a_trial_that_diverges_fails_alone(tmp_path: Path):
    job = make_job(clip=None)
    trials = list(tune(job, tmp_path, {"learning_rate": Range(choices=(1e30,))}, trials=2))
    assert [trial.state for trial in trials] == ["failed", "failed"]
    assert best_of(tmp_path) is None


def test_a_search_of_something_else_is_refused(tmp_path: Path):
    list(tune(make_job(), tmp_path, SPACE, trials=1))
    others: list[Job] = [make_job(seed=1), make_job(epochs=5), make_job(dataset=digits(seed=3))]
    for job in others:
        with pytest.raises(RunError, match="a search of another model"):
            next(tune(job, tmp_path, SPACE, trials=2))
    with pytest.raises(RunError, match="or space is there"):
        next(tune(make_job(), tmp_path, {"warmup": Range(0.0, 0.5)}, trials=2))


def test_without_optuna_the_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(RunError, match=r"pip install 'vitreous\[tune\]'"):
        next(tune(make_job(), tmp_path, SPACE, trials=1))


def test_ranges_are_read_by_the_settings_type():
    space = read_space(
        {"learning_rate": "1e-4..1e-2", "batch_size": "64,128", "epochs": "2..5", "clip": "none,1"}
    )
    assert space["learning_rate"] == Range(1e-4, 1e-2)
    assert space["batch_size"].choices == (64, 128)
    assert space["epochs"] == Range(2.0, 5.0, whole=True)
    assert space["clip"].choices == (None, 1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"learning_rat": "1..2"}, "no setting is called 'learning_rat'; did you mean"),
        ({"learning_rate": "1e-2..1e-4"}, "write a range of numbers as LOW..HIGH, the lower first"),
        ({"learning_rate": "low..high"}, "learning_rate=low is not a number"),
        ({"optimizer": "adamw..muon"}, "write a range of numbers"),
        ({"batch_size": "64,many"}, "batch_size=many is not a whole number"),
    ],
)
def test_a_range_that_is_none_says_so(words: dict[str, str], sentence: str):
    with pytest.raises(ConfigError, match=sentence):
        read_space(words)
