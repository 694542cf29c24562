"""Fine-tuning, probing and exporting, as they are typed."""

import json
from pathlib import Path

import pytest

from tests.cli.runs import stopped_in
from tests.training.small import digits, outcome, write_npz
from vitreous.cli.__main__ import main
from vitreous.cli.export import default_file, read_size
from vitreous.errors import ConfigError
from vitreous.protocol import ledger
from vitreous.training.folder import LEDGER

RECIPE = ("optimizer=adamw", "batch_size=4", "epochs=3", "precision=float32", "rotate=20.0")


@pytest.fixture
def larger(tmp_path: Path) -> Path:
    """Images of 12×12, where the trained model knows 8×8."""
    return write_npz(digits(30, 10, seed=3, size=12), tmp_path / "larger.npz")


def words(weights: Path, data: Path, out: Path, *more: str) -> list[str]:
    sets = [word for pair in RECIPE for word in ("--set", pair)]
    line = ["train", "--from", str(weights), "--source", str(data), "--out", str(out)]
    return [*line, "--device", "cpu", *sets, *more]


def test_tuning_says_what_was_done_to_the_weights_and_verifies(
    trained, larger, tmp_path, capsys, no_report
):
    assert main(words(trained, larger, tmp_path / "run", "--layer-decay", "0.75")) == 0
    told = capsys.readouterr()
    assert f"{trained}: the head of 3 classes is dropped, and a new one begins" in told.err
    assert (
        "positions are stretched from a grid of (2, 2) to (3, 3) by bicubic_antialias" in told.err
    )
    assert "the weights know pixels minus" in told.err
    assert "test accuracy" in told.out
    assert main(["verify", str(tmp_path / "run")]) == 0
    card = (tmp_path / "run" / "README.md").read_text()
    assert card.count("| verify |") == 1
    assert card.count("| train |") == 1


@pytest.mark.slow
def test_tuning_that_was_stopped_goes_on_bit_for_bit(trained, data, tmp_path, capsys, no_report):
    line = words(trained, data, tmp_path / "whole", "--freeze")
    assert main(line) == 0
    stopped = stopped_in(5, "SIGINT", words(trained, data, tmp_path / "run", "--freeze"))
    assert stopped.returncode == 130, stopped.stderr
    assert f"go on with: vitreous train --resume {tmp_path / 'run'}" in stopped.stderr
    assert main(["train", "--resume", str(tmp_path / "run")]) == 0
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--preset", "digits"], "--from brings its own model; leave out the preset 'digits'"),
        (["--freeze", "--layer-decay", "0.5"], "exclude each other"),
        (["--layer-decay", "2"], "layer_decay=2.0 must be above 0 and at most 1"),
        (["--set", "depth=4"], "ask for another model than the weights hold: missing"),
        (["--set", "widht=4"], "did you mean 'width'?"),
    ],
)
def test_what_cannot_be_tuned_is_answered_with_a_sentence(
    more, told, trained, data, tmp_path, capsys
):
    assert main(words(trained, data, tmp_path / "run", *more)) == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_frozen_run_needs_weights(data, capsys):
    assert main(["train", "--source", str(data), "--freeze"]) == 1
    assert "add --from WEIGHTS" in capsys.readouterr().err


def test_a_dry_run_of_tuning_shows_the_start_and_writes_nothing(
    trained, data, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    line = words(trained, data, tmp_path / "run", "--dry-run", "--json")
    assert main([word for word in line if word not in ("--out", str(tmp_path / "run"))]) == 0
    (shown,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown["job"]["start"]["weights"] == str(trained)
    assert shown["out"] == "runs/run-tuned-seed0"
    assert list(tmp_path.iterdir()) == []


def test_a_probe_says_both_accuracies_the_floor_and_how_often_it_looked(
    trained, data, tmp_path, capsys
):
    line = ["probe", str(trained), "--source", str(data), "--out", str(tmp_path / "probe")]
    assert main(line) == 0
    told = capsys.readouterr().out
    for start in ("linear probe   test ", "k-NN           test ", "floor          0.4000"):
        assert start in told
    assert f"looks          1 at this test set in {tmp_path / 'probe'}" in told
    assert main([*line, "--json"]) == 0
    (shown,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert shown["test_set_looks"] == 2
    assert shown["n"] == 10
    assert shown["linear"]["correct"] == round(10 * shown["linear"]["test_accuracy"])
    assert len(ledger.read(tmp_path / "probe" / LEDGER)) == 4


def test_absent_weights_are_named_by_every_verb(tmp_path, data, capsys):
    gone = str(tmp_path / "gone")
    for line in (["probe", gone], ["export", gone, "--onnx"], ["train", "--from", gone]):
        source = [] if line[0] == "export" else ["--source", str(data)]
        assert main([*line, *source]) == 1
        assert f"vitreous {line[0]}: {gone}: there is no such file" in capsys.readouterr().err


def test_an_export_wants_its_format_named(trained, capsys):
    assert main(["export", str(trained)]) == 1
    assert "say which format: --onnx" in capsys.readouterr().err


def test_sizes_are_rows_by_columns():
    assert read_size("32") == (32, 32)
    assert read_size("32x48") == (32, 48)
    for text in ("", "x", "32x", "1x2x3", "-3", "3.5"):
        with pytest.raises(ConfigError, match="write it as 32 or 32x48"):
            read_size(text)


def test_a_file_goes_beside_its_weights_or_here_for_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_file(str(tmp_path), tmp_path) == tmp_path / "model.onnx"
    file = tmp_path / "a.safetensors"
    file.touch()
    assert default_file(str(file), file) == tmp_path / "a.onnx"
    assert default_file("some-one/small-vit", tmp_path) == Path("small-vit.onnx")
