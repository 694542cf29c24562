"""What features are worth: a linear probe and nearest neighbours."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.small import CONFIG, digits
from vitreous.checkpoints.store import load, save
from vitreous.errors import CheckpointError
from vitreous.frontends.image import normalise
from vitreous.models.classifier import build
from vitreous.protocol import ledger
from vitreous.protocol.splits import training_and_validation
from vitreous.training import probe as probing
from vitreous.training.folder import LEDGER
from vitreous.training.probe import PENALTIES, PROBE, Linear, Nearest, Part, fit_linear, probe

DATA = digits(60, 20)


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    save(build(CONFIG), tmp_path / "weights")
    return tmp_path / "weights"


def part(n: int, d: int, classes: int, seed: int) -> Part:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(n, d, generator=generator)
    return Part(features, torch.randint(classes, (n,), generator=generator))


def test_the_linear_probe_stands_where_the_gradient_of_its_loss_is_zero():
    some = part(80, 5, 3, seed=0)
    inputs = some.features.double()
    weight = fit_linear(inputs, some.labels, 0.01, torch.zeros(6, 3, dtype=torch.double))
    chances = (inputs @ weight[:-1] + weight[-1]).softmax(dim=1)
    wrong = chances - torch.nn.functional.one_hot(some.labels, 3)
    by_weight = inputs.T @ wrong / 80 + 0.01 * weight[:-1]
    assert by_weight.abs().max() < 1e-5
    assert wrong.mean(0).abs().max() < 1e-5  # the bias has no penalty


def test_a_stronger_penalty_makes_smaller_weights():
    weights = Linear(part(80, 5, 3, seed=1), 3).weights
    sizes = [weights[penalty][:-1].norm().item() for penalty in PENALTIES]
    assert sizes == sorted(sizes)
    assert sizes[0] < 0.5 * sizes[-1]


def test_features_may_be_shifted_and_scaled_without_changing_the_probe():
    some, other = part(80, 5, 3, seed=2), part(20, 5, 3, seed=3)
    change = lambda x: x * torch.tensor([1.0, 10.0, 0.1, 5.0, 2.0]) + 7.0
    plain = Linear(some, 3).answers(other.features, [0.01])
    changed = Linear(Part(change(some.features), some.labels), 3)
    moved = changed.answers(change(other.features), [0.01])
    torch.testing.assert_close(moved, plain, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("k", [1, 5, 10])
def test_neighbours_vote_as_a_loop_over_all_of_them_says(k: int):
    some, other = part(40, 6, 3, seed=4), part(9, 6, 3, seed=5)
    way = Nearest(some, 3)
    found = way.answers(other.features, way.choices)[k].argmax(1).tolist()
    assert found == [by_hand(some, query, k) for query in other.features]


def by_hand(some: Part, query: torch.Tensor, k: int) -> int:
    cosines = torch.cosine_similarity(some.features, query[None], dim=1).tolist()
    order = sorted(range(len(cosines)), key=lambda i: -cosines[i])[:k]
    votes = [0.0, 0.0, 0.0]
    for i in order:
        votes[int(some.labels[i])] += float(np.exp(cosines[i] / 0.07))
    return int(np.argmax(votes))


def test_the_length_of_a_feature_does_not_count_for_neighbours():
    some, other = part(40, 6, 3, seed=6), part(9, 6, 3, seed=7)
    long = Part(some.features * torch.rand(40, 1).add(0.1), some.labels)
    found, wanted = (Nearest(bank, 3).answers(other.features, [5]) for bank in (long, some))
    torch.testing.assert_close(found, wanted)


def test_a_probe_finds_what_is_there_and_shows_the_floor(weights, tmp_path):
    probed = probe(weights, DATA, out=tmp_path / "out")
    assert probed.floor == 0.35
    assert probed.linear.test_accuracy >= 0.9
    assert probed.knn.test_accuracy >= 0.9
    assert (probed.training_n, probed.validation_n, probed.n) == (48, 12, 20)
    assert probed.linear.correct == probed.linear.test_accuracy * 20
    assert json.loads((tmp_path / "out" / PROBE).read_text())["linear"]["correct"] >= 18


def test_what_is_chosen_is_chosen_without_the_test_images(weights, tmp_path):
    blank = replace(DATA, test_images=np.zeros_like(DATA.test_images))
    one, other = (probe(weights, data, out=tmp_path / "out") for data in (DATA, blank))
    assert one.linear.chosen == other.linear.chosen
    assert one.knn.chosen == other.knn.chosen
    assert one.linear.validation_accuracy == other.linear.validation_accuracy
    assert other.linear.test_accuracy < 0.7


def test_validation_images_are_in_no_bank_and_no_fit(weights, tmp_path, monkeypatch):
    seen = []
    for name in ("Linear", "Nearest"):
        way = getattr(probing, name)
        monkeypatch.setattr(
            probing, name, lambda training, n, way=way: seen.append(training) or way(training, n)
        )
    probe(weights, DATA, out=tmp_path / "out")
    indices, _ = training_and_validation(DATA.train_labels)
    for training in seen:
        assert training.labels.tolist() == DATA.train_labels[indices].tolist()


def test_each_probe_is_one_look_at_the_test_set_by_each_way(weights, tmp_path):
    for _ in range(2):
        probe(weights, DATA, out=tmp_path / "out")
    touches = ledger.read(tmp_path / "out" / LEDGER)
    assert [touch.purpose for touch in touches] == ["linear probe", "k-NN"] * 2
    assert {touch.n for touch in touches} == {20}


def test_features_are_those_of_the_model_as_it_was_saved(weights, tmp_path, monkeypatch):
    kept = []
    choose = probing.choose
    monkeypatch.setattr(probing, "choose", lambda way, some: kept.append(some) or choose(way, some))
    data = replace(DATA, input=replace(DATA.input, mean=(0.2,), std=(0.4,)))
    probe(weights, data, out=tmp_path / "out")
    _, indices = training_and_validation(DATA.train_labels)
    model = load(weights)
    assert model.image_input is not None
    images = normalise(torch.from_numpy(DATA.train_images[indices]), model.image_input)
    torch.testing.assert_close(kept[0].features, model.encode(images).detach())


def test_data_of_another_size_and_fewer_channels_are_fitted_and_said(tmp_path):
    save(build(replace(CONFIG, channels=3, image_size=16)), tmp_path / "weights")
    probed = probe(tmp_path / "weights", DATA, out=tmp_path / "out")
    assert "3 became 1" in probed.notes[0]
    assert "from a grid of (4, 4) to (2, 2)" in probed.notes[1]


def test_progress_ends_at_all_images(weights, tmp_path):
    told = []
    probe(weights, DATA, out=tmp_path / "out", progress=lambda *at: told.append(at))
    assert told == [(48, 80), (60, 80), (80, 80)]


def test_features_that_are_no_numbers_are_refused_and_the_test_set_is_not_touched(tmp_path):
    model = build(CONFIG)
    model.encoder.norm.bias.data[0] = float("nan")
    save(model, tmp_path / "weights")
    with pytest.raises(CheckpointError, match="NaN or Inf"):
        probe(tmp_path / "weights", DATA, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
