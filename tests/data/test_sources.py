"""Every source of data is read whole, in one order, or refused with a sentence."""

import gzip
import io
import struct
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vitreous
from vitreous.data.dataset import Dataset, fixed_order
from vitreous.data.sources import load_source, source_kind
from vitreous.data.sources.folder import natural
from vitreous.data.sources.idx import read_idx
from vitreous.errors import DataError
from vitreous.frontends.image import MNIST_INPUT

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (12, 6, 8), dtype=np.uint8)
LABELS = np.arange(12) % 3
KEYS = ("x_train", "y_train", "x_test", "y_test")
ARRAYS = dict(zip(KEYS, (IMAGES, LABELS, IMAGES[:6], LABELS[:6]), strict=True))


def idx(array: np.ndarray) -> bytes:
    """The bytes of an idx file (yann.lecun.com/exdb/mnist)."""
    head = struct.pack(">BBBB", 0, 0, 8, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def idx_folder(folder: Path, *, prefix: str = "", suffix: str = "", arrays=ARRAYS) -> Path:
    """The four files as they were published."""
    folder.mkdir(exist_ok=True)
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    for name, key in zip(names, KEYS, strict=True):
        data = idx(arrays[key])
        data = gzip.compress(data) if suffix == ".gz" else data
        (folder / f"{prefix}{name}-ubyte{suffix}").write_bytes(data)
    return folder


def save(levels: np.ndarray, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(levels).save(file)
    return file


def numbered(folder: Path, names: list[str], each: int = 1, size=(6, 8)) -> Path:
    """Class folders; every pixel of every image is the number of its class times 20."""
    for number, name in enumerate(names):
        for index in range(each):
            save(np.full(size, 20 * number, np.uint8), folder / name / f"{index}.png")
    return folder


def everything(dataset: Dataset) -> list[tuple[bytes, str]]:
    """Each image with the name of its class, the two parts together."""
    images = np.concatenate([dataset.train_images, dataset.test_images])
    labels = np.concatenate([dataset.train_labels, dataset.test_labels])
    pairs = zip(images, labels, strict=True)
    return sorted((image.tobytes(), dataset.class_names[label]) for image, label in pairs)


# MNIST


def test_mnist_is_whole_and_in_its_order():
    mnist = load_source("mnist")
    assert (len(mnist.train_images), len(mnist.test_images)) == (60_000, 10_000)
    assert int(mnist.train_images.sum(dtype=np.int64)) == 1_567_298_545
    assert int(mnist.test_images.sum(dtype=np.int64)) == 264_923_200
    assert mnist.train_labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert mnist.test_labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert mnist.input == MNIST_INPUT


def test_mnist_in_the_package_is_mnist_from_elsewhere(shared_data: Path):
    other = load_source(shared_data / "mnist.npz")
    assert other.hashes == load_source("mnist").hashes


# npz


def test_an_archive_gives_back_what_was_saved(tmp_path: Path):
    for save_as in (np.savez, np.savez_compressed):
        save_as(tmp_path / "data.npz", **ARRAYS)
        dataset = load_source(tmp_path / "data.npz")
        np.testing.assert_array_equal(dataset.train_images[:, 0], IMAGES)
        np.testing.assert_array_equal(dataset.train_labels, LABELS)
        np.testing.assert_array_equal(dataset.test_images[:, 0], IMAGES[:6])
        np.testing.assert_array_equal(dataset.test_labels, LABELS[:6])


def test_an_archive_names_its_classes(tmp_path: Path):
    np.savez(tmp_path / "data.npz", **ARRAYS, class_names=["cat", "dog", "newt"])
    assert load_source(tmp_path / "data.npz").class_names == ("cat", "dog", "newt")


def test_an_archive_of_other_keys_is_told_which_are_read(tmp_path: Path):
    np.savez(tmp_path / "data.npz", images=IMAGES, x_test=IMAGES)
    message = "holds images, x_test; x_train, y_train, y_test is missing"
    with pytest.raises(DataError, match=message):
        load_source(tmp_path / "data.npz")


def test_nothing_in_an_archive_is_unpickled(tmp_path: Path):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "exploded",))

    objects = np.array([Bomb()], object)
    np.savez(tmp_path / "data.npz", **(ARRAYS | {"y_train": objects}))
    with pytest.raises(DataError, match="y_train cannot be read: Object arrays"):
        load_source(tmp_path / "data.npz")
    (tmp_path / "pickled.npz").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(DataError, match=r"pickled\.npz is damaged or no \.npz file"):
        load_source(tmp_path / "pickled.npz")
    assert not (tmp_path / "exploded").exists()


