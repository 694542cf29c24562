import errno
import math
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from vitreous.checkpoints import files
from vitreous.checkpoints.files import require_room, write_bytes, write_json
from vitreous.errors import RunError


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_writer_that_fails_leaves_the_old_file_and_no_other(moment, tmp_path, monkeypatch):
    path = tmp_path / "weights"
    write_bytes(path, b"old")
    if moment == "fsync":
        monkeypatch.setattr(files.os, "fsync", full)
    else:
        monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(RunError, match=r"No space left on device.*what was there is unchanged"):
        write_bytes(path, b"new and longer")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_writer_leaves_the_old_file_and_no_other(tmp_path, monkeypatch):
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "weights"
    write_bytes(path, b"old")
    monkeypatch.setattr(files.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_new_content_is_whole_before_it_takes_the_place(tmp_path, monkeypatch):
    path, seen = tmp_path / "weights", []
    write_bytes(path, b"old")
    plain = Path.replace

    def watched(self: Path, target: Path) -> Path:
        seen.append((self.read_bytes(), target.read_bytes()))
        return plain(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    write_bytes(path, b"new")
    assert seen == [(b"new", b"old")]
    assert path.read_bytes() == b"new"


def test_nan_is_refused_and_the_old_file_stays(tmp_path):
    path = tmp_path / "result.json"
    write_json(path, {"loss": 1.0})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"loss": math.nan})
    assert path.read_text() == '{\n  "loss": 1.0\n}\n'


def test_a_full_disk_is_found_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(files.shutil, "disk_usage", lambda _: SimpleNamespace(free=999))
    with pytest.raises(RunError, match="1,000 bytes are needed and 999 are free on the disk"):
        require_room(tmp_path, 1000)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_meanwhile_is_found_and_the_probe_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RunError, match=r"cannot write 1,000 bytes there: No space left on device"):
        require_room(tmp_path, 1000)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["file", "file/inside"])
def test_a_file_in_place_of_the_folder_is_found(place: str, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunError, match=r"cannot write .* bytes there"):
        require_room(tmp_path / place, 10)


def test_all_of_the_room_is_tried_and_given_back(tmp_path, monkeypatch):
    sizes = []
    monkeypatch.setattr(files, "CHUNK", 1000)
    monkeypatch.setattr(files.os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    require_room(tmp_path / "a" / "b", 3500)
    assert sizes == [3500]
    assert list((tmp_path / "a" / "b").iterdir()) == []
