"""vitreous read: files, folders and stdin; one bad file never stops the rest."""

import io
import json
import sys

import numpy as np
import pytest
from PIL import Image

from tests.reading.test_reader import digits as digits
from tests.reading.test_reader import number
from vitreous.cli.__main__ import main


@pytest.fixture
def folder(tmp_path, digits):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    Image.fromarray(number(digits, "12")).save(tmp_path / "in" / "a.png")
    Image.fromarray(number(digits, "07")).save(tmp_path / "in" / "deep" / "b.JPG", "JPEG")
    (tmp_path / "in" / "notes.txt").write_text("no image")
    (tmp_path / "bad.png").write_bytes(b"no image at all")
    Image.fromarray(np.full((40, 40), 220, np.uint8)).save(tmp_path / "blank.png")
    return tmp_path


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_bad_file_is_named_and_the_rest_is_read(folder, capsys):
    names = [str(folder / name) for name in ("bad.png", "in", "blank.png", "absent.png")]
    assert main(["read", *names, "--json"]) == 1
    bad, one, two, blank, absent = lines(capsys.readouterr().out)
    assert (bad["file"], absent["file"]) == (names[0], names[3])
    assert "no image" in bad["error"]
    assert "does not exist" in absent["error"]
    assert (one["text"], two["text"], blank["text"]) == ("12", "07", "")
    assert one["file"].endswith("a.png")
    assert set(blank) == {"file", "text", "lines", "confidence", "rejected", "warnings"}


def test_all_is_well_is_exit_code_0_and_prose_says_the_number(folder, capsys):
    assert main(["read", str(folder / "in" / "a.png"), str(folder / "blank.png")]) == 0
    shown = capsys.readouterr().out
    assert "a.png: 12 (" in shown
    assert "blank.png: no number" in shown


def test_an_image_on_the_standard_input_is_read(folder, capsys, monkeypatch):
    content = io.BytesIO((folder / "in" / "a.png").read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    assert main(["read", "-", "--json"]) == 0
    (got,) = lines(capsys.readouterr().out)
    assert (got["file"], got["text"]) == ("-", "12")


def test_boxes_are_drawn_on_the_upright_image(folder, capsys):
    out = folder / "boxes.png"
    assert main(["read", str(folder / "in" / "a.png"), "--boxes", str(out)]) == 0
    with Image.open(folder / "in" / "a.png") as before, Image.open(out) as after:
        assert after.size == before.size
        coloured = np.asarray(after).reshape(-1, 3).std(axis=1) > 10
    assert 0.001 < coloured.mean() < 0.5


def test_boxes_of_several_images_are_refused(folder, capsys):
    names = [str(folder / "in"), "--boxes", str(folder / "boxes.png")]
    assert main(["read", *names]) == 1
    assert "2 were given" in capsys.readouterr().err


def test_an_empty_folder_is_said(folder, capsys):
    (folder / "empty").mkdir()
    assert main(["read", str(folder / "empty")]) == 0
    assert "no images" in capsys.readouterr().err


def test_weights_that_are_absent_are_said(folder, capsys):
    assert main(["read", "--model", str(folder / "none"), str(folder / "blank.png")]) == 1
    assert "no such file" in capsys.readouterr().err
