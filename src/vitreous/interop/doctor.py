"""What each convention is worth on one file: outputs with it, and with the other choice.

A loader that guesses one of these wrong fails silently; this says by how much its outputs would
then move, so that a difference that was seen can be traced to its cause.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from einops import rearrange
from torch import Tensor, nn

from vitreous.interop.check import difference
from vitreous.models.classifier import Classifier
from vitreous.nn.mlp import ACTIVATIONS, Mlp
from vitreous.nn.patches import PatchEmbed
from vitreous.nn.positions import RESIZES, Learned

__all__ = ["Counterfactual", "counterfactuals", "probe_images"]

EPS = (1e-12, 1e-6, 1e-5)
Change = Callable[[Classifier], None]


@dataclass(frozen=True)
class Counterfactual:
    """One convention changed, and by how much of their largest value outputs move."""

    convention: str
    used: str
    instead: str
    moves: float


@torch.no_grad()
def counterfactuals(model: Classifier, images: Tensor) -> Iterator[Counterfactual]:
    """The output that each other choice would give, the largest change of each kind as it comes.

    `images` (b, c, y, x) are normalised. Outputs are the logits, or features where there is no
    head. Positions are also tried on images half as large again, where resizing matters.
    """
    normal = model(images)
    for convention, used, instead, change in changes(model):
        other = copy.deepcopy(model)
        change(other)
        yield Counterfactual(convention, used, instead, difference(other(images), normal))
    yield from resizing(model, images)
    yield from normalisation(model, images, normal)


def probe_images(model: Classifier, count: int = 4, seed: int = 0) -> Tensor:
    """Smooth noise of the model's size with about the spread of normalised pictures."""
    stream = torch.Generator().manual_seed(seed)
    y, x = model.config.image_shape
    coarse = torch.randn(count, model.config.channels, 5, 5, generator=stream)
    fine = torch.randn(count, model.config.channels, y, x, generator=stream)
    return nn.functional.interpolate(coarse, (y, x), mode="bilinear") + 0.3 * fine


def changes(model: Classifier) -> Iterator[tuple[str, str, str, Change]]:
    """Every convention that lies in the weights or the modules."""
    config = model.config
    for eps in EPS:
        if eps != config.norm_eps:
            yield "eps of the norms", f"{config.norm_eps:g}", f"{eps:g}", with_eps(eps)
    if config.activation in ACTIVATIONS:
        for name in ACTIVATIONS:
            if name != config.activation:
                yield "activation", config.activation, name, with_activation(name)
    heads = config.heads
    yield "rows of qkv", "(3, heads, e)", "(heads, 3, e)", with_qkv(head_major(heads))
    yield "rows of qkv", "query, key, value", "key, query, value", with_qkv(swapped)
    if type(model.patch_embed) is PatchEmbed:
        sizes = {"c": config.channels, "py": config.patch_shape[0]}
        kernels = {
            "(row, column, channel)": "d (py px c) -> d (c py px)",
            "(channel, column, row)": "d (c px py) -> d (c py px)",
        }
        for order, pattern in kernels.items():
            yield "order in a patch", "(channel, row, column)", order, with_kernel(pattern, sizes)
        if config.channels == 3:
            yield "colours", "red, green, blue", "blue, green, red", with_kernel("", sizes)
    if config.positions == "learned":
        yield "grid of positions", "row by row", "column by column", with_table(turned)
        if config.class_token:
            yield "class token's row", "first", "last", with_table(class_row_last)


def with_eps(eps: float) -> Change:
    """Every LayerNorm with another eps."""

    def change(model: Classifier) -> None:
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = eps

    return change


def with_activation(name: str) -> Change:
    """Every MLP with another activation."""

    def change(model: Classifier) -> None:
        for module in model.modules():
            if isinstance(module, Mlp):
                module.activation = ACTIVATIONS[name]

    return change


def with_qkv(order: Callable[[Tensor], Tensor]) -> Change:
    """Every block's stacked projection with its rows in another order."""

    def change(model: Classifier) -> None:
        for block in model.encoder.blocks:
            linear = block.get_submodule("attn.qkv")
            for name, parameter in linear.named_parameters():
                setattr(linear, name, nn.Parameter(order(parameter)))

    return change


def head_major(heads: int) -> Callable[[Tensor], Tensor]:
    """Rows that were stored (heads, 3, e) and are read as (3, heads, e)."""
    return lambda rows: rearrange(rows, "(three h e) ... -> (h three e) ...", three=3, h=heads)


def swapped(rows: Tensor) -> Tensor:
    """Keys for queries and queries for keys."""
    q, k, v = rows.chunk(3)
    return torch.cat([k, q, v])


def with_kernel(pattern: str, sizes: dict[str, int]) -> Change:
    """The patch embedding with its columns in another order, or its channels reversed."""

    def change(model: Classifier) -> None:
        weight = model.state_dict()["patch_embed.proj.weight"]
        if pattern:
            weight = rearrange(weight, pattern, **sizes).clone()
        else:
            weight = rearrange(weight, "d (c p) -> d c p", c=sizes["c"]).flip(1).flatten(1)
        model.load_state_dict({"patch_embed.proj.weight": weight}, strict=False)

    return change


def with_table(order: Callable[[Tensor, Classifier], Tensor]) -> Change:
    """The position table with its rows in another order."""

    def change(model: Classifier) -> None:
        table = order(model.state_dict()["pos_embed.table"], model)
        model.load_state_dict({"pos_embed.table": table}, strict=False)

    return change


def turned(table: Tensor, model: Classifier) -> Tensor:
    """The rows of the grid, column by column."""
    first = int(model.config.class_token)
    grid = table[first:].unflatten(0, model.config.grid)
    return torch.cat([table[:first], grid.transpose(0, 1).flatten(0, 1)])


def class_row_last(table: Tensor, model: Classifier) -> Tensor:  # noqa: ARG001
    """The first row behind all others."""
    return table.roll(-1, dims=0)


def resizing(model: Classifier, images: Tensor) -> Iterator[Counterfactual]:
    """Other ways to stretch the table, on images half as large again."""
    config = model.config
    if config.positions != "learned" or config.stem != "linear":
        return
    sides = zip(config.grid, config.patch_shape, strict=True)
    larger = nn.functional.interpolate(images, [(g + (g + 1) // 2) * p for g, p in sides])
    normal = model(larger)
    for name in RESIZES:
        if name != config.position_resize:
            other = copy.deepcopy(model)
            assert isinstance(other.pos_embed, Learned)
            other.pos_embed.resize = name
            moves = difference(other(larger), normal)
            yield Counterfactual("resizing, at 1.5 times", config.position_resize, name, moves)


def normalisation(model: Classifier, images: Tensor, normal: Tensor) -> Iterator[Counterfactual]:
    """Pixels normalised by another mean and deviation."""
    given = model.image_input
    if given is None or given.channels != 3:
        return
    known = {
        "0.5 and 0.5": ((0.5,) * 3, (0.5,) * 3),
        "ImageNet's": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    }
    pixels = images * column(given.std) + column(given.mean)
    for name, (mean, std) in known.items():
        other = replace(given, mean=mean, std=std)
        if other != given:
            wrong = model((pixels - column(mean)) / column(std))
            used = f"{given.mean[0]:g} and {given.std[0]:g} ..."
            yield Counterfactual("mean and deviation", used, name, difference(wrong, normal))


def column(values: tuple[float, ...]) -> Tensor:
    """One number a channel, over all pixels."""
    return torch.tensor(values).view(-1, 1, 1)
