"""What the container file and the unit call exists: verb, flags, files, addresses."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.service.running import in_process
from vitreous.cli.__main__ import parser

ROOT = Path(__file__).parents[2]
CONTAINER = (ROOT / "deploy/Containerfile").read_text().replace("\\\n", " ")
UNIT = (ROOT / "deploy/vitreous.service").read_text()


def settings(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT, re.MULTILINE)


def from_container() -> list[str]:
    return json.loads(re.search(r"^ENTRYPOINT (\[.*\])$", CONTAINER, re.MULTILINE)[1])


def from_unit() -> list[str]:
    return shlex.split(settings("ExecStart")[0])


@pytest.mark.parametrize("line", [from_container, from_unit])
def test_the_command_is_understood_and_asks_for_a_token(line):
    program, *words = line()
    assert program == "/opt/vitreous/bin/vitreous"
    known = parser().parse_args(words)
    assert known.verb == "serve"
    assert known.token_file is not None


def test_the_container_copies_what_is_here_and_installs_what_exists():
    for line in re.findall(r"^COPY (?!--from)(.*)$", CONTAINER, re.MULTILINE):
        for name in line.split()[:-1]:
            assert (ROOT / name).exists(), name
    assert "'.[serve]'" in CONTAINER
    assert re.search(r"^serve = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert re.search(r"^USER (?!0|root)", CONTAINER, re.MULTILINE)


def test_health_is_asked_where_the_service_listens():
    known = parser().parse_args(from_container()[1:])
    port, path = re.search(r"http://127\.0\.0\.1:(\d+)(/[\w/]+)", CONTAINER).groups()
    assert int(port) == known.port
    assert f"EXPOSE {port}\n" in CONTAINER
    with in_process() as client:
        assert client.get(path).status_code == 200


def test_stopping_leaves_time_to_drain():
    known = parser().parse_args(from_unit()[1:])
    assert settings("KillSignal") == ["SIGTERM"]
    assert int(settings("TimeoutStopSec")[0]) > known.drain
    assert "STOPSIGNAL SIGTERM" in CONTAINER


def test_the_unit_may_do_nothing_but_listen_and_read():
    for setting in ("NoNewPrivileges", "DynamicUser", "PrivateTmp", "PrivateDevices"):
        assert settings(setting) == ["yes"]
    assert settings("CapabilityBoundingSet") == [""]
    assert settings("ProtectSystem") == ["strict"]
    (credential,) = settings("LoadCredential")
    assert f"%d/{credential.split(':')[0]}" in from_unit()


def test_what_the_readme_says_to_type_is_understood():
    lines = re.findall(r"^\$ vitreous (serve.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(lines) >= 2
    for line in lines:
        assert parser().parse_args(shlex.split(line, comments=True)).verb == "serve"