def test_a_damaged_archive_is_refused_wherever_it_is_damaged(tmp_path: Path):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **ARRAYS)
    whole, file = buffer.getvalue(), tmp_path / "data.npz"
    turned = bytearray(whole)
    turned[120] ^= 255
    for damaged in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1], bytes(turned)):
        file.write_bytes(damaged)
        with pytest.raises(DataError, match=r"data\.npz"):
            load_source(file)


def test_a_single_array_is_no_archive(tmp_path: Path):
    with (tmp_path / "data.npz").open("wb") as file:
        np.save(file, IMAGES)
    with pytest.raises(DataError, match="holds a single array, no archive of x_train"):
        load_source(tmp_path / "data.npz")


@pytest.mark.parametrize("key", KEYS)
def test_an_array_without_sides_is_refused(tmp_path: Path, key: str):
    np.savez(tmp_path / "data.npz", **(ARRAYS | {key: np.uint8(3)}))
    with pytest.raises(DataError, match=r"data\.npz"):
        load_source(tmp_path / "data.npz")


def test_a_missing_archive_is_named(tmp_path: Path):
    with pytest.raises(DataError, match=r"none\.npz does not exist"):
        load_source(tmp_path / "none.npz")


# idx


def test_idx_files_packed_or_not_hold_the_arrays(tmp_path: Path):
    plain = load_source(idx_folder(tmp_path / "plain"))
    packed = load_source(idx_folder(tmp_path / "packed", suffix=".gz"))
    np.testing.assert_array_equal(plain.train_images[:, 0], IMAGES)
    np.testing.assert_array_equal(plain.test_labels, LABELS[:6])
    assert plain.hashes == packed.hashes


def test_emnist_lies_on_its_side_and_is_transposed(tmp_path: Path):
    """PHO-08: a turn, or a turn and the other flip, would leave mirror images."""
    small = np.array([[[1, 2], [3, 4]]] * 2, np.uint8)
    arrays = dict(zip(KEYS, (small, [1, 0], small, [0, 1]), strict=True))
    arrays = {key: np.asarray(array) for key, array in arrays.items()}
    plain = idx_folder(tmp_path / "plain", arrays=arrays)
    emnist = idx_folder(tmp_path / "emnist", prefix="emnist-digits-", arrays=arrays)
    stored, upright = [[1, 2], [3, 4]], [[1, 3], [2, 4]]
    for folder, options, wanted in (
        (plain, {}, stored),
        (plain, {"transpose": True}, upright),
        (emnist, {}, upright),
        (emnist, {"transpose": False}, stored),
    ):
        dataset = load_source(folder, **options)
        assert dataset.train_images[0, 0].tolist() == wanted
        assert dataset.test_images[0, 0].tolist() == wanted
        assert ("transposed" in dataset.note) == (wanted == upright)
        assert dataset.options == options


