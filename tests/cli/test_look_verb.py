"""look: a page for every image that can be read, and a sentence for every other."""

import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from PIL import Image

from tests.figures.page_reader import Page
from tests.inspection.pointed import CONFIG, INPUT, untaught
from vitreous.checkpoints.store import save
from vitreous.cli.__main__ import main
from vitreous.cli.look import open_model
from vitreous.errors import CheckpointError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    model = untaught(0)
    model.image_input = INPUT
    save(model, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Image.radial_gradient("L").save(tmp_path / "sun.png")
    (tmp_path / "torn.png").write_bytes(b"torn")
    return ["sun.png", "torn.png", "gone.png"]


def test_a_file_that_cannot_be_read_never_stops_the_rest(run, files, capsys):
    assert main(["look", str(run), *reversed(files), "--quick"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "gone.png: gone.png does not exist"
    assert told[1].startswith("torn.png: torn.png is no image")
    assert told[2].startswith("sun.png: ")
    assert told[3] == "look/look.html"
    read = Page(Path("look/look.html").read_text())
    assert (read.open, read.outside) == ([], [])
    assert "gone.png does not exist" in read.text
    assert Path("look/02-sun-rollout.png").exists()


def test_an_untrained_model_is_told_so_beside_each_map(run, files, capsys, monkeypatch):
    from vitreous.inspection import look
    from vitreous.inspection.faithfulness import Effort

    monkeypatch.setattr(look, "effort_for", lambda _model: Effort(orders=19, fresh=8))
    assert main(["look", str(run), files[0], "--json", "--out", "there/too"]) == 0
    shown, page = map(json.loads, capsys.readouterr().out.splitlines())
    assert sum(chance for _, chance in shown["top"]) == pytest.approx(1, abs=1e-5)
    assert list(shown["maps"]) == ["relevance", "rollout", "gradient_input"]
    assert not any(found["better_than_chance"] for found in shown["maps"].values())
    text = Page(Path(page["page"]).read_text()).text
    assert text.count("No better than chance.") == 3


def test_ctrl_c_keeps_what_has_been_seen(run, files, capsys, monkeypatch):
    from vitreous.inspection import look

    whole = look.look_at

    def impatient(model, name, **named):
        if name == "torn.png":
            raise KeyboardInterrupt
        return whole(model, name, **named)

    monkeypatch.setattr(look, "look_at", impatient)
    assert main(["look", str(run), *files, "--quick"]) == 130
    assert "look/look.html" in capsys.readouterr().out
    text = Page(Path("look/look.html").read_text()).text
    assert "sun.png" in text
    assert "torn.png is" not in text


def test_weights_alone_are_enough_and_other_layers_are_refused(run, files, capsys):
    weights = str(run / "model.safetensors")
    assert main(["look", weights, files[0], "--quick", "--layers", "-1", "--heads", "1"]) == 0
    assert main(["look", weights, files[0], "--quick", "--layers", "2"]) == 1
    assert "there is no layer 2; they go from 0 to 1" in capsys.readouterr().err
    assert main(["look", str(run / "nowhere"), files[0]]) == 1
    assert "there is no such file" in capsys.readouterr().err


def test_weights_that_are_not_ours_go_to_the_loader_of_others(run, tmp_path, monkeypatch):
    import safetensors.torch

    stranger, asked = untaught(3), []
    module = ModuleType("vitreous.interop.load")
    module.load_weights = lambda place: asked.append(place) or (stranger, None)
    monkeypatch.setitem(sys.modules, "vitreous.interop", ModuleType("vitreous.interop"))
    monkeypatch.setitem(sys.modules, "vitreous.interop.load", module)
    folder = tmp_path / "theirs"
    folder.mkdir()
    safetensors.torch.save_file({"x": torch.zeros(1)}, folder / "model.safetensors")
    (tmp_path / "theirs.npz").write_bytes(b"PK")
    for place in (folder, folder / "model.safetensors", tmp_path / "theirs.npz"):
        assert open_model(place) is stranger
    assert open_model(run).config == CONFIG
    assert asked == [folder, folder / "model.safetensors", tmp_path / "theirs.npz"]


def test_damaged_weights_of_ours_are_not_taken_for_others(run):
    weights = run / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        open_model(run)


def test_a_folder_that_cannot_be_written_is_a_sentence(run, files, capsys):
    Path("taken").write_text("a file")
    assert main(["look", str(run), files[0], "--quick", "--out", "taken"]) == 1
    assert "taken" in capsys.readouterr().err
    assert shutil.disk_usage(".").free > 0
