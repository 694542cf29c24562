"""The version of a cell's code."""

from pathlib import Path

import pytest

import vitreous
from vitreous.studies import version
from vitreous.studies.version import DECIDING, essence

PROGRAM = 'def f(x):\n    """What."""\n    if x:\n        x = x + 1\n    return x\n'


@pytest.mark.parametrize(
    "same",
    [
        PROGRAM.replace('"""What."""', '"""What else,\n    and more."""'),
        PROGRAM.replace("x + 1", "x + 1  # why"),
        PROGRAM.replace("x + 1", "(x + 1)").replace("(x + 1)", "x  +  1"),
        "# a word\n\n" + PROGRAM.replace("    if", "\n    if"),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(same: str):
    assert same != PROGRAM
    assert essence(same) == essence(PROGRAM)


@pytest.mark.parametrize(
    "other",
    [
        PROGRAM.replace("+ 1", "+ 2"),
        PROGRAM.replace("    return x", "        return x"),
        PROGRAM.replace("return x", "return 'x'"),
        PROGRAM.replace("x + 1", "x\n        + 1"),
    ],
)
def test_everything_else_counts(other: str):
    assert essence(other) != essence(PROGRAM)


def test_a_text_that_is_no_docstring_counts():
    assert essence('x = "a"\n') != essence('x = "b"\n')
    assert essence('f("a")\n') != essence('f("b")\n')


@pytest.mark.parametrize("kind", DECIDING)
def test_every_deciding_file_is_there_and_changes_the_version(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    root = Path(vitreous.__file__).parent
    files = [file for pattern in DECIDING[kind] for file in root.glob(pattern)]
    assert len(files) >= len(DECIDING[kind])
    copies = [tmp_path / file.relative_to(root) for file in files]
    for file, copy in zip(files, copies, strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(file.read_text())
    monkeypatch.setattr(version.vitreous, "__file__", str(tmp_path / "__init__.py"))
    before = version.code_version(kind)
    for copy in copies:
        text = copy.read_text()
        copy.write_text(text + "\nanother = 1\n")
        assert version.code_version(kind) != before, copy
        copy.write_text(text)
    assert version.code_version(kind) == before


@pytest.mark.parametrize("kind", DECIDING)
def test_a_version_of_the_same_numbers_bears_the_older_name(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(version, "SAME_NUMBERS", {})
    own = version.code_version(kind)
    monkeypatch.setattr(version, "SAME_NUMBERS", {own: "older", "another": "wrong"})
    assert version.code_version(kind) == "older"
