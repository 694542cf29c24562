"""Everything that can be seen of one image in one model, gathered for a page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from vitreous.cost.flops import forward
from vitreous.errors import CheckpointError, ImageError
from vitreous.figures.colours import Pixels
from vitreous.frontends.decode import Source, decode
from vitreous.frontends.image import fit_image, normalise
from vitreous.inspection.choice import Layers
from vitreous.inspection.faithfulness import Effort, Faithfulness, judge
from vitreous.inspection.layout import Layout, layout_of
from vitreous.inspection.record import record_attention
from vitreous.inspection.relevance import METHODS, at_rest, chosen_classes, explain
from vitreous.inspection.watch import blocks_of
from vitreous.models.classifier import Classifier
from vitreous.shapes import Weights

__all__ = ["Look", "effort_for", "look_at"]

LARGE = 1_000_000_000
"""Multiply-adds of an image from which less is tried: minutes, not hours, on two cores."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One image: what the model made of it, or the sentence that says why there is nothing."""

    name: str
    error: str | None = None
    pixels: Pixels | None = None
    """As the model sees it, before normalising."""
    layout: Layout | None = None
    answers: tuple[tuple[str, float], ...] = ()
    """The likeliest classes and their probabilities, best first."""
    attention: Mapping[str, Weights] = field(default_factory=dict)
    """Of the chosen layers and heads, (1, h, q, k)."""
    maps: Mapping[str, Float[Tensor, "row col"]] = field(default_factory=dict)
    """By method."""
    verdicts: Mapping[str, Faithfulness] = field(default_factory=dict)


def effort_for(model: Classifier) -> Effort:
    """How much is tried to tell a map from chance: less for a model that takes long."""
    large = forward(model.config).total > LARGE
    return Effort(orders=19, fresh=8, steps=8) if large else Effort()


def look_at(
    model: Classifier,
    source: Source,
    *,
    layers: Layers | None = None,
    heads: Sequence[int] | None = None,
    effort: Effort | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> Look:
    """Look at one image file; `effort` is none where maps are not to be judged.

    An image that cannot be read gives a Look with the sentence. Raises CheckpointError for a model
    that does not know how its images are prepared, ConfigError for layers or heads it has not.
    """
    if model.image_input is None:
        raise CheckpointError("this model does not say how its images are prepared")
    name = str(source)
    try:
        pixels = fit_image(decode(source), model.image_input)
    except ImageError as error:
        return Look(name=name, error=str(error))
    like = next(model.parameters())
    image = normalise(torch.from_numpy(pixels)[None], model.image_input).to(like)
    maps = maps_of(model, image)
    # Without a class there is no probability that could fall.
    judged = list(maps) if effort is not None and model.config.classes else []
    return Look(
        name=name,
        pixels=pixels,
        layout=layout_of(model.config, model.patch_embed.grid(image)),
        answers=likeliest(model, image),
        attention=attention_of(model, image, layers, heads),
        maps=maps,
        verdicts=judge(model, image, judged, effort=effort, tell=tell) if judged else {},
    )


@torch.no_grad()
def likeliest(
    model: Classifier, image: Float[Tensor, "1 c y x"], top: int = 5
) -> tuple[tuple[str, float], ...]:
    """The likeliest classes and their probabilities; none of a model without classes."""
    if not model.config.classes:
        return ()
    with at_rest(model):
        chances = model(image).float().softmax(dim=1)[0]
    best = chances.topk(min(top, len(chances)))
    names = [model.class_names[index] for index in best.indices.tolist()]
    return tuple(zip(names, best.values.tolist(), strict=True))


@torch.no_grad()
def attention_of(
    model: Classifier,
    image: Float[Tensor, "1 c y x"],
    layers: Layers | None,
    heads: Sequence[int] | None,
) -> dict[str, Weights]:
    """The chosen maps of one image, on the CPU."""
    with at_rest(model), record_attention(model, layers=layers, heads=heads, device="cpu") as maps:
        model.tokens(image)
    return dict(maps)


def maps_of(model: Classifier, image: Float[Tensor, "1 c y x"]) -> dict[str, Tensor]:
    """The map of every method that this model allows, for its own answer."""
    headless = not model.config.classes
    answer = (
        torch.zeros(1).long().to(image.device) if headless else chosen_classes(model, image, None)
    )
    methods = [m for m in METHODS if not headless or m == "rollout"]
    if not blocks_of(model):
        methods = [m for m in methods if m == "gradient_input"]
    return {method: explain(model, image, answer, method)[0].cpu() for method in methods}
