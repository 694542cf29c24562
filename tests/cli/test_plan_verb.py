import csv
import json
import subprocess
import sys

import pytest
from PIL import Image

from vitreous.cli.__main__ import main

B16 = ["plan", "--preset", "b16"]


def told(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def lines(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in told([*words, "--json"], capsys).splitlines()]


def test_the_answer_has_its_figures_with_their_units(capsys):
    text = told([*B16, "--image-size", "384", "--patch-size", "16", "--batch", "64"], capsys)
    for part in ("577 = 24×24 patches + 1 prefix", "86,859,496", "55.484 G an image", "110.969 G"):
        assert part in text
    assert "attention products     6.137 G   11.1%" in text
    assert "half the patch, patch_size 16 → 8: 2,305 tokens" in text
    assert "double the image, image_size 384 → 768: 2,305 tokens" in text
    assert "batch 64" in text


def test_json_is_one_object(capsys):
    (given,) = lines(B16, capsys)
    assert (given["tokens"], given["parameters"]) == (197, 86_567_656)
    assert (given["multiply_adds"], given["flops"]) == (17_563_828_224, 35_127_656_448)
    assert round(given["attention_share"], 4) == 0.0407
    kinds = {"weights", "gradients", "optimizer", "activations", "total", "inference"}
    assert kinds <= set(given["memory"])


def test_a_sweep_is_a_list_of_every_combination_with_its_settings(capsys):
    words = [*B16, "--sweep", "patch_size=16,15,32", "image_size=224,384"]
    (rows,) = lines(words, capsys)
    swept = [(row["patch_size"], row["image_size"]) for row in rows]
    assert swept == [(16, 224), (16, 384), (15, 224), (15, 384), (32, 224), (32, 384)]
    assert [row.get("tokens") for row in rows] == [197, 577, None, None, 50, 145]
    assert all("does not tile" in row["error"] for row in rows if row["patch_size"] == 15)
    text = told(words, capsys)
    assert text.count("does not tile") == 2
    assert text.count(" G ") == 2 * 4


def test_a_spreadsheet_has_the_same_rows(capsys):
    words = [*B16, "--sweep", "patch_size=16,15,32", "--fits", "24GB"]
    table = list(csv.DictReader(told([*words, "--csv"], capsys).splitlines()))
    (rows,) = lines(words, capsys)
    for row, given in zip(table, rows, strict=True):
        if "error" in given:
            assert row["error"] == given["error"]
            continue
        assert int(row["flops"]) == given["flops"]
        assert int(row["memory.total"]) == given["memory"]["total"]
        assert int(row["fits.training"]) == given["fits"]["training"]


def test_what_fits_is_said_and_what_does_not(capsys):
    assert "inference              0: not even one image" in told(
        ["plan", "--preset", "h14", "--fits", "1GB"], capsys
    )
    (given,) = lines([*B16, "--fits", "24GB"], capsys)
    assert given["fits"]["limit"] == 24 * 10**9
    assert given["fits"]["inference"] > given["fits"]["training"] > 1


def test_inference_is_float32_and_keeps_nothing(capsys):
    (given,) = lines([*B16, "--inference", "--batch", "1"], capsys)
    assert given["train"] is False
    assert given["memory"]["gradients"] == given["memory"]["optimizer"] == 0
    assert "memory of inference, batch 1, float32" in told(
        [*B16, "--inference", "--batch", "1"], capsys
    )


def test_the_board_is_written_on_request(capsys):
    text = told([*B16, "--explain"], capsys)
    assert "12 · 2 · 197² · 768" in text
    assert "17,563,828,224" in text


def test_a_file_and_single_settings_count_as_they_do_in_training(tmp_path, capsys):
    file = tmp_path / "mine.toml"
    file.write_text('preset = "b16"\nrecipe = "published"\ndepth = 2\nbatch_size = 3\n')
    (given,) = lines(["plan", "--config", str(file), "--set", "depth=3"], capsys)
    assert (given["batch"], given["settings"]["depth"]) == (3, 3)
    assert given["settings"]["precision"] == "float32"


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_a_figure_is_drawn_where_it_was_asked_for(kind, tmp_path, capsys):
    file = tmp_path / f"plan.{kind}"
    told([*B16, "--sweep", "patch_size=16,15,32", "--figure", str(file)], capsys)
    if kind == "png":
        with Image.open(file) as picture:
            assert picture.size[0] > 1000
    else:
        assert "<svg" in file.read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--set", "widht=8"], "did you mean 'width'?"),
        (["--preset", "b61"], "did you mean 'b16'?"),
        (["--preset", "ti16", "--image-size", "30"], "does not tile image_size 30"),
        (["--image-size", "0"], "image_size=0 must be at least 1"),
        (["--patch-size", "-4"], "patch_size=-4 must be at least 1"),
        (["--image-size", "big"], "image_size=big is not a whole number"),
        (["--batch", "0"], "batch_size=0 must be at least 1"),
        (["--batch", "many"], "batch_size=many is not a whole number"),
        (["--fits", "24 apples"], "'24 apples' is no size of memory; write it as 24GB"),
        (["--sweep", "pach_size=8"], "did you mean 'patch_size'?"),
        (["--sweep", "patch_size=8", "--explain"], "leave out --sweep"),
        (["--figure", "plan.gif"], "plan.gif: a figure ends in .png or .svg"),
        (["--figure", "nowhere/plan.png"], "nowhere/plan.png: could not be written"),
    ],
)
def test_bad_input_is_answered_with_one_sentence(words, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["plan", *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("vitreous plan: ")
    assert error.count("\n") == 1
    assert sentence in error


def test_a_sweep_in_which_nothing_can_be_built_fails_with_every_reason(capsys):
    assert main([*B16, "--sweep", "patch_size=15,17"]) == 1
    assert capsys.readouterr().out.count("does not tile") == 2


@pytest.mark.parametrize("words", [["--json", "--csv"], ["--train", "--inference"], ["--sweep"]])
def test_a_line_that_contradicts_itself_is_not_understood(words):
    with pytest.raises(SystemExit) as left:
        main(["plan", *words])
    assert left.value.code == 2


def test_planning_loads_neither_torch_nor_numpy():
    script = """
import sys
from vitreous.cli.__main__ import main
main(["plan", "--preset", "b16", "--sweep", "patch_size=8,16", "--fits", "24GB"])
main(["plan", "--preset", "b16", "--explain"])
assert not set(sys.modules) & {"torch", "numpy", "matplotlib"}
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_windowed_attention_is_priced_and_said_not_to_be_built(capsys):
    text = told(["plan", "--windowed", "swin-t"], capsys)
    assert "cannot be built or trained here" in text
    assert "28,288,354" in text
    assert "4.491 G an image" in text
    (given,) = lines(["plan", "--windowed", "swin-b"], capsys)
    assert (given["built_here"], given["parameters"]) == (False, 87_768_224)
    assert main(["plan", "--windowed", "swin-t", "--set", "depth=3"]) == 1
    assert main(["plan", "--windowed", "swim-t"]) == 1
    error = capsys.readouterr().err
    assert "--windowed takes --json and nothing else" in error
    assert "did you mean 'swin-t'?" in error
