from dataclasses import replace
from itertools import islice

import pytest
import torch

from tests.training.small import AUGMENTATION, CONFIG, equal, make_job, outcome
from vitreous.training import run as runs
from vitreous.training.run import fresh_state, run


def order_and_pixels(job, tmp_path, monkeypatch) -> tuple[list[list[int]], list[torch.Tensor]]:
    """Which images the first epoch's batches held, and what had become of them."""
    plain = runs.augmented
    ids, pixels = [], []

    def watched(images, *others):
        changed = plain(images, *others)
        ids.append(images[:, 0, 0, 0].tolist())
        pixels.append(changed.float())
        return changed

    monkeypatch.setattr(runs, "augmented", watched)
    list(islice(run(job, tmp_path), 5))
    return ids, pixels


def test_augmentation_moves_neither_order_nor_first_weights(tmp_path, monkeypatch):
    plain, changed = make_job(), make_job(**AUGMENTATION)
    assert equal(fresh_state(plain).weights, fresh_state(changed).weights)
    order, pixels = order_and_pixels(plain, tmp_path / "plain", monkeypatch)
    monkeypatch.undo()
    same, moved = order_and_pixels(changed, tmp_path / "changed", monkeypatch)
    assert order == same
    assert not any(torch.equal(a, b) for a, b in zip(pixels, moved, strict=True))


def test_dropout_moves_neither_order_nor_augmentation(tmp_path, monkeypatch):
    job = make_job(**AUGMENTATION)
    still = make_job(config=replace(CONFIG, dropout=0.0, drop_path=0.0), **AUGMENTATION)
    order, pixels = order_and_pixels(job, tmp_path / "one", monkeypatch)
    monkeypatch.undo()
    same, equally = order_and_pixels(still, tmp_path / "two", monkeypatch)
    assert order == same
    assert all(torch.equal(a, b) for a, b in zip(pixels, equally, strict=True))


def test_dropout_itself_is_at_work_and_differs_from_step_to_step():
    model = fresh_state(make_job()).working.master.train()
    image = torch.ones(1, 1, 8, 8)
    torch.manual_seed(1)
    assert not torch.equal(model(image), model(image))


def test_one_image_is_augmented_differently_at_every_step_and_alike_at_the_same():
    recipe = make_job(**AUGMENTATION).recipe
    images = torch.arange(64, dtype=torch.uint8).view(1, 1, 8, 8)
    steps = [runs.augmented(images, recipe, 0, step) for step in (0, 1, 0)]
    assert torch.equal(steps[0], steps[2])
    assert not torch.equal(steps[0], steps[1])
    assert not torch.equal(steps[0], runs.augmented(images, recipe, 1, 0))


def test_making_the_first_weights_leaves_the_callers_random_numbers_alone():
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    one = fresh_state(make_job()).weights
    assert torch.equal(torch.rand(3), wanted)
    assert equal(one, fresh_state(make_job()).weights)


def test_seeds_differ_in_weights_and_in_order(tmp_path, monkeypatch):
    one, two = make_job(seed=0), make_job(seed=1)
    assert not equal(fresh_state(one).weights, fresh_state(two).weights)
    order, _ = order_and_pixels(one, tmp_path / "one", monkeypatch)
    monkeypatch.undo()
    other, _ = order_and_pixels(two, tmp_path / "two", monkeypatch)
    assert order != other


def test_a_listener_that_draws_random_numbers_changes_nothing(tmp_path, no_report):
    job = make_job(**AUGMENTATION)
    for name in ("quiet", "noisy"):
        for _event in run(job, tmp_path / name):
            if name == "noisy":
                torch.manual_seed(9)
                torch.rand(7)
    assert outcome(tmp_path / "quiet") == outcome(tmp_path / "noisy")


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_job_gives_the_same_bits(precision, tmp_path, no_report):
    for name in ("one", "two"):
        list(run(make_job(precision=precision, **AUGMENTATION), tmp_path / name))
    assert outcome(tmp_path / "one") == outcome(tmp_path / "two")
