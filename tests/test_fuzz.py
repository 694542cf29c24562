"""Damaged files get a sentence, never a crash and never half a result."""

import io
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import vitreous
from vitreous import CheckpointError, DataError, ImageError, ViTConfig
from vitreous.frontends.decode import decode

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM")


def mutated(content: bytes, luck: random.Random) -> bytes:
    """The content cut short, with bits turned over, or with a part repeated or left out."""
    data = bytearray(content)
    kind = luck.randrange(4)
    place = luck.randrange(len(data))
    if kind == 0:
        return bytes(data[:place])
    if kind == 1:
        for _ in range(luck.randint(1, 20)):
            data[luck.randrange(len(data))] ^= 1 << luck.randrange(8)
        return bytes(data)
    length = luck.randint(1, 64)
    part = data[place : place + length]
    return bytes(data[:place] + (part * 2 if kind == 2 else b"") + data[place + length :])


def decode_many(times: int) -> None:
    luck = random.Random(0)
    levels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    for turn in range(times):
        file = io.BytesIO()
        Image.fromarray(levels).save(file, format=FORMATS[turn % len(FORMATS)])
        try:
            pixels = decode(mutated(file.getvalue(), luck), max_pixels=1_000_000)
        except ImageError:
            continue
        assert pixels.dtype == np.uint8
        assert pixels.shape[2:] in ((), (3,))


def load_many(times: int, folder: Path) -> None:
    luck = random.Random(0)
    model = vitreous.build(ViTConfig(image_size=8, width=8, depth=1, heads=2))
    vitreous.save(model, folder)
    file = folder / "model.safetensors"
    whole = file.read_bytes()
    names = set(model.state_dict())
    for _ in range(times):
        file.write_bytes(mutated(whole, luck))
        try:
            loaded = vitreous.load(folder)
        except CheckpointError:
            continue
        assert set(loaded.state_dict()) == names
        assert all(tensor.device.type == "cpu" for tensor in loaded.state_dict().values())
        assert loaded(torch.zeros(1, loaded.config.channels, 8, 8)).shape[0] == 1


def read_many(times: int, folder: Path) -> None:
    luck = random.Random(0)
    images = np.random.default_rng(0).integers(0, 256, (12, 8, 8), dtype=np.uint8)
    labels = np.arange(12) % 2
    file = folder / "data.npz"
    np.savez_compressed(file, x_train=images, y_train=labels, x_test=images, y_test=labels)
    whole = file.read_bytes()
    for _ in range(times):
        file.write_bytes(mutated(whole, luck))
        try:
            dataset = vitreous.load_source(file)
        except DataError:
            continue
        assert len(dataset.train_images) == len(dataset.train_labels)


def test_damaged_images_are_read_or_refused():
    decode_many(140)


def test_damaged_weights_are_whole_or_refused(tmp_path: Path):
    load_many(100, tmp_path)


def test_damaged_data_are_read_or_refused(tmp_path: Path):
    read_many(100, tmp_path)


@pytest.mark.slow
def test_many_damaged_images_are_read_or_refused():
    decode_many(7_000)


@pytest.mark.slow
def test_many_damaged_weights_are_whole_or_refused(tmp_path: Path):
    load_many(3_000, tmp_path)


@pytest.mark.slow
def test_many_damaged_data_are_read_or_refused(tmp_path: Path):
    read_many(3_000, tmp_path)
