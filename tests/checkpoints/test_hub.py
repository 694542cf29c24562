"""A checkpoint on the hub, against a stand-in on this machine that speaks as the hub does."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import environ
from pathlib import Path

import pytest
import torch

from vitreous.checkpoints.hub import is_hub_name
from vitreous.checkpoints.store import CONFIG, WEIGHTS, load, save
from vitreous.config import ViTConfig
from vitreous.errors import CheckpointError
from vitreous.models.classifier import build

SMALL = ViTConfig(image_size=8, patch_size=4, width=8, depth=1, heads=2, classes=3)
NAME = "some-one/small-vit"
COMMIT = "6bbb59474efaf5edfb62408686909305dbd45335"


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as files of one repository need."""

    files: dict[str, bytes]
    asked: list[str]
    gated = False

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        self.asked.append(f"{self.command} {self.path}")
        content, refusal = self.find()
        self.send_response(404 if refusal else 200)
        if refusal:
            self.send_header("X-Error-Code", refusal)
        else:
            self.send_header("ETag", f'"{hash(content)}"')
            self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def find(self) -> tuple[bytes, str | None]:
        """The content, or the hub's word for what is absent."""
        name, found, rest = self.path.removeprefix("/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        if name != NAME or not found:
            return b"", "GatedRepo" if self.gated else "RepoNotFound"
        if revision not in ("main", "v1", COMMIT):
            return b"", "RevisionNotFound"
        return (self.files[file], None) if file in self.files else (b"", "EntryNotFound")

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    save(build(SMALL), folder)
    return folder


@pytest.fixture
def served(saved: Path) -> Iterator[tuple[str, type[Hub], ThreadingHTTPServer]]:
    """Its address, its handler and the server itself."""
    files = {name: (saved / name).read_bytes() for name in (CONFIG, WEIGHTS)}
    handler = type("Handler", (Hub,), {"files": files, "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", handler, server
        server.shutdown()
        thread.join()


@pytest.fixture
def hub(served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[Hub]:
    """The stand-in, which the hub's client in this process takes for the hub."""
    pytest.importorskip("huggingface_hub", reason="the extra vitreous[hub] is not installed")
    from huggingface_hub import constants

    place, handler, _ = served
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "ENDPOINT", place)
    template = place + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.chdir(tmp_path)
    return handler


def fetched(handler: type[Hub]) -> list[str]:
    """Which files were downloaded; the client also asks the hub other things."""
    got = [line for line in handler.asked if line.startswith("GET") and "/resolve/" in line]
    return [line.rpartition("/")[2] for line in got]


def test_a_repository_is_the_model_that_was_saved_and_is_fetched_once(hub, saved: Path):
    images = torch.rand(2, 1, 8, 8)
    wanted = load(saved)(images)
    assert torch.equal(load(NAME)(images), wanted)
    assert torch.equal(load(NAME)(images), wanted)
    assert sorted(fetched(hub)) == [CONFIG, WEIGHTS]


def test_what_was_fetched_once_loads_offline(hub, monkeypatch: pytest.MonkeyPatch):
    from huggingface_hub import constants

    load(NAME)
    hub.asked.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load(NAME).config == SMALL
    assert hub.asked == []


def test_offline_and_never_fetched_is_said(hub, monkeypatch: pytest.MonkeyPatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(CheckpointError, match="could not be reached, nor does its cache hold it"):
        load(NAME)


def test_all_files_are_of_one_commit(hub):
    load(NAME, revision="v1")
    heads = [line for line in hub.asked if line.startswith("HEAD")]
    assert heads[0].endswith(f"/resolve/v1/{CONFIG}")
    assert heads[1].endswith(f"/resolve/{COMMIT}/{WEIGHTS}")


def test_a_folder_here_wins_over_a_repository_of_that_name(hub, tmp_path: Path):
    model = build(SMALL)
    save(model, tmp_path / NAME)
    assert torch.equal(load(NAME).head.weight, model.head.weight)
    assert hub.asked == []
    with pytest.raises(CheckpointError, match="is not on the hub, and has no revision 'v1'"):
        load(NAME, revision="v1")


@pytest.mark.parametrize(
    ("name", "revision", "words"),
    [
        ("some-one/other", None, "shows no such repository"),
        (NAME, "v9", "has no revision 'v9' of it"),
    ],
)
def test_what_the_hub_has_not_is_named(name, revision, words, hub):
    with pytest.raises(CheckpointError, match=f"^{name}: there is no such folder here.*{words}"):
        load(name, revision=revision)


def test_a_repository_without_our_files_is_named(hub):
    del hub.files[WEIGHTS]
    with pytest.raises(CheckpointError, match="without the files of a checkpoint of ours"):
        load(NAME)


def test_a_licence_that_was_not_accepted_is_said(hub):
    hub.gated = True
    with pytest.raises(CheckpointError, match="wants a licence accepted or a token"):
        load("some-one/gated")


def test_a_damaged_download_is_refused(hub):
    hub.files[WEIGHTS] = hub.files[WEIGHTS][:100]
    with pytest.raises(CheckpointError, match="not a whole safetensors file"):
        load(NAME)


def test_without_the_hubs_client_its_extra_is_named(monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(CheckpointError, match=r"there is no such folder .* 'vitreous\[hub\]'"):
        load(NAME)


@pytest.mark.parametrize("place", ["model", "./a/b", "/a/b", "a/b/c", "../a", "a/", Path("a/b")])
def test_a_path_is_never_asked_of_the_hub(place, hub):
    assert not is_hub_name(place)
    with pytest.raises(CheckpointError, match="there is no such file"):
        load(place)
    assert hub.asked == []


@pytest.mark.slow
def test_a_fresh_process_goes_where_hf_endpoint_says(served, tmp_path: Path):
    pytest.importorskip("huggingface_hub", reason="the extra vitreous[hub] is not installed")
    place, handler, _ = served
    home = {"HF_ENDPOINT": place, "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    script = f"import vitreous; print(vitreous.load({NAME!r}).config.width)"
    for offline in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environ | home | {"HF_HUB_OFFLINE": offline, "OMP_NUM_THREADS": "1"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.stdout == "8\n", done.stderr
    assert sorted(fetched(handler)) == [CONFIG, WEIGHTS]
