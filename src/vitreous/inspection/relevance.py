"""Which patches speak for a class: relevance by gradients, from outside the model."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vitreous.errors import ConfigError
from vitreous.inspection.layout import layout_of
from vitreous.inspection.maps import TokenMap, over_grid
from vitreous.inspection.record import record_attention, weights_of
from vitreous.inspection.rollout import rollout
from vitreous.inspection.watch import Seen, attention_modules, watch, wide
from vitreous.models.classifier import Classifier
from vitreous.shapes import Images

__all__ = ["METHODS", "Classes", "explain", "relevance"]

Classes = int | Sequence[int] | None


def relevance(
    model: Classifier, images: Images, classes: Classes = None, *, method: str = "relevance"
) -> TokenMap:
    """How much each patch speaks for a class of each image: a map over the grid of patches.

    `classes` are the answers to explain, one or one an image; none means what the model answers.
    Methods: "relevance", attention weighted by its gradient, layer by layer (Chefer, Gur and Wolf,
    equations 5 and 6, arXiv 2103.15679); "gradient_input", the pixels times the class score's
    gradient, summed over each patch, so signed; "rollout", which knows no class (arXiv 2005.00928).
    The model, its mode and its gradients are as before afterwards. Raises ConfigError for a model
    without classes or an unknown method or class.
    """
    if method not in METHODS:
        raise ConfigError(f"method={method!r} must be one of {', '.join(METHODS)}")
    blind = method == "rollout"
    chosen = torch.zeros(len(images)).long() if blind else chosen_classes(model, images, classes)
    values = explain(model, images, chosen, method)
    shape = (images.shape[2], images.shape[3])
    return TokenMap(method, values, shape, model.config.patch_shape)


def explain(
    model: Classifier, images: Images, classes: Int[Tensor, " b"], method: str
) -> Float[Tensor, "b row col"]:
    """The map of one method, for classes that are chosen already."""
    with at_rest(model):
        return METHODS[method](model, images, classes).detach()


@torch.no_grad()
def chosen_classes(model: Classifier, images: Images, classes: Classes) -> Int[Tensor, " b"]:
    """One class for each image; raises ConfigError for one that the model does not have."""
    if not model.config.classes:
        raise ConfigError("this model has no classes: there is no answer to explain")
    if classes is None:
        with at_rest(model):
            return model(images).argmax(dim=1)
    wanted = torch.as_tensor(classes, device=images.device).expand(len(images))
    if not bool(((wanted >= 0) & (wanted < model.config.classes)).all()):
        raise ConfigError(f"classes={classes}: they go from 0 to {model.config.classes - 1}")
    return wanted


@contextmanager
def at_rest(model: Classifier) -> Iterator[None]:
    """Inside, the model is in eval mode, part by part; afterwards each part is as it was."""
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        yield
    finally:
        for module, training in modes.items():
            module.training = training


@torch.no_grad()
def rolled_out(
    model: Classifier,
    images: Images,
    classes: Int[Tensor, " b"],  # noqa: ARG001 - rollout knows no class
) -> Float[Tensor, "b row col"]:
    """Rollout, as the answer reads it."""
    every = [*attention_modules(model)]
    with record_attention(model, layers=every) as maps:
        model(images)
    pooled = [maps[name].mean(dim=1) for name in every if name.startswith("pool")]
    flow = rollout([maps[name] for name in every if not name.startswith("pool")])
    return at_the_answer(model, images, flow, *pooled)


def weighted_attention(
    model: Classifier, images: Images, classes: Int[Tensor, " b"]
) -> Float[Tensor, "b row col"]:
    """R ← R + Ā R over the layers, where Ā is the positive part of attention × its gradient.

    The gradient of the weights is that of their products with the values, dO vᵀ, so it is exact
    whichever path computed them.
    """
    seen: dict[str, Seen] = {}
    names = [*attention_modules(model)]
    with ordinary_gradients(), watch(model, names, seen.__setitem__):
        # Every parameter may be frozen: the gradient enters with the pixels.
        score = chosen_score(model(images.clone().requires_grad_()), classes)
    outs = [each.out for each in seen.values()]
    gradients = torch.autograd.grad(score, outs) if outs else ()
    steps = {n: positive_part(seen[n], g) for n, g in zip(seen, gradients, strict=True)}
    pooled = [step for name, step in steps.items() if name.startswith("pool")]
    inner = [step for name, step in steps.items() if not name.startswith("pool")]
    if not inner:
        raise ConfigError("there is no attention to follow: this model has no blocks")
    flow = torch.eye(inner[0].shape[-1], device=images.device)
    for step in inner:
        flow = flow + step @ flow
    return at_the_answer(model, images, flow, *pooled)


@contextmanager
def ordinary_gradients() -> Iterator[None]:
    """Gradients, also where the caller has switched them off."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        yield


def at_the_answer(
    model: Classifier, images: Images, flow: Float[Tensor, "b n n"], pooled: Tensor | None = None
) -> Float[Tensor, "b row col"]:
    """The rows of the flow from which the answer is read, over the grid.

    `flow` says how much of each token at the entry (columns) is in each final token (rows);
    `pooled` (b, 1, n) how attention pooling reads those.
    """
    layout = layout_of(model.config, model.patch_embed.grid(images))
    if pooled is not None:
        return over_grid((pooled @ flow)[:, 0], layout)
    if model.config.pooling == "mean":
        return over_grid(flow[:, layout.prefix :].mean(dim=1), layout)
    answering = layout.before["class"] + layout.before["distillation"]
    return over_grid(flow[:, :answering].mean(dim=1), layout)


def positive_part(seen: Seen, gradient: Float[Tensor, "b h q e"]) -> Float[Tensor, "b q k"]:
    """Attention times its gradient where that is positive, the mean over heads (equation 5)."""
    weights = weights_of(seen, None, None, gradients=False)
    return (weights * (wide(gradient) @ wide(seen.v).mT)).clamp_min(0).mean(dim=1).detach()


def gradient_times_input(
    model: Classifier, images: Images, classes: Int[Tensor, " b"]
) -> Float[Tensor, "b row col"]:
    """Pixels × gradient, summed over channels and each patch: signed."""
    with ordinary_gradients():
        pixels = images.clone().requires_grad_()
        score = chosen_score(model(pixels), classes)
        (gradient,) = torch.autograd.grad(score, pixels)
    product = (gradient * images).sum(dim=1)
    return over_patches(product, model.config.patch_shape, model.patch_embed.grid(images))


def over_patches(
    pixels: Float[Tensor, "b y x"], patch_shape: tuple[int, int], grid: tuple[int, int]
) -> Float[Tensor, "b row col"]:
    """The sum over each patch; the last ones may overhang the image."""
    (row, col), (py, px) = grid, patch_shape
    below, right = row * py - pixels.shape[1], col * px - pixels.shape[2]
    whole = torch.nn.functional.pad(pixels, (0, right, 0, below))
    return whole.unflatten(2, (col, px)).unflatten(1, (row, py)).sum(dim=(2, 4))


def chosen_score(
    logits: Float[Tensor, "b classes"], classes: Int[Tensor, " b"]
) -> Float[Tensor, ""]:
    """The sum of each image's own class score: images do not meet, so gradients stay apart."""
    # A copy: classes may have been found in inference mode, and autograd keeps them.
    return logits.gather(1, classes.clone()[:, None]).float().sum()


Method = Callable[[Classifier, Images, Tensor], Tensor]
METHODS: Mapping[str, Method] = {
    "relevance": weighted_attention,
    "rollout": rolled_out,
    "gradient_input": gradient_times_input,
}
