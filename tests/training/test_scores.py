import json

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.training.small import digits, make_job
from vitreous.frontends.image import ImageInput, normalise
from vitreous.models.classifier import build
from vitreous.training import evaluate
from vitreous.training.evaluate import score
from vitreous.training.run import fresh_state, labelled, run

PIXEL = ImageInput(size=(1, 1), channels=1, kind="picture", resize="crop", mean=(0.0,), std=(1.0,))


class ReadsBrightness(nn.Module):
    """Answers 1 for a bright pixel and 0 for a dark one, the surer the brighter."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        bright = images.flatten() * self.one
        return torch.stack([1 - bright, bright], dim=1)


def batches_of(*counts: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Images and labels of batches with so many right and so many in all."""
    right = torch.cat([torch.arange(size) < good for good, size in counts])
    shades = torch.arange(len(right)) % 90
    images = torch.where(right, 255 - shades, shades).to(torch.uint8).view(-1, 1, 1, 1)
    return images, torch.ones(len(right), dtype=torch.int64)


def test_accuracy_is_over_images_and_not_over_batches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluate, "BATCH", 256)
    images, labels = batches_of((179, 256), (205, 256), (9, 10))
    result = score(ReadsBrightness(), images, labels, PIXEL)
    assert (result.correct, result.n) == (393, 522)
    assert result.accuracy == pytest.approx(0.752874, abs=1e-6)


@pytest.mark.parametrize("batch", [1, 7, 256, 521, 1000])
def test_a_score_does_not_depend_on_the_batch(batch: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(evaluate, "BATCH", batch)
    images, labels = batches_of((179, 256), (205, 256), (9, 10))
    result = score(ReadsBrightness(), images, labels, PIXEL)
    logits = ReadsBrightness()(normalise(images, PIXEL))
    assert result.loss == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-6)
    assert result.predictions == tuple(logits.argmax(1).tolist())
    assert result.accuracy == 393 / 522


def test_the_training_loss_of_an_epoch_is_over_images_too(tmp_path, no_report):
    job = make_job(dataset=digits(27), epochs=1)  # 22 to train on: five batches of 4, one of 2
    losses, epoch = [], None
    for event in run(job, tmp_path / "run"):
        if hasattr(event, "images"):
            losses += [event.loss] * event.images
        epoch = epoch or getattr(event, "train_loss", None)
    assert len(losses) == 22
    assert epoch == pytest.approx(sum(losses) / 22, rel=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_scoring_leaves_mode_weights_and_gradients_as_they_were(training: bool):
    job = make_job()
    model = fresh_state(job).working.master.train(training)
    before = {name: t.clone() for name, t in model.state_dict().items()}
    score(model, *labelled(job, torch.arange(20).numpy()), job.dataset.input)
    assert model.training is training
    assert all(torch.equal(t, before[name]) for name, t in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_dropout_plays_no_part_in_a_score():
    job = make_job()
    model = build(job.config).train()
    data = labelled(job, torch.arange(20).numpy())
    assert score(model, *data, job.dataset.input) == score(model, *data, job.dataset.input)


def test_one_other_answer_changes_the_hash_of_all():
    images, labels = batches_of((3, 5))
    result = score(ReadsBrightness(), images, labels, PIXEL)
    other = score(ReadsBrightness(), images.flip(0), labels, PIXEL)
    assert result.correct == other.correct
    assert result.predictions_sha256 != other.predictions_sha256


def test_the_test_set_plays_no_part_in_training(tmp_path, no_report):
    job, other = make_job(keep="best", patience=2), digits()
    other.test_images[:] = 255 - other.test_images
    other.test_labels[:] = 2 - other.test_labels
    ends = []
    for name, dataset in (("one", job.dataset), ("two", other)):
        out = tmp_path / name
        list(run(make_job(dataset=dataset, keep="best", patience=2), out))
        history = json.loads((out / "history.json").read_text())
        losses = [(e["train_loss"], e["validation_loss"]) for e in history]
        ends.append(((out / "model.safetensors").read_bytes(), losses))
    assert ends[0] == ends[1]


def test_the_test_images_are_first_scored_after_the_last_epoch(tmp_path, no_report, monkeypatch):
    job, told = make_job(), []

    def watched(model, images, labels, image_input):
        is_test = images.shape == torch.Size(job.dataset.test_images.shape)
        told.append("test" if is_test else "validation")
        return score(model, images, labels, image_input)

    monkeypatch.setattr("vitreous.training.run.score", watched)
    for event in run(job, tmp_path / "run"):
        if hasattr(event, "validation_loss"):
            told.append("epoch")
    assert told == ["validation", "epoch"] * 3 + ["validation", "test"]
