import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.cli.runs import words
from tests.training.small import digits, write_npz
from vitreous.checkpoints.store import load
from vitreous.cli.__main__ import main
from vitreous.protocol import ledger
from vitreous.training.folder import LEDGER


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_plain_lines_end_with_accuracy_floor_time_and_places(data, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(words(data, out)) == 0
    told = capsys.readouterr().out
    result = json.loads((out / "result.json").read_text())
    assert [told.count(f"epoch   {n}  loss") for n in (1, 2, 3, 4)] == [1, 1, 1, 0]
    assert f"test accuracy  {result['test_accuracy']:.4f} on 10 unseen images" in told
    assert f"floor          {result['floor']:.4f}" in told
    assert "training time" in told
    assert f"run folder     {out}" in told
    assert f"report         {out / 'report.html'}" in told
    assert "\x1b" not in told


def test_json_is_one_object_a_line_an_epoch_each_and_the_result(data, tmp_path, capsys, no_report):
    assert main([*words(data, tmp_path / "run"), "--json"]) == 0
    *epochs, result = lines(capsys.readouterr().out)
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3]
    assert result["run"] == str(tmp_path / "run")
    recorded = json.loads((tmp_path / "run" / "result.json").read_text())
    assert {name: result[name] for name in recorded} == recorded


def test_a_toml_file_sets_preset_recipe_and_any_setting(data, tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text(
        'preset = "digits-small"\nrecipe = "published"\nimage_size = [8, 8]\npatch_size = 2\n'
        "width = 16\nheads = 2\nbatch_size = 4\nepochs = 7\n"
    )
    line = ["train", "--source", str(data), "--config", str(file), "--dry-run", "--json"]
    assert main([*line, "--set", "epochs=2", "--set", "classes=3"]) == 0
    (shown,) = lines(capsys.readouterr().out)
    config, recipe = shown["job"]["config"], shown["job"]["recipe"]
    assert (config["patch_size"], config["width"], config["depth"]) == (2, 16, 2)
    assert (recipe["epochs"], recipe["batch_size"]) == (2, 4)
    assert recipe["learning_rate"] == 1e-4
    assert shown["steps"] == 2 * 4


def test_a_dry_run_writes_nothing(data, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*words(data, tmp_path / "run"), "--dry-run"]) == 0
    assert list(tmp_path.iterdir()) == []
    assert "20 images to train on" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words_wanted"),
    [
        ("widht=8", "no setting is called 'widht'; did you mean 'width'?"),
        ("learning_rat=1", "did you mean 'learning_rate'?"),
        ("width=wide", "width=wide is not a whole number"),
        ("width=8.5", "width=8.5 is not a whole number"),
        ("heads=3", "does not split over heads=3"),
        ("width", "write it as key=value"),
        ("patience=0", "patience=0 must be at least 1"),
        ("optimizer=sgd", "'adamw', 'muon'"),
        ("classes=7", "classes=7"),
    ],
)
def test_a_setting_that_cannot_be_is_answered_with_a_sentence(
    change, words_wanted, data, tmp_path, capsys
):
    assert main([*words(data, tmp_path / "run"), "--set", change]) == 1
    told = capsys.readouterr()
    assert words_wanted in told.err
    assert told.err.startswith("vitreous train: ")
    assert told.out == ""
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "name", "nearest"),
    [("--preset", "digts", "digits"), ("--recipe", "publishd", "published")],
)
def test_an_unknown_name_is_answered_with_the_nearest(option, name, nearest, capsys):
    assert main(["train", option, name]) == 1
    assert f"{name!r}; did you mean {nearest!r}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "words_wanted"),
    [
        ("width =", "not readable as TOML"),
        ("widht = 8", "did you mean 'width'?"),
        ("width = 0", "width=0 must be at least 1"),
        ("[model]\nwidth = 8", "no setting is called 'model'"),
        ("preset = 3", "no preset is called '3'"),
    ],
)
def test_a_toml_file_that_will_not_do_is_answered_with_a_sentence(
    content, words_wanted, tmp_path, capsys
):
    (tmp_path / "x.toml").write_text(content)
    assert main(["train", "--config", str(tmp_path / "x.toml")]) == 1
    assert words_wanted in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [[], ["trian"], ["train", "--presets", "x"], ["train", "--seed", "one"], ["evaluate"]],
)
def test_a_line_that_is_not_understood_exits_2(line: list[str]):
    with pytest.raises(SystemExit) as left:
        main(line)
    assert left.value.code == 2


