"""Whether a run may and can be written is known before its first step."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.training.small import RECIPE, make_job, stopped_after, whole
from vitreous.checkpoints import files
from vitreous.errors import RunError
from vitreous.protocol import ledger
from vitreous.training import folder
from vitreous.training import run as runs
from vitreous.training.folder import LEDGER, RUN, SNAPSHOT, read_json, read_list, read_result
from vitreous.training.run import run, train


@pytest.fixture
def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any step at all is one too many."""

    def never(*_: object) -> None:
        raise AssertionError("training started")

    monkeypatch.setattr(runs, "steps_of_epoch", never)


def test_a_full_disk_is_found_before_training(tmp_path, no_steps, monkeypatch):
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(RunError, match="bytes are needed and 1,000 are free"):
        next(run(make_job(), tmp_path / "run"))


def test_a_file_where_the_folder_should_be_is_found_before_training(tmp_path, no_steps):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(RunError, match="cannot write"):
        next(run(make_job(), tmp_path / "run"))
    assert (tmp_path / "run").read_text() == "mine"


def test_the_room_that_is_proved_holds_all_that_a_run_writes(tmp_path, no_report, monkeypatch):
    proved = []
    monkeypatch.setattr(runs, "require_room", lambda out, size: (out.mkdir(), proved.append(size)))
    largest = 0
    job = make_job(optimizer="muon", average=0.9, keep="best", precision="bfloat16")
    for _event in run(job, tmp_path / "run"):
        largest = max(largest, sum(path.stat().st_size for path in (tmp_path / "run").iterdir()))
    assert 2 * largest < proved[0]


def test_other_files_in_the_folder_are_left_alone(tmp_path, no_report):
    (tmp_path / "notes.txt").write_text("mine")
    whole(make_job(), tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_run_that_ended_leaves_these_files_and_no_others(tmp_path):
    whole(make_job(), tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "README.md",
        "config.json",
        "history.json",
        "mistakes.json",
        "model.safetensors",
        "report.html",
        "result.json",
        "run.json",
        "test_ledger.jsonl",
        "wrong.json",
    ]


def test_the_resolved_settings_are_beside_the_results(tmp_path, no_report):
    job = make_job(learning_rate=0.003)
    whole(job, tmp_path / "run")
    recorded = read_json(tmp_path / "run" / RUN)
    assert recorded["recipe"]["learning_rate"] == 0.003
    assert recorded["config"]["width"] == job.config.width
    assert recorded["split"] == {"training": 20, "validation": 5}
    assert recorded["data_sha256"] == job.dataset.hashes


def test_training_looks_at_the_test_set_once(tmp_path, no_report):
    result = train(make_job().config, make_job().dataset, recipe=RECIPE, out=tmp_path / "run")
    (touch,) = ledger.read(tmp_path / "run" / LEDGER)
    assert (touch.purpose, touch.correct, touch.n) == ("train", result.correct, 10)
    assert result.test_accuracy == result.correct / result.n
    assert read_result(tmp_path / "run") == result


def test_a_diverged_run_says_so_and_writes_no_result(tmp_path, no_report):
    job = make_job(optimizer="adamw", learning_rate=1e30, clip=None, schedule="constant")
    with pytest.raises(RunError, match="diverged"):
        list(run(job, tmp_path / "run"))
    assert not (tmp_path / "run" / "result.json").exists()


def test_a_kill_between_any_two_writes_of_an_epoch_is_survived(tmp_path, no_report, monkeypatch):
    job = make_job(keep="best", patience=5)
    unbroken = whole(job, tmp_path / "whole")

    class Killed(BaseException):
        pass

    for name in ("snapshot", "write_json"):
        for nth in range(1, 5):
            out, plain, count = tmp_path / f"{name}{nth}", getattr(runs, name), [0]

            def after_it(*arguments, plain=plain, count=count, nth=nth):
                plain(*arguments)
                count[0] += 1
                if count[0] == nth:
                    raise Killed

            monkeypatch.setattr(runs, name, after_it)
            try:
                list(run(job, out))
            except Killed:
                monkeypatch.setattr(runs, name, plain)
                started = (out / RUN).exists()
                assert whole(job, out, resume=started) == unbroken, (name, nth)
            monkeypatch.setattr(runs, name, plain)


@pytest.mark.parametrize(
    ("content", "reader", "words"),
    [
        ("{", read_json, "not readable as JSON"),
        ("[]", read_json, "a JSON object was expected"),
        ("{}", read_list, "a JSON list was expected"),
        ("\udcff", read_json, "not readable as JSON"),
    ],
)
def test_damaged_json_is_named(content, reader, words, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(RunError, match=words):
        reader(path)


def test_a_result_of_other_fields_is_refused(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps({"test_accuracy": 1.0}))
    with pytest.raises(RunError, match="not a result of ours"):
        read_result(tmp_path)


def test_asking_for_the_result_of_an_unended_run_says_how_to_go_on(tmp_path):
    stopped_after(make_job(), tmp_path / "run", 2)
    with pytest.raises(RunError, match="has not ended; go on with: vitreous train --resume"):
        read_result(tmp_path / "run")


def test_the_command_that_is_recorded_can_be_typed_again(monkeypatch):
    monkeypatch.setattr(folder.sys, "argv", ["/a/b/vitreous", "train", "--out", "my runs/x"])
    assert folder.command_line() == "vitreous train --out 'my runs/x'"


def test_a_snapshot_is_taken_every_so_often(tmp_path: Path, monkeypatch):
    written = []
    plain = runs.snapshot
    monkeypatch.setattr(runs, "SECONDS_BETWEEN_SNAPSHOTS", 0.0)
    monkeypatch.setattr(runs, "snapshot", lambda s, p: (written.append(s.step), plain(s, p)))
    stopped_after(make_job(), tmp_path / "run", 4)
    assert written == [0, 1, 2, 3, 4, 4]
    assert (tmp_path / "run" / SNAPSHOT).exists()
