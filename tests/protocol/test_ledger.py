from pathlib import Path

import pytest

from vitreous.errors import RunError
from vitreous.protocol import ledger
from vitreous.protocol.ledger import Touch


def touch(number: int) -> Touch:
    return Touch("verify", f"2026-01-0{number}", "vitreous verify 'a\nb' é", number, 10)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


def test_no_file_means_no_look(path: Path):
    assert ledger.read(path) == []


def test_looks_come_back_in_order_and_whole(path: Path):
    for number in range(1, 5):
        ledger.write(path, touch(number))
    assert ledger.read(path) == [touch(number) for number in range(1, 5)]


def test_writing_only_ever_appends(path: Path):
    before = b""
    for number in range(1, 4):
        ledger.write(path, touch(number))
        now = path.read_bytes()
        assert now.startswith(before)
        assert now.count(b"\n") == number
        before = now


@pytest.mark.parametrize("line", ["{", '{"purpose": "train"}', "[1]", "", "null"])
def test_a_damaged_line_is_named_by_its_number(path: Path, line: str):
    ledger.write(path, touch(1))
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(RunError, match="line 2: not a ledger entry"):
        ledger.read(path)
