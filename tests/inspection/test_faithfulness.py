"""A map is held against chance; an untrained model's is never better."""

from dataclasses import replace

import pytest
import torch

from tests.inspection.pointed import CONFIG, pointed, taught, untaught
from vitreous.config import preset
from vitreous.errors import ConfigError
from vitreous.inspection.faithfulness import (
    Curves,
    Effort,
    Faithfulness,
    area,
    chances,
    curves,
    faithfulness,
    fresh_copies,
    judge,
    order_of,
    random_order,
)
from vitreous.inspection.relevance import METHODS

QUICK = Effort(orders=19, fresh=8, steps=8)


def striped(count: int) -> tuple[torch.Tensor, list[tuple[int, int]]]:
    images, labels, places = pointed(4 * count, seed=5)
    chosen = [i for i, label in enumerate(labels.tolist()) if label < 2][:count]
    return images[chosen], [places[i] for i in chosen]


def test_a_trapezoid_has_the_area_of_a_trapezoid():
    assert area([0.0, 0.25, 1.0], [1.0, 0.0, 1.0]) == pytest.approx(0.125 + 0.375)


def test_deletion_takes_the_first_patches_away_and_insertion_puts_them_back():
    """The answer's patch first or last: known curves."""
    model, (images, places) = taught(), striped(1)
    row, col = places[0]
    answer = int(model(images).argmax())
    first = torch.zeros(5, 6)
    first[row, col] = 1
    best, worst = curves(model, images, [order_of(first), order_of(-first)], answer, 30)
    assert best.deletion[0] == worst.deletion[0] == best.insertion[-1]
    assert best.deletion[-1] == pytest.approx(best.insertion[0], abs=1e-6)
    assert best.deletion[0] > 0.9
    assert max(best.deletion[1:]) < 0.2
    assert min(best.insertion[1:]) > 0.8
    assert max(worst.insertion[:-1]) < 0.2
    assert best.gain > 0.8
    assert worst.gain < -0.8


def test_hidden_patches_show_the_ground_and_no_other_changes():
    seen = []
    model = untaught(0)
    model.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    image = torch.randn(1, 1, 20, 24)
    hidden = torch.zeros(1, 5, 6, dtype=torch.bool)
    hidden[0, 1, 2] = True
    chances(model, image, hidden, 0)
    changed = seen[0] != image
    assert changed[0, 0, 4:8, 8:12].all()
    assert changed.sum() == 16
    assert (seen[0][changed] == image.flatten().median()).all()


def test_a_random_order_gains_nothing_on_average():
    """So that a gain needs no correction."""
    model, (images, _) = taught(), striped(1)
    answer = int(model(images).argmax())
    orders = [random_order(30, seed) for seed in range(200)]
    gains = torch.tensor([each.gain for each in curves(model, images, orders, answer, 10)])
    assert abs(gains.mean()) < 3 * gains.std() / 200**0.5


def test_equal_values_are_ordered_by_luck_and_others_by_size():
    assert order_of(torch.tensor([[0.0, 3.0], [1.0, 2.0]])).tolist() == [1, 3, 2, 0]
    flat = [order_of(torch.zeros(4, 4), seed).tolist() for seed in range(3)]
    assert all(sorted(order) == list(range(16)) for order in flat)
    assert flat[0] != flat[1] != flat[2]


def test_a_taught_models_map_is_better_than_chance():
    model, (images, _) = taught(), striped(3)
    for image in images:
        found = faithfulness(model, image[None], "rollout", effort=Effort(orders=39, steps=30))
        assert found.sentence.startswith("Better than chance."), found.sentence
        assert found.gain > 0.8


@pytest.mark.parametrize("seed", range(4))
def test_an_untaught_models_maps_are_no_better_than_chance(seed):
    model, (images, _) = untaught(seed), striped(4)
    for method, found in judge(model, images[seed : seed + 1], list(METHODS), effort=QUICK).items():
        assert found.sentence.startswith("No better than chance."), f"{method}: {found.sentence}"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["digits-fast", "digits-small"])
def test_untrained_digit_models_say_so_of_real_digits(name, seed):
    from vitreous.data.sources import load_source
    from vitreous.frontends.image import MNIST_INPUT, normalise

    pixels = torch.from_numpy(load_source("mnist").test_images[seed : seed + 1])
    model = untaught(seed, preset(name))
    for method, found in judge(model, normalise(pixels, MNIST_INPUT), list(METHODS)).items():
        assert found.sentence.startswith("No better than chance."), f"{method}: {found.sentence}"


def test_a_flat_image_has_nothing_to_find():
    found = faithfulness(taught(), torch.zeros(1, 1, 20, 24), effort=QUICK)
    assert (found.gain, found.better) == (0, False)


def made_up(gain: float, random: list[float], fresh: tuple[float, ...]) -> Faithfulness:
    def line(height: float) -> Curves:
        return Curves((0.0, 1.0), (0.0, 0.0), (height, height))

    return Faithfulness("any", "seven", line(gain), tuple(map(line, random)), fresh)


def test_the_verdict_needs_both_kinds_of_chance():
    few = [0.0] * 38
    assert made_up(0.5, [*few, 0.6], (0.1, -0.1)).better
    assert not made_up(0.5, [*few[:-1], 0.6, 0.5], (0.1, -0.1)).better
    assert not made_up(0.5, [*few, 0.1], ()).better
    assert not made_up(0.24, few, (0.1, 0.0)).better
    assert not made_up(0.24, few, (0.0, -0.1)).better
    assert not made_up(0.19, few, (0.0, 0.0)).better
    assert made_up(0.95, few, (0.5, 0.0)).better


def test_the_sentence_holds_the_numbers():
    found = made_up(0.5, [0.1] * 19 + [0.3] * 20, (0.1, -0.12))
    assert found.sentence == (
        "Better than chance. Inserting patches in its order gains 0.50 of the probability of "
        "'seven' over removing them; 39 random orders gain 0.20 (sd 0.10), and none of them as "
        "much; 2 copies of the model with fresh weights gain up to 0.12."
    )
    assert "only a gain above 0.29 would show" in made_up(0.2, [0.0] * 39, (0.12, 0.0)).sentence
    assert "No better than chance." in found.__class__._repr_html_(made_up(0.0, [0.0] * 9, ()))


def test_fresh_copies_are_other_models_and_luck_is_left_alone():
    model = untaught(0)
    state = torch.get_rng_state()
    one, two = fresh_copies(model, 2)
    assert torch.equal(torch.get_rng_state(), state)
    assert one.config == model.config
    assert not torch.equal(one.head.weight, two.head.weight)
    assert not torch.equal(one.head.weight, model.head.weight)


def test_methods_share_their_random_orders_and_tell_how_far_they_are():
    told = []
    found = judge(
        untaught(0),
        striped(1)[0],
        ["rollout", "relevance"],
        effort=Effort(orders=19, fresh=2, steps=4),
        tell=lambda done, of: told.append((done, of)),
    )
    assert found["rollout"].random == found["relevance"].random
    assert told == sorted(told)
    assert told[-1] == (25, 25)


def test_a_model_without_attention_is_refused_with_a_sentence():
    bare = untaught(0, replace(CONFIG, stem="convolution", depth=0))
    with pytest.raises(ConfigError, match="no attention"):
        faithfulness(bare, torch.randn(1, 1, 20, 24))
