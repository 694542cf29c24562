"""draw: an architecture from a name or a run, without torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from vitreous import settings
from vitreous.cli.__main__ import main
from vitreous.config import ViTConfig, preset
from vitreous.inspection.diagram import draw


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_preset_is_drawn_under_its_name(capsys):
    assert main(["draw", "b16"]) == 0
    assert capsys.readouterr().out == "b16.svg\n"
    assert Path("b16.svg").read_text() == draw("b16").svg


def test_a_setting_can_be_changed():
    assert main(["draw", "b16", "--set", "image_size=[224,448]", "--out", "wide.svg"]) == 0
    assert "393 × 768" in Path("wide.svg").read_text()


def test_a_run_is_drawn_from_its_config():
    config = ViTConfig(width=24, heads=3, depth=2)
    Path("run").mkdir()
    Path("run/config.json").write_text(json.dumps({"model": settings.to_dict(config)}))
    for name in ("run", "run/config.json"):
        assert main(["draw", name, "--out", "run.svg"]) == 0
        assert Path("run.svg").read_text() == draw(config).svg


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["b61"], "did you mean 'b16'?"),
        (["."], "no config of ours"),
        (["b16", "--out", "b16.png"], "a drawing ends in .svg"),
        (["b16", "--out", "gone/b16.svg"], "could not be written"),
        (["b16", "--set", "epochs=3"], "no setting of a model is called 'epochs'"),
        (["b16", "--set", "heads=7"], "width=768 does not split over heads=7"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(words, says, capsys):
    assert main(["draw", *words]) == 1
    assert says in capsys.readouterr().err


def test_a_file_that_is_no_config_is_a_sentence(capsys):
    for content in ("{", "[]", '{"model": {"width": "wide"}}', '{"model": {"widht": 3}}'):
        Path("config.json").write_text(content)
        assert main(["draw", "config.json"]) == 1
        assert "vitreous draw: " in capsys.readouterr().err


def test_drawing_does_not_load_torch():
    script = (
        "import sys; from vitreous.cli.__main__ import main; "
        "assert main(['draw', 's16']) == 0; assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert preset("s16").width == 384
