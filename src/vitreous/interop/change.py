"""A model for other images: another number of channels, or another size."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from vitreous.checkpoints.refit import refit
from vitreous.config import Pair, ViTConfig
from vitreous.errors import CheckpointError, ConfigError
from vitreous.frontends.image import ImageInput
from vitreous.models.classifier import Classifier, build
from vitreous.nn.patches import PatchEmbed

__all__ = ["change_channels", "change_size"]


def change_size(model: Classifier, image_size: int | Pair) -> Classifier:
    """The model with its position table stretched once, by its own convention."""
    try:
        config = replace(model.config, image_size=image_size)
    except ConfigError as error:
        raise CheckpointError(str(error)) from error
    body, _ = refit(model, config)
    given = model.image_input
    given = given and replace(given, size=config.image_shape)
    return rebuilt(model, config, model.state_dict() | body, given)


def change_channels(model: Classifier, channels: int) -> Classifier:
    """Colour to grey: weights are summed, so that grey pixels give what three equal ones gave.

    The normalisation of each channel is folded in, for grey has one mean and deviation: those of
    the channels, averaged. Grey to colour: each channel gets an equal share of the weights.
    """
    embed, old = model.patch_embed, model.config.channels
    if type(embed) is not PatchEmbed or {old, channels} != {1, 3}:
        raise CheckpointError(f"{old} channels cannot become {channels}: 3 and 1 can, each other")
    weight = embed.kernel(embed.proj.weight.detach())
    bias = embed.proj.bias
    kept = torch.zeros(len(weight)) if bias is None else bias.detach()
    given = model.image_input
    if channels == 1:
        weight, shift, given = to_grey(weight, given)
        kept = kept + shift
    else:
        weight = weight.expand(-1, 3, -1, -1) / 3
        given = given and replace(given, channels=3, mean=given.mean * 3, std=given.std * 3)
    biased = bias is not None or bool(kept.any())
    config = replace(model.config, channels=channels, patch_bias=biased)
    state = model.state_dict() | {"patch_embed.proj.weight": weight.flatten(1)}
    if biased:
        state["patch_embed.proj.bias"] = kept
    return rebuilt(model, config, state, given)


def to_grey(weight: Tensor, given: ImageInput | None) -> tuple[Tensor, Tensor, ImageInput | None]:
    """The kernel over grey pixels, what its bias gains, and grey's normalisation."""
    if given is None:
        return weight.sum(dim=1, keepdim=True), torch.zeros(len(weight)), None
    mean, std = torch.tensor(given.mean), torch.tensor(given.std)
    grey = replace(given, channels=1, mean=(mean.mean().item(),), std=(std.mean().item(),))
    scale = (grey.std[0] / std).view(1, -1, 1, 1)
    offset = ((grey.mean[0] - mean) / std).view(1, -1, 1, 1)
    return (weight * scale).sum(1, keepdim=True), (weight * offset).sum((1, 2, 3)), grey


def rebuilt(
    model: Classifier,
    config: ViTConfig,
    state: dict[str, Tensor],
    given: ImageInput | None,
) -> Classifier:
    """A model of another config with these weights, which otherwise knows what it knew."""
    with torch.device("meta"):
        new = build(config)
    new.load_state_dict(state, assign=True)
    new.class_names, new.image_input = model.class_names, given
    nn.Module.train(new, model.training)
    return new
