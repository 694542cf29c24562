"""Running a study: nothing twice, nothing lost, nothing mixed."""

import json
from dataclasses import replace
from pathlib import Path

import filelock
import numpy as np
import pytest

from tests.studies.small_study import InThisProcess, lines_of, make_study, run_whole
from tests.training.small import digits, write_npz
from vitreous.errors import ConfigError, DataError, RunError
from vitreous.studies import book, lines, runner
from vitreous.studies.cell import unpack
from vitreous.studies.lines import LINES, Line
from vitreous.studies.material import load_whole
from vitreous.studies.runner import CELLS, LOCK, Progress
from vitreous.training import run
from vitreous.training.run import train

TIMES = ("seconds", "train_seconds", "started")


def content(out: Path) -> dict[tuple[str, int], dict]:
    """What the lines say, but for the clock."""
    rows = [json.loads(row) for row in (out / LINES).read_text().splitlines()[1:]]
    return {
        (row["arm"], row["seed"]): {k: v for k, v in row.items() if k not in TIMES} for row in rows
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that was run to its end, and its data."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "render_report", lambda out: None)
        run_whole(make_study(folder), folder / "out")
    return folder


def test_every_cell_has_a_line(whole: Path):
    found = lines_of(whole / "out")
    assert set(found) == {(cell.arm, cell.seed) for cell in make_study(whole).cells}
    assert not any(line.error for line in found.values())
    assert not (whole / "out" / CELLS).exists()


def test_a_cell_is_what_train_gives(whole: Path, tmp_path: Path):
    study = make_study(whole)
    config, recipe, material = study.cell("none", 1).parts
    result = train(config, material.source, recipe=recipe, seed=1, out=tmp_path, device="cpu")
    line = lines_of(whole / "out")["none", 1]
    assert line.measures["test_accuracy"] == result.test_accuracy
    assert line.measures["test_loss"] == result.test_loss
    assert len(unpack(line.wrong, line.n)) == result.n - result.correct
    assert line.curves["validation_accuracy"][-1] == pytest.approx(result.validation_accuracy)


def test_finished_cells_are_never_run_again(whole: Path):
    launcher, before = InThisProcess(), content(whole / "out")
    run_whole(make_study(whole), whole / "out", launcher)
    assert launcher.launched == []
    assert content(whole / "out") == before


def test_more_seeds_run_only_what_is_new(whole: Path):
    launcher = InThisProcess()
    run_whole(make_study(whole, seeds=(0, 1, 2)), whole / "out", launcher)
    assert len(launcher.launched) == 4
    assert set(lines_of(whole / "out")) >= {("none", 2), ("learned again", 1002), ("none", 0)}


def test_a_study_that_stopped_goes_on_and_comes_to_the_same(whole: Path, tmp_path: Path):
    study = make_study(whole)
    run_whole(study, tmp_path, InThisProcess(most=3))
    assert len(lines_of(tmp_path)) == 3
    second = InThisProcess()
    run_whole(study, tmp_path, second)
    assert len(second.launched) == 5
    assert content(tmp_path) == {k: v for k, v in content(whole / "out").items() if k[1] % 1000 < 2}


def test_progress_counts_to_the_end(whole: Path, tmp_path: Path):
    events = run_whole(make_study(whole), tmp_path)
    told = [event for event in events if isinstance(event, Progress)]
    assert told[0].done == 0
    assert told[0].running == ("learned, seed 0: epoch 0 of 3",)
    assert (told[-1].done, told[-1].total, told[-1].running) == (8, 8, ())
    assert sum(isinstance(event, Line) for event in events) == 8


def failing(study, arm: str):
    """The study, one of whose arms diverges at once."""
    arms = {**study.arms, arm: {"learning_rate": 1e30, "clip": None}}
    return replace(study, arms=arms)


def test_a_cell_that_fails_is_reported_and_the_rest_goes_on(whole: Path, tmp_path: Path):
    study = failing(make_study(whole, seeds=(0,)), "broken")
    run_whole(study, tmp_path)
    found = lines_of(tmp_path)
    assert "the run diverged" in found["broken", 0].error
    assert not found["broken", 0].measures
    assert all(found[cell.arm, cell.seed].measures for cell in study.cells if cell.arm != "broken")
    again = InThisProcess()
    run_whole(study, tmp_path, again)
    assert len(again.launched) == 1, "only the failed cell is tried again"


def test_results_of_other_settings_are_not_mixed(whole: Path, tmp_path: Path):
    run_whole(make_study(whole), tmp_path, InThisProcess(most=2))
    before = (tmp_path / LINES).read_bytes()
    study = make_study(whole)
    changed = replace(study, recipe=replace(study.recipe, epochs=2))
    with pytest.raises(RunError, match=r"2 cells there are of other settings .*epochs was 3, is 2"):
        run_whole(changed, tmp_path)
    assert (tmp_path / LINES).read_bytes() == before


def test_a_setting_that_is_newer_than_a_line_was_at_its_default(whole: Path, tmp_path: Path):
    study = make_study(whole)
    run_whole(study, tmp_path, InThisProcess(most=2))
    heading, *rows = (tmp_path / LINES).read_text().splitlines()
    old = [json.loads(row) for row in rows]
    for row in old:
        assert row["settings"].pop("drop_path") == 0.1, "not the default"
        assert row["settings"].pop("token_std") == 0.02, "the default"
        row["cell"] = "an older name"
    first, second = old
    first["settings"]["drop_path"] = second["settings"]["drop_path"] = 0.1
    text = "\n".join([heading, json.dumps(first), json.dumps(second)]) + "\n"
    (tmp_path / LINES).write_text(text)
    launcher = InThisProcess()
    run_whole(study, tmp_path, launcher)
    assert len(launcher.launched) == 6
    del second["settings"]["drop_path"]
    text = "\n".join([heading, json.dumps(first), json.dumps(second)]) + "\n"
    (tmp_path / LINES).write_text(text)
    with pytest.raises(RunError, match=r"of other settings .*drop_path was None, is 0\.1"):
        run_whole(study, tmp_path)


def test_results_of_other_code_are_not_mixed(whole: Path, tmp_path: Path, monkeypatch):
    run_whole(make_study(whole), tmp_path, InThisProcess(most=2))
    before = (tmp_path / LINES).read_bytes()
    monkeypatch.setattr(book, "code_version", lambda kind: "another")
    with pytest.raises(RunError, match=r"made by other code \(version .*, now another\)"):
        run_whole(make_study(whole), tmp_path)
    assert (tmp_path / LINES).read_bytes() == before


def test_results_of_other_data_are_not_mixed(tmp_path: Path):
    study = make_study(tmp_path)
    run_whole(study, tmp_path / "out", InThisProcess(most=2))
    before = (tmp_path / "out" / LINES).read_bytes()
    write_npz(digits(seed=1), tmp_path / "data.npz")
    load_whole.cache_clear()
    with pytest.raises(RunError, match="of other data"):
        run_whole(study, tmp_path / "out")
    assert (tmp_path / "out" / LINES).read_bytes() == before


def test_fresh_puts_what_was_there_aside(whole: Path, tmp_path: Path):
    run_whole(make_study(whole), tmp_path, InThisProcess(most=2))
    before = (tmp_path / LINES).read_bytes()
    run_whole(make_study(whole, seeds=(5,)), tmp_path, fresh=True)
    aside = list(tmp_path.glob("lines-until-*.jsonl"))
    assert [path.read_bytes() for path in aside] == [before]
    assert {seed for _, seed in lines_of(tmp_path)} == {5, 1005}


def test_two_studies_cannot_share_a_folder(whole: Path, tmp_path: Path):
    with (
        filelock.FileLock(tmp_path / LOCK),
        pytest.raises(RunError, match="another process runs a study here"),
    ):
        run_whole(make_study(whole), tmp_path)
    run_whole(make_study(whole, seeds=(0,)), tmp_path)


def test_other_code_does_not_go_on_inside_a_cell(whole: Path, tmp_path: Path, monkeypatch):
    """A cell that was not finished is begun anew when the code has changed since."""
    study, launchers = make_study(whole, seeds=(0,)), [InThisProcess(most=0), InThisProcess()]
    monkeypatch.setattr(book, "code_version", lambda kind: "old")
    run_whole(study, tmp_path, launchers[0])
    monkeypatch.setattr(book, "code_version", lambda kind: "new")
    run_whole(study, tmp_path, launchers[1])
    assert {folder.parent.name for folder in launchers[1].launched} == {"new"}


def test_a_disk_that_fills_up_loses_no_cell(whole: Path, tmp_path: Path, monkeypatch):
    """The third line cannot be written: two stay, and the third cell is not trained again."""
    study, written = make_study(whole), []
    write = lines.write_bytes

    def full(path: Path, text: bytes) -> None:
        written.append(path)
        if len(written) == 4:  # the heading, two lines, and then
            raise RunError(f"{path}: could not be written: No space left on device")
        write(path, text)

    monkeypatch.setattr(lines, "write_bytes", full)
    with pytest.raises(RunError, match="No space left"):
        run_whole(study, tmp_path)
    assert len(lines_of(tmp_path)) == 2
    launcher = InThisProcess()
    run_whole(study, tmp_path, launcher)
    assert len(launcher.launched) == 5
    assert len(lines_of(tmp_path)) == 8


def test_a_folder_without_room_is_found_before_anything_runs(
    whole: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(runner, "ROOM", 10**18)
    launcher = InThisProcess()
    with pytest.raises(RunError, match="are needed and"):
        run_whole(make_study(whole), tmp_path, launcher)
    assert launcher.launched == []


def test_settings_that_do_not_fit_the_data_are_found_before_anything_runs(whole: Path, tmp_path):
    launcher = InThisProcess()
    wide = make_study(whole, arms={"wide": {"classes": 5}})
    with pytest.raises(ConfigError, match=r"the model has .*classes=5 and the data .*classes=3"):
        run_whole(wide, tmp_path, launcher)
    missing = make_study(whole, arms={"gone": {"source": "gone.npz"}})
    with pytest.raises(DataError, match=r"gone\.npz does not exist"):
        run_whole(missing, tmp_path, launcher)
    assert launcher.launched == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("{}\n", "line 1: not a result"),
        ("nonsense\n", "line 1: not a result"),
    ],
)
def test_results_that_are_none_are_refused(whole: Path, tmp_path: Path, text: str, sentence: str):
    (tmp_path / LINES).write_text(text)
    with pytest.raises(RunError, match=sentence):
        run_whole(make_study(whole), tmp_path)
    assert (tmp_path / LINES).read_text() == text


def test_a_torn_line_is_named(whole: Path, tmp_path: Path):
    run_whole(make_study(whole), tmp_path, InThisProcess(most=2))
    text = (tmp_path / LINES).read_text()
    (tmp_path / LINES).write_text(text[:-20])
    with pytest.raises(RunError, match="line 3: not a result"):
        run_whole(make_study(whole), tmp_path)


def test_which_images_were_wrong_is_kept():
    rng = np.random.default_rng(0)
    for n in (1, 7, 8, 1000):
        wrong = set(np.flatnonzero(rng.random(n) < 0.3).tolist())
        from vitreous.studies.cell import pack

        assert unpack(pack(sorted(wrong), n), n) == wrong
