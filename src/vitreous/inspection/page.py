"""The page of `vitreous look`: one file that needs nothing else, and the same pictures as PNGs."""

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from importlib import resources
from pathlib import Path

from torch import Tensor

from vitreous.checkpoints.files import require_room, write_bytes
from vitreous.figures import page
from vitreous.inspection.charts import faithfulness_chart
from vitreous.inspection.look import Look
from vitreous.inspection.model_page import Keep, of_model
from vitreous.inspection.payload import payload, trimmed
from vitreous.inspection.pictures import (
    Picture,
    attention_picture,
    cut,
    enlarged,
    overlay,
)
from vitreous.models.classifier import Classifier
from vitreous.nn.patches import PatchEmbed

__all__ = ["PAGE", "write_looks"]

PAGE = "look.html"
TITLES = {
    "relevance": "Relevance",
    "gradient_input": "Gradient × input",
    "rollout": "Rollout",
}
EXPLAINED = {
    "relevance": "attention weighted by its gradient for the answer, layer by layer",
    "gradient_input": "pixels times the answer's gradient; orange speaks for it, blue against",
    "rollout": "attention followed through the layers; it knows no class",
}
NO_SCRIPT = "<noscript><p>Without scripts, see the sheet of all heads below.</p></noscript>"

Named = Mapping[str, Tensor]


def write_looks(
    folder: Path,
    model: Classifier,
    looks: Sequence[Look],
    *,
    title: str,
    command: str,
    heads: Sequence[int] | None = None,
) -> Path:
    """Write the page and its PNGs into a folder, and say where the page is; raises RunError.

    `heads` are the numbers of the heads that were recorded, where not all.
    """
    require_room(folder, 1 << 16)
    numbers = list(range(model.config.heads)) if heads is None else chosen(heads, model)
    parts = [
        f"<section>{of_image(folder, n, look, model, numbers)}</section>"
        for n, look in enumerate(looks)
    ]
    parts.append(f"<section>{of_model(partial(save, folder), model, looks, numbers)}</section>")
    parts.append(page.section("Made by", page.facts({"command": command, **settings(model)})))
    if any(look.attention for look in looks):
        parts.append(f"<script>{resource('look.js')}</script>")
    path = folder / PAGE
    whole = page.page(title, [NO_SCRIPT, *parts], style=resource("look.css"))
    write_bytes(path, whole.encode())
    return path


def chosen(heads: Sequence[int], model: Classifier) -> list[int]:
    """Head numbers, counted from the front."""
    return [head % model.config.heads for head in heads]


def resource(name: str) -> str:
    """A file that lies beside this one."""
    return resources.files("vitreous.inspection").joinpath(name).read_text(encoding="utf-8")


def settings(model: Classifier) -> dict[str, object]:
    """The shape of the model, in words."""
    config = model.config
    return {
        "images": "{}×{} pixels".format(*config.image_shape),
        "patches": "{}×{} pixels".format(*config.patch_shape) + f", {config.stem} stem",
        "width, depth, heads": f"{config.width}, {config.depth}, {config.heads}",
        "positions, pooling": f"{config.positions}, {config.pooling}",
    }


def save(folder: Path, name: str, picture: Picture) -> Picture:
    """Keep a picture as a PNG, too."""
    write_bytes(folder / f"{name}.png", picture.png)
    return picture


def of_image(folder: Path, number: int, look: Look, model: Classifier, heads: list[int]) -> str:
    """Everything about one image."""
    if look.pixels is None or look.layout is None:
        sentence = f'<p class="unread">{escape(look.error or "nothing was read")}</p>'
        return page.section(look.name, sentence)
    keep = partial(save, folder)
    stem = f"{number:02}-{safe(Path(look.name).stem)}"
    parts = [answer(look), tokens(keep, stem, look, model)]
    if look.attention:
        parts += [reader(look, model, heads), sheet(keep, stem, look, heads)]
    parts.append("<h3>What the answer rests on</h3>")
    parts += [
        token_map(keep, stem, look, model, method) for method in TITLES if method in look.maps
    ]
    return page.section(look.name, *parts)


def safe(name: str) -> str:
    """A file name that every system takes."""
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:60] or "image"


def answer(look: Look) -> str:
    """The answer and its probability, and the next likeliest."""
    if not look.answers:
        return '<p class="lead">This model has no classes, so there is no answer.</p>'
    name, chance = look.answers[0]
    bars = "".join(
        f'<span>{escape(each)}</span><div><i style="width:{100 * p:.1f}%"></i></div><b>{p:.1%}</b>'
        for each, p in look.answers
    )
    return (
        f'<p class="lead">The answer is <b>{escape(name)}</b>, with probability {chance:.1%}.</p>'
        f'<div class="chances">{bars}</div>'
    )


