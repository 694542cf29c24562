"""The door: what it promises, it opens, in any order, and it promises nothing else."""

import ast
import random
import subprocess
import sys
from pathlib import Path

import pytest

import vitreous

ROOT = Path(vitreous.__file__).parent
PROMISED = {  # what scripts outside hold on to
    "build",
    "load",
    "patchify",
    "preset",
    "train",
    "unpatchify",
}


def mirror() -> dict[str, str]:
    """Name and module of everything imported under TYPE_CHECKING, for editors and checkers."""
    tree = ast.parse((ROOT / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    return {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_checkers_see_the_door_that_is_there():
    assert mirror() == {name: f"vitreous.{home}" for name, home in vitreous.HOMES.items()}
    assert vitreous.__all__ == sorted(mirror())


def test_the_promised_names_are_there():
    assert set(vitreous.__all__) >= PROMISED


@pytest.mark.parametrize("name", vitreous.__all__)
def test_a_public_name_is_the_thing_of_its_home(name):
    thing = getattr(vitreous, name)
    assert thing.__name__ == name
    assert thing.__module__ == f"vitreous.{vitreous.HOMES[name]}"
    assert thing.__doc__
    assert name in dir(vitreous)


@pytest.mark.parametrize("luck", range(2))
def test_names_may_be_asked_for_in_any_order(luck):
    """In a fresh process, whichever comes first."""
    names = random.Random(luck).sample(vitreous.__all__, len(vitreous.__all__))
    script = f"import vitreous\nfor name in {names}: assert callable(getattr(vitreous, name)), name"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, f"{names}:\n{run.stderr}"


def test_no_public_name_is_the_name_of_a_module():
    """`import vitreous.x` would put the module in the place of the function."""
    modules = {path.stem for path in ROOT.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not modules & set(vitreous.__all__)


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'vitreous' has no attribute 'nonsense'"):
        vitreous.nonsense  # noqa: B018
    assert not hasattr(vitreous, "TYPE")