@pytest.mark.parametrize("verb", ["train", "evaluate", "predict", "verify", "presets"])
def test_help_says_what_exit_codes_mean(verb: str, capsys):
    with pytest.raises(SystemExit) as left:
        main([verb, "--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert "exit codes: 0 all is well" in told
    assert "--json" in told


def test_absent_data_and_a_bad_device_exit_1(tmp_path, data, capsys):
    assert main(["train", "--source", str(tmp_path / "gone.npz")]) == 1
    assert main([*words(data, tmp_path / "run"), "--device", "abacus"]) == 1
    assert main([*words(data, tmp_path / "run"), "--threads", "0"]) == 1
    assert main([*words(data, tmp_path / "run"), "--seed", "-1"]) == 1
    assert capsys.readouterr().err.count("vitreous train: ") == 4


def test_an_occupied_folder_is_refused(data, trained, capsys):
    assert main(words(data, trained)) == 1
    assert "a run that has ended is there; choose another folder" in capsys.readouterr().err


def test_without_out_each_run_gets_a_folder_of_its_own(data, tmp_path, monkeypatch, no_report):
    monkeypatch.chdir(tmp_path)
    line = [word for word in words(data, tmp_path) if word not in ("--out", str(tmp_path))]
    for _ in range(2):
        assert main([*line, "--seed", "4"]) == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "digits-fast-seed4",
        "digits-fast-seed4-2",
    ]


def test_the_folder_is_named_after_the_preset_that_a_file_chose(
    data, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text('preset = "digits-small"\npatch_size = 4\n')
    line = ["train", "--config", "x.toml", "--source", str(data), "--dry-run", "--json"]
    assert main([*line, "--set", "batch_size=4"]) == 0
    assert lines(capsys.readouterr().out)[0]["out"] == "runs/digits-small-seed0"


@pytest.mark.parametrize(
    "extra",
    [
        ["--seed", "0"],
        ["--source", "mnist"],
        ["--set", "epochs=4"],
        ["--out", "x"],
        ["--skip-corrupt"],
    ],
)
def test_resume_takes_the_runs_own_settings_and_no_others(extra, trained, capsys):
    assert main(["train", "--resume", str(trained), *extra]) == 1
    assert "--resume takes the run's own settings; leave out" in capsys.readouterr().err


def test_resuming_a_run_that_ended_is_refused(trained, capsys):
    assert main(["train", "--resume", str(trained)]) == 1
    assert "there is nothing to resume" in capsys.readouterr().err


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Twelve bright and twelve dark pictures of 10×12 in colour, and a file that is none."""
    rng = np.random.default_rng(0)
    for name, low in (("2 dark", 0), ("10 bright", 180)):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        for number in range(15):
            pixels = rng.integers(low, low + 70, (10, 12, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pictures" / name / f"{number}.png")
    return tmp_path / "pictures"


def test_an_image_folder_gives_size_channels_and_classes_and_predict_says_its_names(
    pictures, tmp_path, capsys, no_report
):
    out = tmp_path / "run"
    settings = ("width=16", "patch_size=2", "heads=2", "depth=1", "batch_size=4", "epochs=12")
    sets = [word for pair in settings for word in ("--set", pair)]
    assert main(["train", "--source", str(pictures), "--out", str(out), *sets]) == 0
    assert "from the data: image_size=(10, 12) channels=3 classes=2" in capsys.readouterr().err
    model = load(out)
    assert model.class_names == ["2 dark", "10 bright"]
    assert model.image_input is not None
    assert model.image_input.size == (10, 12)
    files = [str(pictures / "2 dark" / "3.png"), str(pictures / "10 bright" / "3.png")]
    assert main(["predict", str(out), *files, "--json"]) == 0
    answers = lines(capsys.readouterr().out)
    assert [answer["label"] for answer in answers] == ["2 dark", "10 bright"]
    assert [answer["file"] for answer in answers] == files


def test_corrupt_files_are_named_and_left_out_only_on_request(
    pictures, tmp_path, capsys, no_report
):
    (pictures / "2 dark" / "torn.png").write_bytes(b"torn")
    line = ["train", "--source", str(pictures), "--out", str(tmp_path / "run"), "--dry-run"]
    line += ["--set", "batch_size=4", "--set", "patch_size=2"]
    assert main(line) == 1
    assert "torn.png" in capsys.readouterr().err
    assert main([*line, "--skip-corrupt"]) == 0
    assert "left out: 1 corrupt file" in capsys.readouterr().err


def test_one_run_is_one_look_at_the_test_set(data, tmp_path, no_report, capsys):
    assert main(words(data, tmp_path / "run")) == 0
    (touch,) = ledger.read(tmp_path / "run" / LEDGER)
    assert (touch.purpose, touch.n) == ("train", 10)


def test_seeds_give_other_runs_and_are_recorded(tmp_path, no_report, capsys):
    data = write_npz(digits(40, 10), tmp_path / "data.npz")
    for seed in ("0", "7"):
        assert main([*words(data, tmp_path / seed), "--seed", seed]) == 0
    weights = [(tmp_path / seed / "model.safetensors").read_bytes() for seed in ("0", "7")]
    assert weights[0] != weights[1]
    assert json.loads((tmp_path / "7" / "result.json").read_text())["seed"] == 7
