"""A drawing says what the plan says, and shows the paths that are there."""

import re
import subprocess
import sys
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from vitreous.config import PRESETS, ViTConfig, preset
from vitreous.cost.flops import forward
from vitreous.cost.parameters import count_parameters
from vitreous.inspection.diagram import draw

KINDS = {
    **PRESETS,
    "everything": replace(
        preset("s16"),
        register_tokens=4,
        pooling="attention",
        positions="rotary",
        layer_scale=0.1,
        activation="swiglu",
        image_size=(224, 112),
    ),
    "no blocks": ViTConfig(stem="convolution", depth=0, class_token=False, pooling="mean"),
}
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str, kind: str | None = None) -> list[str]:
    every = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return [each.text or "" for each in every if kind in (None, each.get("class"))]


@pytest.mark.parametrize("name", KINDS)
def test_parts_add_up_to_the_model(name):
    parts = draw(KINDS[name]).parts
    assert sum(part.parameters for part in parts) == count_parameters(KINDS[name])
    assert sum(part.flops for part in parts) == forward(KINDS[name]).flops
    assert all(part.parameters >= 0 and part.flops >= 0 for part in parts)


def test_every_arrow_bears_tokens_and_width():
    svg = draw(preset("b16")).svg
    flows = texts(svg, "shape")
    assert svg.count("l-4 0") == 0
    heads = len(re.findall(r'L320 \d+L324 \d+" class="flow"', svg))
    assert len(flows) >= heads > 8
    assert flows[:2] == ["196 × 768", "196 × 768"]
    assert set(flows[2:-2]) == {"197 × 768"}
    assert flows[-2:] == ["1 × 768", "1 × 1000"]


def test_a_grid_that_is_not_square_is_drawn_as_it_is():
    words = texts(draw(KINDS["everything"]).svg)
    assert "14 × 7 patches" in words
    assert "103 × 384" in words


@pytest.mark.parametrize(("norm", "first"), [("pre", "LayerNorm"), ("post", "Attention")])
def test_norms_stand_where_the_config_puts_them(norm, first):
    names = texts(draw(replace(preset("b16"), norm=norm)).svg, "name")
    inside = names[names.index("block, × 12") + 1 :]
    assert inside[0].startswith(first)
    assert [n.split(":")[0].split(",")[0] for n in inside[:4]] == (
        ["LayerNorm", "Attention", "LayerNorm", "MLP"]
        if norm == "pre"
        else ["Attention", "LayerNorm", "MLP", "LayerNorm"]
    )


def test_a_block_has_two_paths_round_it_and_none_without_blocks():
    assert draw("b16").svg.count('class="round residual"') == 2
    assert draw(KINDS["no blocks"]).svg.count('class="round residual"') == 0


def test_what_a_config_has_is_in_the_drawing_and_what_it_has_not_is_not():
    words = " ".join(texts(draw(KINDS["everything"]).svg))
    for there in ("Class token and 4 registers", "Rotary", "LayerScale", "Attention pooling"):
        assert there in words
    plain = " ".join(texts(draw("digits-fast").svg))
    for absent in ("Class token", "register", "Rotary", "LayerScale", "pooling"):
        assert absent not in plain
    assert "Mean of the 16 patches" in plain
    assert "3 convolutions, one Linear" in plain


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_drawn_outside_the_paper(name):
    root = ElementTree.fromstring(draw(KINDS[name]).svg)
    wide, high = (float(root.get(side)) for side in ("width", "height"))
    for each in root.iter(f"{SVG}text"):
        room = 7.2 * len(each.text)  # of a letter of 13 pixels, at most
        x, anchor = float(each.get("x")), each.get("text-anchor")
        left = x - {"start": 0, "middle": room / 2, "end": room}[anchor]
        assert left >= 0
        assert left + room <= wide or each.get("class") in ("title", "small")
        assert 0 < float(each.get("y")) < high


def test_a_drawing_needs_no_torch_and_nothing_outside():
    script = (
        "import sys, vitreous; svg = vitreous.draw('b16')._repr_svg_(); "
        "assert 'torch' not in sys.modules; print(svg)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert re.findall(r'(?:href|src|url)\W[^"]*', done.stdout) == []
    assert done.stdout.strip() == draw("b16").svg.strip()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"embed_norm": True, "pooled_norm": True, "final_norm": False}, ["LayerNorm"]),
        ({"distillation_token": True, "pooling": "distilled"}, ["distillation token", "Two heads"]),
        ({"pooling": "map", "class_token": False}, ["one query reads the patches, then an MLP"]),
        ({"head_reads": "cls_and_mean"}, ["Class token, and the mean of the patches"]),
        ({"pre_logits": True, "projection": 5}, ["Linear, tanh"]),
        ({"attention_width": 24, "classes": 0}, ["Features"]),
    ],
)
def test_what_other_libraries_models_have_is_drawn_and_counted(change, words):
    config = ViTConfig(image_size=8, width=16, depth=2, heads=2, **change)
    diagram = draw(config)
    assert all(word in diagram._repr_svg_() for word in words)
    assert sum(part.parameters for part in diagram.parts) == count_parameters(config)
    assert sum(part.flops for part in diagram.parts) == forward(config).flops
    assert {part.name: part for part in diagram.parts}["head"].parameters == (
        (2 if config.pooling == "distilled" else 1)
        * (16 * (2 if config.head_reads == "cls_and_mean" else 1) + 1)
        * config.classes
    )