def tokens(keep: Keep, stem: str, look: Look, model: Classifier) -> str:
    """The image, its patches, and the sequence that they become."""
    assert look.pixels is not None
    assert look.layout is not None
    (rows, columns), (py, px) = look.layout.grid, model.config.patch_shape
    large = enlarged(look.pixels)
    times = large.shape[1] // look.pixels.shape[1]
    pieces = cut(large, (py * times, px * times), gap=max(2, px * times // 8))
    seen = keep(f"{stem}-image", Picture("As the model sees it.", large))
    title = f"Cut into {rows}×{columns} patches of {py}×{px}."
    cuts = keep(f"{stem}-patches", Picture(title, pieces))
    prefix = ", ".join(look.layout.labels[: look.layout.prefix])
    sequence = f"{prefix} and then" if prefix else "only"
    overlap = (
        ""
        if isinstance(model.patch_embed, PatchEmbed)
        else " Its convolutions also see beyond them."
    )
    return (
        f"<p>{look.layout.tokens} tokens of {model.config.width} numbers: {sequence} "
        f"{rows * columns} patches, row by row.{overlap}</p>"
        f'<div class="pair">{sharp(seen)}{sharp(cuts)}</div>'
    )


def sharp(picture: Picture, caption: str | None = None) -> str:
    """A picture whose pixels stay squares."""
    text = escape(picture.title)
    return (
        f'<figure><img class="pixels" alt="{text}" src="{picture.address}">'
        f"<figcaption>{text if caption is None else caption}</figcaption></figure>"
    )


def reader(look: Look, model: Classifier, heads: list[int]) -> str:
    """The part that answers: point at a patch, and see whom it reads."""
    assert look.pixels is not None
    assert look.layout is not None
    kept, left_out = trimmed(look.attention)
    shape = (look.pixels.shape[1], look.pixels.shape[2])
    patch, (rows, columns) = model.config.patch_shape, look.layout.grid
    over = [100 * n * p / side for n, p, side in zip((rows, columns), patch, shape, strict=True)]
    picture = Picture("", enlarged(look.pixels))
    about = payload(kept, heads, look.layout, shape, patch)
    return (
        "<h3>Who reads whom</h3>"
        '<p class="hint">Point at a patch, tap it, or move with the arrow keys: the tiles show '
        f"whom it reads. Tap a tile to lay it over the image. {escape(left_out)}</p>"
        '<div class="attention"><div><div class="stage" tabindex="0" role="group" '
        'aria-label="The image; arrow keys move from patch to patch">'
        f'<img class="pixels" alt="" src="{picture.address}">'
        f'<canvas style="width:{over[1]:.4f}%;height:{over[0]:.4f}%"></canvas>'
        '<div class="mark" hidden></div></div><div class="chips"></div>'
        '<p class="says" aria-live="polite"></p></div>'
        '<div><select aria-label="Which maps are shown"></select><div class="heads"></div></div>'
        f'<script type="application/json">{about}</script>'
        "</div>"
    )


def sheet(keep: Keep, stem: str, look: Look, heads: list[int]) -> str:
    """All layers and heads at a glance, also without scripts and on paper."""
    assert look.layout is not None
    picture = keep(f"{stem}-attention", attention_picture(look.attention, look.layout, heads=heads))
    return (
        f'<figure class="sheet"><img alt="{escape(picture.title)}" src="{picture.address}">'
        f"<figcaption>All layers and heads: {escape(picture.title)}, each tile by its own "
        "largest weight.</figcaption></figure>"
    )


def token_map(keep: Keep, stem: str, look: Look, model: Classifier, method: str) -> str:
    """One map over the image, beside what it is worth."""
    assert look.pixels is not None
    tinted = overlay(look.pixels, look.maps[method], model.config.patch_shape)
    picture = keep(f"{stem}-{method.replace('_', '-')}", Picture(TITLES[method], enlarged(tinted)))
    low, high = look.maps[method].min(), look.maps[method].max()
    caption = f"<b>{TITLES[method]}</b>, {low:.3g} to {high:.3g}: {EXPLAINED[method]}."
    if method in look.verdicts:
        worth = faithfulness_chart(look.verdicts[method])
    else:
        worth = "<p>Not held against chance here, so take it for a picture only.</p>"
    return f'<div class="map">{sharp(picture, caption)}{worth}</div>'