def test_transposing_swaps_the_sides_of_an_oblong(tmp_path: Path):
    """PHO-08."""
    dataset = load_source(idx_folder(tmp_path), transpose=True)
    np.testing.assert_array_equal(dataset.train_images[:, 0], IMAGES.transpose(0, 2, 1))
    assert dataset.input.size == (8, 6)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "begins with ; it is no idx file"),
        (b"\0\0\x0d\x03" + bytes(20), "begins with 00 00 0d 03"),
        (b"\x89PNG\r\n", "begins with 89 50 4e 47"),
        (idx(IMAGES)[:9], "is cut short: 9 bytes of a header of 16"),
        (idx(IMAGES)[:-1], r"has 591 bytes; its sizes \(12, 6, 8\) need 592"),
        (idx(IMAGES) + b"\0", "has 593 bytes"),
        (b"\0\0\x08\x03" + b"\xff" * 12, "need 79228162458924105385300197391"),
    ],
)
def test_an_idx_file_that_is_not_whole_is_refused_with_its_sizes(tmp_path, data, message: str):
    file = idx_folder(tmp_path) / "train-images-idx3-ubyte"
    file.write_bytes(data)
    with pytest.raises(DataError, match=message):
        load_source(tmp_path)


@pytest.mark.parametrize("keep", [5, 40, -1])
def test_a_packed_file_cut_short_is_refused(tmp_path: Path, keep: int):
    file = tmp_path / "train-images-idx3-ubyte.gz"
    file.write_bytes(gzip.compress(idx(IMAGES))[:keep])
    with pytest.raises(DataError, match=r"ubyte\.gz cannot be read"):
        read_idx(file)


def test_a_missing_companion_is_named(tmp_path: Path):
    (idx_folder(tmp_path) / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="holds no test labels: t10k-labels-idx1-ubyte"):
        load_source(tmp_path)


def test_a_file_that_is_there_packed_and_unpacked_is_refused(tmp_path: Path):
    idx_folder(tmp_path)
    idx_folder(tmp_path, suffix=".gz")
    with pytest.raises(DataError, match="the train images more than once"):
        load_source(tmp_path)


# Folders of classes


def test_class_ten_comes_after_class_nine(tmp_path: Path):
    """TRN-11: sorted as texts, index 2 would be the folder "10"."""
    names = [str(number) for number in range(12)]
    dataset = load_source(numbered(tmp_path, names))
    assert dataset.class_names == tuple(names)
    for image, name in everything(dataset):
        assert set(image) == {20 * int(name)}


def test_an_answer_is_the_name_of_the_folder(tmp_path: Path):
    """TRN-11: also after the model was saved and loaded."""
    names = [str(number) for number in range(12)]
    dataset = load_source(numbered(tmp_path / "data", names, size=(8, 8)))
    model = vitreous.build(vitreous.ViTConfig(image_size=8, width=8, depth=1, heads=2, classes=12))
    model.image_input, model.class_names = dataset.input, list(dataset.class_names)
    vitreous.save(model, tmp_path / "run")
    model = vitreous.load(tmp_path / "run")
    mean, std = dataset.input.mean[0], dataset.input.std[0]

    def index_of(images: torch.Tensor) -> torch.Tensor:
        levels = (images[:, 0, 0, 0] * std + mean) * 255
        return torch.nn.functional.one_hot((levels / 20).round().long(), 12).float()

    model.forward = index_of
    files = [str(tmp_path / "data" / name / "0.png") for name in names]
    assert [answer.label for answer in vitreous.predict(model, files)] == names


