"""Relevance follows gradients, whichever path computed the attention, and changes nothing."""

from dataclasses import replace

import pytest
import torch

from tests.inspection.pointed import CONFIG, pointed, taught, untaught
from vitreous.errors import ConfigError
from vitreous.inspection.relevance import METHODS, over_patches, positive_part, relevance
from vitreous.inspection.watch import attention_modules, watch
from vitreous.nn import attention
from vitreous.nn.attention import attention_weights

POOLINGS = {
    "cls": CONFIG,
    "mean": replace(CONFIG, pooling="mean", class_token=False),
    "attention": replace(CONFIG, pooling="attention"),
    "stem": replace(CONFIG, stem="convolution", image_size=(18, 23)),
}


def by_hand(model, images, classes):
    """The equations of the paper, with autograd through attention weights that are stored."""
    stored = []

    def keep(q, k, v, *, mask=None, dropout=0.0):
        weights = attention_weights(q, k, mask)
        weights.retain_grad()
        stored.append(weights)
        return weights @ v

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attention, "PATHS", {"plain": keep, "fused": keep})
        model(images).gather(1, classes[:, None]).sum().backward()
    model.zero_grad()
    relevant = torch.eye(stored[0].shape[-1]).expand(len(images), -1, -1)
    for weights in stored:
        step = (weights * weights.grad).clamp(min=0).mean(dim=1)
        relevant = relevant + step @ relevant
    return relevant.detach()


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_relevance_is_that_of_stored_attention_and_its_gradient(norm):
    model = untaught(0, replace(CONFIG, norm=norm))
    images, classes = torch.randn(3, 1, 20, 24), torch.tensor([0, 2, 1])
    wanted = by_hand(model, images, classes)[:, 0, 2:].unflatten(1, (5, 6))
    found = relevance(model, images, classes.tolist()).values
    assert torch.allclose(found, wanted, rtol=1e-4, atol=1e-7)


def test_the_gradient_of_attention_is_that_of_its_product_with_the_values():
    model, seen = untaught(1), {}
    names = [*attention_modules(model)]
    with watch(model, names, seen.__setitem__):
        model(torch.randn(1, 1, 20, 24)).sum()
    each = seen[names[0]]
    weights = attention_weights(each.q, each.k).detach().requires_grad_()
    gradient = torch.randn_like(each.out)
    ((weights @ each.v.detach()) * gradient).sum().backward()
    wanted = (weights * weights.grad).clamp(min=0).mean(dim=1)
    assert torch.allclose(positive_part(each, gradient), wanted.detach(), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", POOLINGS)
def test_images_of_a_batch_do_not_meet(method, kind):
    config = POOLINGS[kind]
    model, images = untaught(0, config), torch.randn(3, 1, *config.image_shape)
    together = relevance(model, images, method=method)
    assert together.values.shape == (3, *config.grid)
    alone = [relevance(model, image[None], method=method).values[0] for image in images]
    assert torch.allclose(together.values, torch.stack(alone), rtol=1e-4, atol=1e-6)


def test_gradient_times_input_is_exact_for_a_linear_model():
    """The products of all pixels add up to the score, less that of an image of zeros."""
    model = untaught(0, replace(CONFIG, depth=1, pooling="mean", final_norm=False))
    model.encoder.blocks[0] = torch.nn.Identity()
    model.encoder.blocks[0].forward = lambda x, **_: x
    images = torch.randn(2, 1, 20, 24)
    values = relevance(model, images, 1, method="gradient_input").values
    scores = (model(images) - model(torch.zeros_like(images)))[:, 1]
    assert torch.allclose(values.sum(dim=(1, 2)), scores, atol=1e-5)


def test_patches_that_overhang_keep_every_pixel():
    pixels = torch.randn(2, 28, 28)
    whole = over_patches(pixels, (8, 8), (4, 4))
    assert torch.allclose(whole.sum(dim=(1, 2)), pixels.sum(dim=(1, 2)), atol=1e-4)
    assert torch.allclose(whole[:, 3, 0], pixels[:, 24:, :8].sum(dim=(1, 2)), atol=1e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_looking_leaves_the_model_as_it_was(method, mode):
    model, images = untaught(0).train(), torch.randn(1, 1, 20, 24)
    model.encoder.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    with mode():
        relevance(model, images, method=method)
    assert [module.training for module in model.modules()] == modes
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks for module in model.modules())


def test_frozen_models_have_relevance_too():
    model, images = untaught(0), torch.randn(1, 1, 20, 24)
    wanted = relevance(model, images).values
    assert torch.equal(relevance(model.requires_grad_(False), images).values, wanted)


def test_what_cannot_be_explained_is_refused():
    model, images = untaught(0), torch.randn(2, 1, 20, 24)
    with pytest.raises(ConfigError, match="they go from 0 to 2"):
        relevance(model, images, 3)
    with pytest.raises(ConfigError, match="method='lime' must be one of relevance, rollout"):
        relevance(model, images, method="lime")


def test_a_taught_model_points_at_the_patch_that_holds_the_answer():
    images, labels, places = pointed(60, seed=2)
    model = taught()
    right = (model(images).argmax(dim=1) == labels).sum()
    assert right >= 57
    for method in METHODS:
        values = relevance(model, images, method=method).values.flatten(1)
        found = [divmod(int(value.argmax()), 6) for value in values]
        striped = [(f, p) for f, p, label in zip(found, places, labels, strict=True) if label < 2]
        hits = sum(f == p for f, p in striped)
        assert hits >= 0.85 * len(striped)
