"""Mutated files: refused with a sentence or loaded whole; never a crash, never half a model."""

import json
import struct

import numpy as np
import pytest
import torch

from tests.interop.golden_weights import CASES, DAMAGED
from vitreous import CheckpointError, load_weights

SEEDS = [case for case in CASES if case.name != "hf_siglip_whole"]
ALL = 1_000


def mutated(content: bytes, stream: np.random.Generator) -> bytes:
    """Bytes with a few changed, cut off, put in, or a header of safetensors edited."""
    data = bytearray(content)
    kind = stream.integers(5)
    place = int(stream.integers(len(data)))
    if kind == 0:
        for _ in range(stream.integers(1, 20)):
            data[int(stream.integers(len(data)))] = int(stream.integers(256))
    elif kind == 1:
        del data[place:]
    elif kind == 2:
        data[place:place] = stream.bytes(int(stream.integers(1, 64)))
    elif kind == 3:
        del data[place : place + int(stream.integers(1, 64))]
    else:
        return edited(content, stream)
    return bytes(data)


def edited(content: bytes, stream: np.random.Generator) -> bytes:
    """Another header over the same numbers: names, shapes and dtypes shuffled or renamed."""
    try:
        (size,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + size])
    except (ValueError, UnicodeDecodeError, struct.error):
        return content[: len(content) // 2]
    names = [name for name in header if name != "__metadata__"]
    one, two = stream.choice(names, 2, replace=False)
    match stream.integers(4):
        case 0:
            header[one], header[two] = header[two], header[one]
        case 1:
            header[f"{one}.{two}"] = header.pop(one)
        case 2:
            header[one]["shape"] = header[one]["shape"][::-1]
        case _:
            header[one]["dtype"] = str(stream.choice(["I32", "F16", "BOOL", "F64", "U8"]))
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]


def weights_file(case):
    if case.path.is_file():
        return case.path
    return next(path for path in case.path.iterdir() if path.name == "model.safetensors")


def attempt(folder, number: int) -> str:
    """One mutated file, with or without its config: what became of it."""
    stream = np.random.default_rng(number)
    case = SEEDS[number % len(SEEDS)]
    source = weights_file(case)
    path = folder / f"a{source.suffix}"
    path.write_bytes(mutated(source.read_bytes(), stream))
    beside = source.with_name("config.json")
    (folder / "config.json").unlink(missing_ok=True)
    if beside.exists() and stream.integers(2):
        text = beside.read_bytes()
        whole = stream.integers(3) > 0
        (folder / "config.json").write_bytes(text if whole else mutated(text, stream))
    try:
        model, report = load_weights(path, case.meta["arch"]["heads"])
    except CheckpointError as error:
        named = str(folder) in str(error) and len(str(error)) < 2_000
        return "refused" if named else f"refused without its name: {error}"
    # What loads is whole: every number is there and finite, and it answers.
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert not any(tensor.is_meta for tensor in model.state_dict().values())
    assert report.rows
    config = model.config
    if config.tokens < 2_000:
        with torch.no_grad():
            model(torch.zeros(1, config.channels, *config.image_shape))
    return "loaded"


def test_a_mutated_file_is_refused_or_whole(tmp_path):
    ends = [attempt(tmp_path, number) for number in range(ALL // 10)]
    assert {"refused", "loaded"} == set(ends)


@pytest.mark.slow
def test_a_thousand_mutated_files_are_refused_or_whole(tmp_path):
    ends = [attempt(tmp_path, number) for number in range(ALL // 10, ALL)]
    assert ends.count("refused") > ALL / 2


def test_every_cut_of_a_file_is_refused(tmp_path):
    content = (DAMAGED / "model.safetensors").read_bytes()
    path = tmp_path / "a.safetensors"
    for end in range(0, len(content), 97):
        path.write_bytes(content[:end])
        with pytest.raises(CheckpointError):
            load_weights(path, 2)
