"""`vitreous serve` says what is wrong before it listens; test_server.py runs it for real."""

import sys
import types

import pytest

from tests.service.small_reader import SmallReader
from vitreous.cli.__main__ import main
from vitreous.service import server


@pytest.fixture(autouse=True)
def no_token(monkeypatch):
    monkeypatch.delenv("VITREOUS_TOKEN", raising=False)


@pytest.fixture
def small(monkeypatch):
    """The small reader where ours would be loaded."""

    class NumberReader(SmallReader):
        @classmethod
        def load(cls, path=None):
            return cls()

    module = types.ModuleType("vitreous.reading.reader")
    module.NumberReader = NumberReader
    monkeypatch.setitem(sys.modules, "vitreous.reading", types.ModuleType("vitreous.reading"))
    monkeypatch.setitem(sys.modules, "vitreous.reading.reader", module)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "a token is needed"),
        (["--port", "99999"], "cannot listen on 127.0.0.1, port 99999"),
        (["--host", "no.such.host.invalid", "--token-file", "TOKEN"], "cannot listen on"),
        (["--token-file", "none"], "cannot be read"),
        (["--max-bytes", "0"], "max_bytes 0"),
        (["--held-bytes", "5"], "held_bytes 5"),
        (["--seconds", "nan"], "seconds nan"),
        (["--threads", "0"], "--threads 0"),
        (["--drain", "-1"], "--drain -1"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(words, said, tmp_path, monkeypatch, capsys, small):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "TOKEN").write_text("sixteen-characters-and-more")
    assert main(["serve", "--port", "0", *words]) == 1
    told = capsys.readouterr().err
    assert told.startswith("vitreous serve: ")
    assert said in told


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "vitreous.service.app", None)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    monkeypatch.delitem(sys.modules, "vitreous.service.app")
    assert main(["serve"]) == 1
    assert "pip install 'vitreous[serve]'" in capsys.readouterr().err


def test_options_reach_the_service(monkeypatch, capsys, small, tmp_path):
    file = tmp_path / "token"
    file.write_text("sixteen-characters-and-more")
    seen = {}

    def serve(made, listening, told):
        seen["config"] = made.config
        told(server.address_of(listening))

    monkeypatch.setattr(server, "serve", serve)
    words = ["--port", "0", "--token-file", str(file), "--drain", "7", "--proxy", "10.0.0.1"]
    assert main(["serve", *words]) == 0
    assert seen["config"].timeout_graceful_shutdown == 7
    assert seen["config"].forwarded_allow_ips == "10.0.0.1"
    assert seen["config"].proxy_headers
    assert "vitreous serves on http://127.0.0.1:" in capsys.readouterr().out
    assert main(["serve", "--port", "0"]) == 0
    assert not seen["config"].proxy_headers
