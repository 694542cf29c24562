"""convert and doctor: the account, what is written, and what bad input is told."""

import json
import shutil

import pytest
import safetensors.torch
import torch

from tests.interop.golden_weights import DAMAGED, ROOT
from vitreous import load
from vitreous.cli.__main__ import main

TIMM = str(ROOT / "timm_vit_cls")
TORCHVISION = str(ROOT / "torchvision_vit" / "vit_torchvision.pth")


def answer(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_convert_prints_what_became_of_every_tensor(capsys):
    assert main(["convert", TIMM, "--json"]) == 0
    report = answer(capsys)
    assert report["format"] == "timm"
    assert len(report["rows"]) == sum(report["counts"].values()) == 32
    assert report["conventions"]["norm_eps"] == 1e-6


@pytest.mark.parametrize("library", ["vitreous", "timm", "hugging-face", "torchvision"])
def test_what_is_written_is_read_again(tmp_path, capsys, library):
    out = tmp_path / "out"
    words = ["convert", TORCHVISION, "--heads", "4", "--to", library, "--out", str(out)]
    assert main(words) == 0
    assert f"written to {out}" in capsys.readouterr().out
    if library == "vitreous":
        assert load(out).config.heads == 4
        return
    assert main(["convert", str(out), "--heads", "4", "--json"]) == 0
    assert answer(capsys)["conventions"]["heads"] == 4


def test_a_check_is_printed_or_fails(capsys):
    check = str(ROOT / "timm_vit_cls" / "io.npz")
    assert main(["convert", TIMM, "--check", check, "--json"]) == 0
    assert max(answer(capsys)["checks"].values()) < 1e-5
    assert main(["convert", TIMM, "--check", str(DAMAGED / "io.npz")]) == 1
    assert "a convention or the weights are wrong" in capsys.readouterr().err


def test_size_and_channels_change_on_request(tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--image-size", "12x24", "--channels", "1", "--to", "vitreous", "--out", str(out)]
    assert main(["convert", TIMM, *words]) == 0
    config = load(out).config
    assert (config.image_shape, config.channels) == ((12, 24), 1)
    printed = capsys.readouterr().out
    assert "3 channels became 1" in printed
    assert "positions for 16×16 pixels were stretched: bicubic_antialias" in printed


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([TORCHVISION], "give heads="),
        ([TORCHVISION, "--heads", "5"], "heads=5 does not divide the width 32"),
        ([TIMM, "--heads", "2"], "heads=2 was given, and the file says 4"),
        ([TIMM, "--image-size", "15"], "does not tile"),
        ([TIMM, "--channels", "2"], "3 channels cannot become 2"),
        ([TIMM, "--source-size", "20"], "17 rows; a grid of 5×5"),
        (["nowhere.pth"], "there is no such file or folder"),
    ],
)
def test_bad_input_is_told_what_was_wrong(capsys, words, sentence):
    assert main(["convert", *words]) == 1
    shown = capsys.readouterr()
    assert sentence in shown.err
    assert not shown.out


def test_a_folder_that_holds_something_is_not_written_over(tmp_path, capsys):
    (tmp_path / "mine").touch()
    assert main(["convert", TIMM, "--to", "timm", "--out", str(tmp_path)]) == 1
    assert "there is something in it" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, capsys):
    out = tmp_path / "out"
    source = str(ROOT / "hf_siglip_vision")
    assert main(["convert", source, "--to", "torchvision", "--out", str(out)]) == 1
    assert "torchvision cannot build" in capsys.readouterr().err
    assert not out.exists()


def test_doctor_finds_a_wrong_guess(tmp_path, capsys):
    """The damage of a file is the choice by which its outputs differ from the whole one's."""
    shutil.copy(DAMAGED / "config.json", tmp_path)
    shutil.copy(DAMAGED / "variants" / "patch_bgr.safetensors", tmp_path / "model.safetensors")
    assert main(["doctor", str(tmp_path), "--json"]) == 0
    others = answer(capsys)["counterfactuals"]
    assert [other["moves"] for other in others] == sorted(
        (other["moves"] for other in others), reverse=True
    )
    (colours,) = [other for other in others if other["convention"] == "colours"]
    assert colours["moves"] > 0.05
    assert main(["doctor", str(tmp_path)]) == 0
    assert "colours: blue, green, red, not red, green, blue" in capsys.readouterr().out


def test_tensors_keep_their_numbers_through_the_command_line(tmp_path):
    out = tmp_path / "out"
    assert main(["convert", TIMM, "--to", "timm", "--out", str(out)]) == 0
    one, two = (
        safetensors.torch.load_file(f"{folder}/model.safetensors") for folder in (TIMM, out)
    )
    assert all(torch.equal(one[name], two[name]) for name in one.keys() | two.keys())
