"""What may be loaded, and how the files are kept. The import contracts are in pyproject.toml."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages

import pytest

import vitreous
from vitreous.cli.__main__ import VERBS

ROOT = Path(vitreous.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MODULES = [info.name for info in walk_packages(vitreous.__path__, "vitreous.")]
TORCH_FREE = [
    "vitreous",
    "vitreous.errors",
    "vitreous.settings",
    "vitreous.config",
    *(
        f"vitreous.{package}.{info.name}"
        for package in ("cost", "protocol", "figures")
        for info in iter_modules([str(ROOT / package)])
    ),
    "vitreous.inspection.diagram",
    "vitreous.inspection.layout",
    "vitreous.cli.__main__",
]
HEAVY = ["torch", "safetensors", "einops"]


def run(script: str) -> str:
    """What a script prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_planning_and_protocol_and_figures_do_not_pay_for_torch():
    script = f"""
import sys
from importlib import import_module
for name in {TORCH_FREE}:
    import_module(name)
    assert not set(sys.modules) & set({HEAVY}), name
from vitreous import count_parameters, preset
assert count_parameters(preset("b16")) == 86_567_656
assert not set(sys.modules) & set({HEAVY})
"""
    run(script)


def test_help_does_not_pay_for_torch():
    script = f"""
import sys
from contextlib import suppress
from vitreous.cli.__main__ import main
for words in (["--help"], ["--version"], *([verb, "--help"] for verb in {list(VERBS)})):
    with suppress(SystemExit):
        main(words)
    assert not set(sys.modules) & {{"torch", "numpy", "matplotlib"}}, words
"""
    text = run(script)
    assert all(f"usage: vitreous {verb}" in text for verb in VERBS)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_offers(name):
    module = import_module(name)
    tree = ast.parse(Path(module.__file__).read_text())
    has_code = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in tree.body)
    offered = getattr(module, "__all__", [])
    assert offered or not has_code
    assert len(set(offered)) == len(offered)
    assert not [thing for thing in offered if not hasattr(module, thing)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_keeps_its_annotations_and_bears_a_noun(path):
    """Annotations that are text are not checked: shapes would be decoration."""
    assert "from __future__ import annotations" not in path.read_text()
    assert path.stem not in {"util", "utils", "helper", "helpers", "common", "base", "misc"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_unpickled(path):
    calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
    names = {ast.unparse(call.func) for call in calls}
    assert not names & {"pickle.load", "pickle.loads", "eval", "exec"}
    for call in calls:
        if ast.unparse(call.func) in {"torch.load", "np.load"}:
            safe = {(k.arg, ast.unparse(k.value)) for k in call.keywords}
            assert safe & {("weights_only", "True"), ("allow_pickle", "False")}


def test_every_error_is_one_of_ours_and_an_ordinary_one():
    """Drawn in the docstring as one tree; each can also be caught as what Python calls it."""
    errors = import_module("vitreous.errors")
    kinds = [getattr(errors, name) for name in errors.__all__]
    assert all(issubclass(kind, errors.VitreousError) and kind.__doc__ for kind in kinds)
    children = [kind for kind in kinds if kind is not errors.VitreousError]
    assert all(issubclass(kind, ValueError | RuntimeError) for kind in children)
    assert all(kind.__name__ in errors.__doc__ for kind in kinds)
