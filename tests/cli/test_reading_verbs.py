"""evaluate, verify, predict and presets: what they print, and what they leave alone."""

import json
import shutil
from pathlib import Path

import pytest
from PIL import Image

from tests.training.small import make_job, stopped_after
from vitreous.cli.__main__ import main
from vitreous.config import PRESETS
from vitreous.cost.parameters import count_parameters
from vitreous.protocol import ledger
from vitreous.training.folder import LEDGER, RESULT


@pytest.fixture
def run(trained: Path, tmp_path: Path, no_report) -> Path:
    return shutil.copytree(trained, tmp_path / "run")


def looks(run: Path) -> list[str]:
    return [touch.purpose for touch in ledger.read(run / LEDGER)]


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_evaluate_prints_the_recorded_result_and_looks_at_nothing(run, capsys):
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    assert main(["evaluate", str(run), "--json"]) == 0
    (shown,) = lines(capsys.readouterr().out)
    recorded = json.loads((run / RESULT).read_text())
    assert {name: shown[name] for name in recorded} == recorded
    assert {
        "test_accuracy",
        "n",
        "floor",
        "validation_accuracy",
        "train_seconds",
        "epochs",
        "parameters",
        "seed",
    } <= shown.keys()
    assert shown["test_set_looks"] == 1
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before


def test_evaluate_again_is_one_more_look(run, capsys):
    assert main(["evaluate", str(run), "--again", "--json"]) == 0
    (shown,) = lines(capsys.readouterr().out)
    assert shown["scored_again"] == {"correct": shown["correct"], "n": shown["n"]}
    assert shown["test_set_looks"] == 2
    assert looks(run) == ["train", "evaluate"]


def test_evaluate_in_prose_names_every_figure(run, capsys):
    assert main(["evaluate", str(run)]) == 0
    told = capsys.readouterr().out
    for name, value in json.loads((run / RESULT).read_text()).items():
        assert f"{name:20} {value}" in told


def test_evaluate_of_no_run_and_of_one_that_has_not_ended_exits_1(tmp_path, capsys):
    assert main(["evaluate", str(tmp_path)]) == 1
    stopped_after(make_job(), tmp_path / "half", 2)
    assert main(["evaluate", str(tmp_path / "half")]) == 1
    assert "go on with: vitreous train --resume" in capsys.readouterr().err


def test_verify_of_an_honest_run_exits_0_and_is_one_more_look(run, capsys):
    assert main(["verify", str(run)]) == 0
    told = capsys.readouterr().out
    assert "DIFFERS" not in told
    assert f"{told.count('holds    ')} of {told.count('holds    ')} hold: {run}" in told
    assert looks(run) == ["train", "verify"]


def test_verify_of_a_tampered_run_exits_1_and_says_what_differs(run, capsys):
    result = json.loads((run / RESULT).read_text())
    (run / RESULT).write_text(json.dumps(result | {"test_accuracy": 0.999}))
    assert main(["verify", str(run)]) == 1
    told = capsys.readouterr().out
    assert told.count("DIFFERS") == 1
    assert "DIFFERS  test_accuracy: recorded 0.999, now" in told
    assert main(["verify", str(run), "--json"]) == 1
    checks = lines(capsys.readouterr().out)
    assert [check["what"] for check in checks if not check["holds"]] == ["test_accuracy"]


def test_verify_of_torn_weights_exits_1_with_a_sentence(run, capsys):
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    assert main(["verify", str(run)]) == 1
    assert "not a whole safetensors file" in capsys.readouterr().err
    assert looks(run) == ["train"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    Image.new("L", (8, 8), 90).save(tmp_path / "sub" / "grey.png")
    (tmp_path / "torn.png").write_bytes(b"torn")
    return ["./sub/../sub/grey.png", "torn.png", "gone.png", "sub/grey.png"]


def test_predict_answers_for_every_file_under_the_name_that_was_given(run, files, capsys):
    assert main(["predict", str(run), *files, "--json"]) == 1
    answers = lines(capsys.readouterr().out)
    assert [answer["file"] for answer in answers] == files
    assert [sorted(answer) for answer in answers] == [
        ["file", "label", "probability", "top"],
        ["error", "file"],
        ["error", "file"],
        ["file", "label", "probability", "top"],
    ]
    assert answers[0]["top"] == answers[3]["top"]


def test_predict_lists_the_likeliest_first_and_they_sum_to_one(run, files, capsys):
    assert main(["predict", str(run), files[0], "--top", "9", "--json"]) == 0
    (answer,) = lines(capsys.readouterr().out)
    names, chances = zip(*answer["top"], strict=True)
    assert sorted(names) == ["none", "one", "two"]
    assert list(chances) == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1.0, abs=1e-5)
    assert (answer["label"], answer["probability"]) == (names[0], chances[0])


def test_predict_in_prose_is_a_line_a_file(run, files, capsys):
    assert main(["predict", str(run), *files]) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[0] for line in told] == files


def test_predict_reads_a_weights_file_too_and_refuses_no_run(run, files, capsys):
    assert main(["predict", str(run / "model.safetensors"), files[0]]) == 0
    assert main(["predict", files[0], files[0]]) == 1
    assert "not a whole safetensors file" in capsys.readouterr().err


def test_presets_lists_every_model_with_its_count(capsys):
    assert main(["presets", "--json"]) == 0
    shown = lines(capsys.readouterr().out)
    assert {one["name"]: one["parameters"] for one in shown} == {
        name: count_parameters(config) for name, config in PRESETS.items()
    }


def test_presets_of_an_unknown_name_exits_1_with_the_nearest(capsys):
    assert main(["presets", "b61"]) == 1
    assert "did you mean 'b16'?" in capsys.readouterr().err
