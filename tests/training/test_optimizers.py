import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.training.small import CONFIG, RECIPE, make_job
from vitreous.config import Recipe, ViTConfig, recipe
from vitreous.models.classifier import build
from vitreous.protocol.seeds import stream
from vitreous.training.optimizers import make_optimizers, rate
from vitreous.training.run import run

EVERYTHING = ViTConfig(
    image_size=8,
    patch_size=4,
    width=8,
    depth=2,
    heads=2,
    classes=3,
    register_tokens=2,
    layer_scale=0.1,
)
CONFIGS = {
    "everything": EVERYTHING,
    "attention pool": replace(EVERYTHING, pooling="attention", class_token=False),
    "stem": replace(EVERYTHING, stem="convolution", activation="swiglu"),
    "axes": replace(EVERYTHING, positions="learned_axes", qkv_bias=False),
}
EXEMPT = ("bias", "norm", "token", "pos_embed", "gamma", "query")


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("everything", [True, False])
def test_every_trainable_parameter_is_in_exactly_one_group(config, optimizer, everything):
    model = build(config)
    model.head.bias.requires_grad_(False)
    made = make_optimizers(model, Recipe(optimizer=optimizer, decay_everything=everything))
    held = [id(p) for one in made for group in one.param_groups for p in group["params"]]
    assert sorted(held) == sorted(id(p) for p in model.parameters() if p.requires_grad)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_without_a_gradient_matrices_decay_and_nothing_else_moves(config: ViTConfig):
    model = build(config)
    step_without_gradient(
        model, Recipe(optimizer="adamw", learning_rate=0.1, weight_decay=0.1, schedule="constant")
    )
    for name, parameter in model.named_parameters():
        still = any(word in name for word in EXEMPT)
        wanted = torch.full_like(parameter, 1.0 if still else 0.99)
        torch.testing.assert_close(parameter, wanted, msg=lambda m, name=name: f"{name}: {m}")


def test_decay_everything_decays_everything():
    model = build(EVERYTHING)
    step_without_gradient(
        model,
        Recipe(optimizer="adamw", learning_rate=0.1, weight_decay=0.1, decay_everything=True),
    )
    for parameter in model.parameters():
        torch.testing.assert_close(parameter, torch.full_like(parameter, 0.99))


def test_muon_decays_its_matrices_by_its_own_rate():
    model = build(EVERYTHING)
    step_without_gradient(
        model, Recipe(optimizer="muon", learning_rate=0.1, matrix_rate=0.3, weight_decay=0.1)
    )
    qkv, head = model.get_parameter("encoder.blocks.0.attn.qkv.weight"), model.head.weight
    torch.testing.assert_close(qkv, torch.full_like(qkv, 0.97))
    torch.testing.assert_close(head, torch.full_like(head, 0.99))


def step_without_gradient(model: nn.Module, recipe: Recipe) -> None:
    for parameter in model.parameters():
        nn.init.ones_(parameter)
        parameter.grad = torch.zeros_like(parameter)
    for optimizer in make_optimizers(model, recipe):
        optimizer.step()


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_muon_holds_exactly_the_matrices_of_the_encoder(config: ViTConfig):
    model = build(config)
    _, muon = make_optimizers(model, Recipe(optimizer="muon"))
    held = {id(p) for group in muon.param_groups for p in group["params"]}
    names = {name for name, p in model.named_parameters() if id(p) in held}
    layers = ("attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2")
    assert names == {f"encoder.blocks.{i}.{layer}.weight" for i in range(2) for layer in layers}


def test_the_published_recipe_is_plain_adamw_that_decays_everything():
    (optimizer,) = make_optimizers(build(CONFIG), recipe("published"))
    assert type(optimizer) is torch.optim.AdamW
    (group,) = optimizer.param_groups
    assert group["lr"] == group["peak"] == group["weight_decay"] == 1e-4
    assert (group["betas"], group["eps"]) == ((0.9, 0.999), 1e-8)


@pytest.mark.parametrize(
    ("schedule", "wanted"),
    [
        ("linear", [1 / 3, 2 / 3, 1, 1, 6 / 7, 5 / 7, 4 / 7, 3 / 7, 2 / 7, 1 / 7]),
        ("constant", [1 / 3, 2 / 3] + [1.0] * 8),
        ("cosine", [1 / 3, 2 / 3, 1] + [(1 + math.cos(math.pi * i / 7)) / 2 for i in range(7)]),
    ],
)
def test_rates_rise_over_the_warm_up_and_fall_to_zero_after_the_last_step(schedule, wanted):
    chosen = Recipe(warmup=0.3, schedule=schedule)
    assert [rate(step, 10, chosen) for step in range(10)] == pytest.approx(wanted, abs=1e-12)


def test_without_a_warm_up_the_first_step_is_at_the_full_rate():
    assert rate(0, 4, Recipe(warmup=0.0)) == 1.0
    assert rate(3, 4, Recipe(warmup=0.0)) == 0.25
    assert rate(0, 1, Recipe(warmup=0.5)) == 1.0


def test_the_published_rate_never_changes():
    assert {rate(step, 100, recipe("published")) for step in range(100)} == {1.0}


def test_a_run_equals_a_loop_written_by_hand_to_the_last_bit(tmp_path, no_report):
    job = make_job(
        replace(RECIPE, schedule="constant", warmup=0.0, decay_everything=True, clip=0.5),
        replace(CONFIG, dropout=0.0, drop_path=0.0),
        seed=3,
    )
    losses = []
    for event in run(job, tmp_path / "run"):
        losses.append(event.loss)
        if len(losses) == 5:
            break
    assert losses == losses_by_hand(job)


def losses_by_hand(job) -> list[float]:
    """One epoch of five steps with nothing but torch and the documented streams of the seed."""
    torch.manual_seed(stream(3, "init"))
    model = build(job.config).train()
    order = torch.randperm(20, generator=torch.Generator().manual_seed(stream(3, "shuffle", 0)))
    adamw = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.01, fused=True)
    images = torch.from_numpy(job.dataset.train_images[:20]).float() / 255
    images = (images - job.dataset.input.mean[0]) / job.dataset.input.std[0]
    labels = torch.from_numpy(job.dataset.train_labels[:20])
    losses = []
    for step in range(5):
        batch = order[4 * step : 4 * step + 4]
        loss = F.cross_entropy(model(images[batch]), labels[batch])
        adamw.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        adamw.step()
        losses.append(loss.item())
    return losses
