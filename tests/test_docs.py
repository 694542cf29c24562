"""What is documented is run: every `vitreous` command and every Python block of the guide."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
TRAINING_STEPS = ("--set", "max_steps=20")


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in BLOCK.findall(page.read_text()) if name == language]


def commands(page: Path) -> list[list[str]]:
    lines = [line for text in blocks(page, "bash") for line in text.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line for line in words if line and line[0] == "vitreous"]


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as a reader might have one: studies, a drawing, a model of timm's, data."""
    drawing = Image.new("L", (120, 160), 250)
    drawing.paste(20, (30, 30, 90, 40))
    drawing.paste(20, (78, 40, 90, 130))
    drawing.save(tmp_path / "seven.png")
    letters = np.random.default_rng(0).integers(0, 256, (240, 28, 28), dtype=np.uint8)
    names = ("x_train", "y_train", "x_test", "y_test")
    parts = (letters[:200], np.arange(200) % 4, letters[200:], np.arange(40) % 4)
    np.savez(tmp_path / "letters.npz", **dict(zip(names, parts, strict=True)))
    shutil.copytree(ROOT / "studies", tmp_path / "studies", ignore=shutil.ignore_patterns(".cells"))
    shutil.copytree(ROOT / "tests" / "golden" / "weights" / "timm_vit_cls", tmp_path / "weights")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_a_page_run_in_order(page: Path, workplace: Path):
    for words in commands(page):
        trains = words[1] == "train" and "--resume" not in words and "--dry-run" not in words
        extra = TRAINING_STEPS if trains else ()
        line = [sys.executable, "-m", "vitreous.cli", *words[1:], *extra]
        run = subprocess.run(
            line,
            cwd=workplace,
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        assert run.returncode == 0, f"{shlex.join(words)}:\n{run.stdout}{run.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_of_a_page_runs(page: Path, workplace: Path):
    assert workplace.is_dir()
    names: dict[str, object] = {}
    for text in blocks(page, "python"):
        code = text.replace('recipe="fast"', "recipe=vitreous.Recipe(max_steps=20)")
        exec(compile(code, str(page), "exec"), names)


def test_the_readme_shows_both_ways():
    assert commands(ROOT / "README.md")
    assert blocks(ROOT / "README.md", "python")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
