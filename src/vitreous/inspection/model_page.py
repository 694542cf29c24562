"""The part of a page that is about the model, not about one image: heads, positions, filters."""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape

import torch
from torch import Tensor

from vitreous.errors import ConfigError
from vitreous.figures import page
from vitreous.figures.colours import Pixels, diverging
from vitreous.inspection.charts import heads_chart
from vitreous.inspection.embedding import patch_filters, position_similarity, principal_filters
from vitreous.inspection.heads import (
    attention_distance,
    attention_entropy,
    entropy_sentence,
    head_sentence,
)
from vitreous.inspection.look import Look
from vitreous.inspection.pictures import Picture, by_largest, enlarged, grid_of_maps, mosaic
from vitreous.models.classifier import Classifier
from vitreous.nn.patches import PatchEmbed

__all__ = ["Keep", "of_model"]

Keep = Callable[[str, Picture], Picture]
"""Keeps a picture under a name, and hands it back."""


def of_model(keep: Keep, model: Classifier, looks: Sequence[Look], heads: list[int]) -> str:
    """What does not depend on one image: heads, positions, filters."""
    return page.section(
        "The model",
        *of_heads(model, [look for look in looks if look.attention], heads),
        *of_positions(keep, model),
        *of_filters(keep, model),
    )


def of_heads(model: Classifier, looks: Sequence[Look], numbers: list[int]) -> Iterator[str]:
    """How far and how widely each head looks, over all the images of the page."""
    if not looks or looks[0].layout is None:
        return
    layout, patch = looks[0].layout, model.config.patch_shape
    maps = {
        name: torch.cat([look.attention[name] for look in looks]) for name in looks[0].attention
    }
    far = {name: attention_distance(weights, layout, patch) for name, weights in maps.items()}
    wide = {name: attention_entropy(weights) for name, weights in maps.items()}
    yield f"<h3>Heads</h3><p>{escape(entropy_sentence(wide, layout.tokens))} {count(looks)}</p>"
    yield heads_chart(far, "How far heads look", "mean distance, pixels")
    most = math.log(layout.tokens)
    yield heads_chart(wide, "How widely heads look", "mean entropy, nats", most)
    rows = [
        (
            name,
            numbers[head],
            f"{far[name][head]:.1f}",
            head_sentence(float(wide[name][head]), layout.tokens),
        )
        for name in maps
        for head in range(len(far[name]))
    ]
    table = page.table(rows, head=("layer", "head", "distance, px", "entropy says: it"))
    yield f"<details><summary>Every head</summary>{table}</details>"


def count(looks: Sequence[Look]) -> str:
    """Over how many images."""
    return "Over one image." if len(looks) == 1 else f"Over {len(looks)} images."


def of_positions(keep: Keep, model: Classifier) -> Iterator[str]:
    """Which positions are alike."""
    yield "<h3>Positions</h3>"
    try:
        similar = position_similarity(model)
    except ConfigError as error:
        yield f"<p>Nothing to show: {escape(str(error))}.</p>"
        return
    title = "cosine similarity of position embeddings"
    picture = keep("positions", grid_of_maps(thinned(similar), title))
    yield (
        f'<figure class="sheet"><img alt="{title}" src="{picture.address}"><figcaption>Each tile '
        "stands where its patch stands, and shows the cosine similarity of its position with "
        "every other's: orange 1, blue −1.</figcaption></figure>"
    )


def thinned(similar: Tensor, most: int = 14) -> Tensor:
    """At most so many rows and columns of tiles, evenly spaced."""
    rows, columns = (
        torch.linspace(0, side - 1, min(side, most)).round().long() for side in similar.shape[:2]
    )
    return similar[rows][:, columns]


def of_filters(keep: Keep, model: Classifier) -> Iterator[str]:
    """What the patch embedding looks for."""
    filters = patch_filters(model)
    linear = isinstance(model.patch_embed, PatchEmbed)
    what = "patch filters" if linear else "kernels of the first convolution"
    best, shares = principal_filters(filters)
    tiles = [enlarged(filter_pixels(one), 48) for one in best]
    picture = keep("filters", Picture(f"principal {what}", mosaic(in_rows(tiles, 9))))
    yield (
        f'<h3>Filters</h3><figure class="sheet"><img alt="{picture.title}" '
        f'src="{picture.address}"><figcaption>The {len(best)} principal {what} of {len(filters)}; '
        f"the first {min(5, len(best))} hold {float(shares[:5].sum()):.0%} of their variance."
        "</figcaption></figure>"
    )


def filter_pixels(one: Tensor) -> Pixels:
    """A filter in colour where it reads three channels, signed otherwise; by its largest size."""
    values = by_largest(one.float().cpu().numpy())
    if len(values) == 3:
        return (127.5 * (values + 1)).round().astype("uint8")
    return diverging(values.mean(axis=0))


def in_rows(tiles: Sequence[Pixels], wide: int) -> list[Sequence[Pixels]]:
    """So many side by side."""
    return [tiles[at : at + wide] for at in range(0, len(tiles), wide)]