def test_numbers_in_names_are_sorted_by_their_value():
    names = ["b", "a10", "10", "a9", "2", "a09", "9", "-1", "1.10", "1.9", "٣"]
    wanted = ["1.9", "1.10", "2", "9", "10", "-1", "a09", "a9", "a10", "b", "٣"]
    assert sorted(names, key=natural) == wanted


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Thirty noisy pictures of three classes and many sizes, one in three a JPEG."""
    luck = np.random.default_rng(1)
    for index in range(30):
        y, x = luck.integers(9, 20, 2)
        ending = "jpg" if index % 3 == 0 else "png"
        levels = luck.integers(0, 256, (y, x, 3), dtype=np.uint8)
        save(levels, tmp_path / "photos" / "abc"[index // 10] / f"{index}.{ending}")
    return tmp_path / "photos"


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_changes_nothing(photos: Path, workers: int):
    """TRN-06 and TRN-05: images, labels, their order, and what is said of them."""
    (photos / "a" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    alone, together = (
        load_source(photos, workers=count, image_size=16, skip_corrupt=True)
        for count in (0, workers)
    )
    assert together.hashes == alone.hashes
    assert (together.note, together.input) == (alone.note, alone.input)
    assert together.options == alone.options


def test_reading_twice_gives_the_same_order(photos: Path):
    assert load_source(photos).hashes == load_source(photos).hashes


def test_files_are_taken_in_natural_order_whenever_they_were_made(tmp_path: Path):
    names = ["a/1.png", "a/2.png", "a/10.png", "b/1.png", "b/2.png", "b/3.png"]
    levels = {name: RNG.integers(0, 256, (6, 8), dtype=np.uint8) for name in names}
    for folder, order in (("forward", names), ("backward", names[::-1])):
        for name in order:
            save(levels[name], tmp_path / folder / name)
    for folder in ("forward", "backward"):
        dataset = load_source(tmp_path / folder)
        images = np.concatenate([dataset.train_images, dataset.test_images])[:, 0]
        wanted = [levels[names[index]] for index in fixed_order(6)]
        np.testing.assert_array_equal(images, wanted)


def test_every_image_is_in_exactly_one_part(photos: Path):
    dataset = load_source(photos)
    assert (len(dataset.train_images), len(dataset.test_images)) == (24, 6)
    assert len(set(everything(dataset))) == 30
    assert set(dataset.train_labels) == {0, 1, 2}


def test_neither_the_test_nor_the_last_fifth_is_cut_from_a_sorted_row(tmp_path: Path):
    dataset = load_source(numbered(tmp_path, list("abcdefghij"), each=10))
    assert len(set(dataset.test_labels)) > 5
    assert len(set(dataset.train_labels[-16:])) > 5


def test_folders_train_and_test_are_the_two_parts(tmp_path: Path):
    numbered(tmp_path / "train", ["a", "b", "c"], each=3)
    numbered(tmp_path / "test", ["a", "b"], each=2)
    dataset = load_source(tmp_path)
    assert sorted(dataset.train_images[:, 0, 0, 0]) == [0, 0, 0, 20, 20, 20, 40, 40, 40]
    assert dataset.test_images[:, 0, 0, 0].tolist() == [0, 0, 20, 20]
    np.testing.assert_array_equal(dataset.train_images[:, 0, 0, 0], 20 * dataset.train_labels)
    np.testing.assert_array_equal(dataset.test_images[:, 0, 0, 0], 20 * dataset.test_labels)
    assert dataset.train_labels.tolist() != sorted(dataset.train_labels)


def test_a_class_that_is_only_tested_is_refused(tmp_path: Path):
    numbered(tmp_path / "train", ["a", "b"])
    numbered(tmp_path / "test", ["a", "zebra"])
    with pytest.raises(DataError, match="tests classes that are not trained: zebra"):
        load_source(tmp_path)


def test_a_test_folder_without_a_training_folder_is_refused(tmp_path: Path):
    numbered(tmp_path / "test", ["a", "b"])
    with pytest.raises(DataError, match="a folder test but no folder train"):
        load_source(tmp_path)


def test_a_class_without_images_is_refused_by_name(tmp_path: Path):
    numbered(tmp_path, ["a", "b"])
    (tmp_path / "hollow").mkdir()
    with pytest.raises(DataError, match="folder of class 'hollow' holds no images"):
        load_source(tmp_path)


def test_hidden_files_and_other_files_are_passed_over(tmp_path: Path):
    numbered(tmp_path, ["a", "b"], each=3)
    (tmp_path / ".cache").mkdir()
    (tmp_path / "README").touch()
    (tmp_path / "a" / "notes.txt").write_text("none")
    (tmp_path / "a" / "._0.png").write_bytes(b"what a Mac leaves on a stick")
    assert len(everything(load_source(tmp_path))) == 6


def test_all_corrupt_files_are_named_at_once(photos: Path):
    for name in ("a/x.png", "b/y.jpg", "c/z.png"):
        (photos / name).write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"3 corrupt files: .*a/x\.png.*b/y\.jpg.*c/z\.png"):
        load_source(photos)


def test_corrupt_files_are_left_out_on_request_and_noted(photos: Path):
    clean = load_source(photos)
    (photos / "a" / "zz.png").write_bytes(b"no picture")
    dataset = load_source(photos, skip_corrupt=True)
    assert everything(dataset) == everything(clean)
    assert "left out: 1 corrupt file: " in dataset.note
    assert "a/zz.png" in dataset.note
    assert dataset.options == {"skip_corrupt": True}


def test_nothing_is_left_of_nothing_but_corrupt_files(tmp_path: Path):
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").touch()
    with pytest.raises(DataError, match="2 corrupt files"):
        load_source(tmp_path, skip_corrupt=True)


def test_progress_counts_every_file(photos: Path):
    seen: list[tuple[int, int]] = []
    load_source(photos, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(done, 30) for done in range(1, 31)] * 2


def test_pictures_of_one_size_keep_it_and_of_many_sizes_become_64(photos: Path, tmp_path: Path):
    assert load_source(photos).input.size == (64, 64)
    one = numbered(tmp_path / "one", ["a", "b"], each=3, size=(6, 8))
    assert load_source(one).input.size == (6, 8)
    assert load_source(one, image_size=(10, 4)).train_images.shape[2:] == (10, 4)


def test_grey_pictures_in_colour_files_are_grey(tmp_path: Path):
    for name, level in (("a", 10), ("b", 90), ("c", 200)):
        for index in range(2):
            save(np.full((6, 8, 3), level, np.uint8), tmp_path / name / f"{index}.png")
    assert load_source(tmp_path).input.channels == 1
    assert load_source(tmp_path, channels=3).train_images.shape[1] == 3
    save(np.full((6, 8, 3), (10, 10, 11), np.uint8), tmp_path / "c" / "2.png")
    assert load_source(tmp_path).input.channels == 3


def test_mean_and_deviation_are_those_of_the_training_part(photos: Path):
    dataset = load_source(photos)
    shares = dataset.train_images.astype(np.float64) / 255
    assert dataset.input.mean == pytest.approx(shares.mean(axis=(0, 2, 3)), abs=6e-5)
    assert dataset.input.std == pytest.approx(shares.std(axis=(0, 2, 3)), abs=6e-5)


def test_the_resize_rule_is_the_one_asked_for_and_is_stated(tmp_path: Path):
    halves = np.zeros((8, 16, 3), np.uint8)
    halves[:, 4:12] = 255
    for name in "ab":
        for index in range(3):
            save(halves, tmp_path / name / f"{index}.png")
    white = {
        rule: (load_source(tmp_path, image_size=8, resize=rule).train_images[0, 0] > 200).sum()
        for rule in ("stretch", "crop", "pad")
    }
    assert white["crop"] > white["stretch"] > white["pad"]
    dataset = load_source(tmp_path, image_size=8, resize="pad")
    assert dataset.note == "images are 8×8 in grey, resize rule pad"
    assert dataset.options == {"image_size": 8, "resize": "pad"}


def test_photographed_digits_are_prepared_on_request(tmp_path: Path):
    paper = np.full((60, 90), 250, np.uint8)
    paper[10:50, 40:45] = 20
    for name in "17":
        for index in range(3):
            save(paper, tmp_path / name / f"{index}.png")
    as_pictures, as_digits = load_source(tmp_path), load_source(tmp_path, kind="digit")
    assert as_pictures.train_images[0, 0, 0, 0] == 250
    assert as_digits.train_images[0, 0, 0, 0] == 0
    assert as_digits.input == MNIST_INPUT


def test_mnist_as_pictures_in_folders_is_mnist(tmp_path: Path):
    mnist = load_source("mnist")
    for index in range(40):
        name = str(mnist.test_labels[index])
        save(mnist.test_images[index, 0], tmp_path / name / f"{index}.png")
    dataset = load_source(tmp_path)
    wanted = zip(mnist.test_images[:40], mnist.test_labels[:40], strict=True)
    assert everything(dataset) == sorted((i.tobytes(), str(label)) for i, label in wanted)
    assert dataset.input == MNIST_INPUT


# The hub

REVISION = "6bbb59474efaf5edfb62408686909305dbd45335"
ROUTE = f"/datasets/some-one/digits/resolve/{REVISION}/sets/small.npz"
SPEC = f"hf:some-one/digits@{REVISION}:sets/small.npz"


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as one file needs."""

    content = b""
    asked: list[str]

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        self.asked.append(f"{self.command} {self.path}")
        found = self.path == ROUTE
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(self.content) if found else 0))
        if found:
            self.send_header("ETag", '"0123456789abcdef"')
            self.send_header("X-Repo-Commit", REVISION)
        else:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if found and self.command == "GET":
            self.wfile.write(self.content)

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A stand-in on this machine, which the hub's client takes for the hub."""
    pytest.importorskip("huggingface_hub", reason="the extra vitreous[hub] is not installed")
    from huggingface_hub import constants

    buffer = io.BytesIO()
    np.savez(buffer, **ARRAYS)
    handler = type("Handler", (Hub,), {"content": buffer.getvalue(), "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        place = f"http://127.0.0.1:{server.server_port}"
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(constants, "ENDPOINT", place)
        monkeypatch.setattr(
            constants,
            "HUGGINGFACE_CO_URL_TEMPLATE",
            place + "/{repo_id}/resolve/{revision}/{filename}",
        )
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield handler
        server.shutdown()
        thread.join()


def test_a_file_on_the_hub_is_read_at_its_revision_and_fetched_once(hub: type[Hub]):
    dataset = load_source(SPEC)
    np.testing.assert_array_equal(dataset.train_images[:, 0], IMAGES)
    assert dataset.name == SPEC
    assert load_source(SPEC).hashes == dataset.hashes
    assert hub.asked.count(f"GET {ROUTE}") == 1


def test_a_file_that_the_hub_has_not_is_named(hub: type[Hub]):
    spec = SPEC.replace("small", "other")
    with pytest.raises(DataError, match=f"^{spec} could not be had from the hub: "):
        load_source(spec)


def test_a_damaged_file_on_the_hub_is_named_by_its_specification(hub: type[Hub]):
    hub.content = hub.content[:200]
    with pytest.raises(DataError, match=f"^{SPEC} is damaged"):
        load_source(SPEC)


def test_without_the_hubs_client_its_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"needs the hub's client: pip install 'vitreous\[hub\]'"):
        load_source(SPEC)


@pytest.mark.parametrize(
    "spec",
    ["hf:digits@main:a.npz", "hf:a/b:c.npz", "hf:a/b@main", "hf:a/b@main:c.csv", "hf:a/b@:c.npz"],
)
def test_a_hub_specification_of_another_form_is_told_the_form(spec: str):
    with pytest.raises(DataError, match="is not of the form hf:OWNER/NAME@REVISION:path"):
        load_source(spec)


# The table of sources


def test_each_specification_belongs_to_one_source(tmp_path: Path):
    numbered(tmp_path / "folder", ["a", "b"])
    idx_folder(tmp_path / "idx")
    kinds = {
        "mnist": "mnist",
        SPEC: "hub",
        "any/where.npz": "npz",
        str(tmp_path / "idx"): "idx",
        str(tmp_path / "folder"): "folder",
    }
    assert {name: source_kind(name) for name in kinds} == kinds


def test_an_unknown_specification_is_told_what_is_known(tmp_path: Path):
    with pytest.raises(DataError, match="there is no data called 'mnst': it is not 'mnist', no"):
        load_source("mnst")
    with pytest.raises(DataError, match="is a folder without data: neither idx files"):
        load_source(tmp_path)


def test_an_option_that_a_source_has_not_is_refused(tmp_path: Path):
    with pytest.raises(DataError, match="is read as mnist, which has no option resize, transpose"):
        load_source("mnist", transpose=True, resize="pad", workers=2)


def test_a_data_set_is_passed_through():
    dataset = load_source("mnist")
    assert load_source(dataset) is dataset
