from dataclasses import replace

import pytest
import torch
from hypothesis import assume, example, given, settings
from torch import nn
from torch.profiler import ProfilerActivity, profile

from tests.models.drawn import own_configs
from vitreous import Recipe, ViTConfig, build, count_parameters, preset
from vitreous.cost.activations import BYTES, live, saved
from vitreous.cost.memory import answering, training
from vitreous.objectives.classification import classification_loss
from vitreous.training.loop import Batch, fit
from vitreous.training.optimizers import make_optimizers
from vitreous.training.precision import Working

SMALL = ViTConfig(image_size=8, patch_size=2, width=16, depth=3, heads=2, channels=3)
PRECISIONS = ("float32", "bfloat16")


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    return classification_loss(model(batch.images), batch.labels)


def batch_of(config: ViTConfig, images: int, precision: str = "float32") -> Batch:
    pixels = torch.randn(images, config.channels, *config.image_shape)
    labels = torch.zeros(images, dtype=torch.long)
    return Batch(0, pixels.to(getattr(torch, precision)), labels)


def kept_by_autograd(config: ViTConfig, precision: str, images: int) -> int:
    """Bytes of every tensor that autograd keeps, each memory once, without the weights."""
    model = build(config).to(getattr(torch, precision)).train()
    weights = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, int] = {}
    batch = batch_of(config, images, precision)
    kept[batch.images.untyped_storage().data_ptr()] = batch.images.untyped_storage().nbytes()

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        memory = tensor.untyped_storage()
        kept[memory.data_ptr()] = memory.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss_of(model, batch)
    labels = 8 * images
    return sum(size for place, size in kept.items() if place not in weights) - labels


@given(config=own_configs())
@example(config=SMALL)
@example(config=replace(SMALL, norm="post", final_norm=False))
@example(config=replace(SMALL, positions="rotary", class_token=False, pooling="mean"))
@example(config=replace(SMALL, activation="swiglu", pooling="attention", attention_dropout=0.1))
@example(
    config=replace(SMALL, activation="quick_gelu", dropout=0.1, layer_scale=0.1, drop_path=0.1)
)
@example(config=replace(SMALL, stem="convolution", patch_size=4, image_size=7))
@settings(deadline=None, max_examples=30)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_an_image_on_paper_leaves_what_autograd_keeps(precision, config):
    """But where one head, one channel or one patch lets a view stand for a copy."""
    assume(config.heads > 1 and config.grid != (1, 1))
    config = replace(config, channels=3)
    more, less = (kept_by_autograd(config, precision, images) for images in (5, 3))
    assert saved(config, Recipe(precision=precision)).total == (more - less) / 2


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_class_pooling_leaves_less_in_the_last_block(pooling):
    """In training nobody asks for its other tokens."""
    one, two = (saved(replace(SMALL, depth=d, pooling=pooling), Recipe()).mlp for d in (1, 2))
    assert (two - one) == one * (17 if pooling == "cls" else 1)


def peak_of_answering(config: ViTConfig, images: int) -> int:
    """Bytes at the worst moment of a forward pass beyond weights and images."""
    model, batch = build(config).eval(), batch_of(config, images)
    with torch.no_grad():
        model(batch.images)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            model(batch.images)
    assert seen.profiler is not None
    assert seen.profiler.kineto_results is not None
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return peak


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"norm": "post"},
        {"depth": 1},
        {"mlp_ratio": 1.0},
        {"mlp_ratio": 1.0, "norm": "post"},
        {"activation": "swiglu"},
        {"activation": "quick_gelu"},
        {"positions": "rotary", "mlp_ratio": 0.5, "width": 64},
        {"pooling": "mean", "class_token": False},
        {"stem": "convolution", "patch_size": 4},
    ],
    ids=str,
)
def test_answering_on_paper_needs_what_torch_allocates(change):
    config = replace(SMALL, **{"width": 64, "image_size": 16, **change})
    pixels = config.channels * config.image_shape[0] * config.image_shape[1]
    on_paper = 4 * 16 * (live(config) - pixels)
    assert abs(peak_of_answering(config, 16) / on_paper - 1) < 0.01


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("precision", PRECISIONS)
@given(config=own_configs())
@example(config=SMALL)
@example(
    config=replace(
        SMALL, activation="swiglu", pooling="attention", stem="convolution", patch_size=4
    )
)
@settings(deadline=None, max_examples=5)
def test_weights_and_optimizer_on_paper_are_those_of_a_training_step(config, precision, optimizer):
    recipe = Recipe(precision=precision, optimizer=optimizer)
    model = build(config)
    working = Working(model, getattr(torch, precision))
    optimizers = make_optimizers(model, recipe)
    list(fit(working, loss_of, [batch_of(config, 2, precision)], optimizers, rate=lambda _: 1.0))
    models = [working.master, *([working.model] if working.is_copy else [])]
    weights = sum(p.nbytes for model in models for p in model.parameters())
    states = [s for o in optimizers for s in o.state.values()]
    remembered = sum(t.nbytes for s in states for name, t in s.items() if name != "step")
    needs = training(config, recipe)
    assert (needs.weights, needs.optimizer) == (weights, remembered)


@pytest.mark.parametrize(("setting", "more"), [({"average": 0.9}, 4), ({"keep": "best"}, 4)])
def test_copies_that_a_recipe_keeps_are_in_the_weights(setting, more):
    bare, kept = (training(SMALL, replace(Recipe(), **change)) for change in ({}, setting))
    assert kept.weights - bare.weights == more * count_parameters(SMALL)


@given(config=own_configs())
@settings(deadline=None, max_examples=50)
def test_a_larger_batch_needs_more_by_as_much_for_every_image(config):
    batches = [training(config, Recipe(batch_size=batch)) for batch in (1, 2, 3)]
    one, two, three = (needs.activations for needs in batches)
    assert three - two == two - one > 0
    assert batches[0].total < batches[1].total < batches[2].total


@given(config=own_configs())
@settings(deadline=None, max_examples=50)
def test_the_total_is_more_than_what_is_there_anyway_and_not_more_than_all(config):
    for needs in (training(config, Recipe()), answering(config, Recipe())):
        parts = needs.weights + needs.optimizer + needs.overhead
        larger = max(needs.gradients, needs.activations)
        smaller = min(needs.gradients, needs.activations)
        assert parts + larger <= needs.total <= parts + larger + smaller
        assert sum(needs.at_worst.values()) == needs.total


def test_bfloat16_halves_activations_but_for_the_weights_of_attention():
    full, half = (saved(preset("b16"), Recipe(precision=p)) for p in PRECISIONS)
    assert half.mlp * 2 == full.mlp
    assert half.norms * 2 == full.norms
    assert half.attention > full.attention / 2
    assert BYTES == {"float32": 4, "bfloat16": 2}
