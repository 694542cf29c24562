import re
from dataclasses import replace

import pytest
from hypothesis import example, given, settings

from tests.models.drawn import configs
from vitreous import ViTConfig, plan
from vitreous.cost.explain import Line, board, explain

SMALL = ViTConfig(image_size=8, patch_size=2, width=16, depth=2, heads=2)


def worked_out(line: Line) -> float:
    """What the numbers of a line come to, by Python's own arithmetic."""
    sum_ = line.numbers.replace(",", "").replace("·", "*").replace("²", "**2")
    assert re.fullmatch(r"[0-9+*/() -]+", sum_), line
    return eval(sum_)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("recipe", ["fast", "published"])
@given(config=configs())
@example(config=SMALL)
@example(config=replace(SMALL, activation="swiglu", pooling="attention", positions="rotary"))
@example(config=replace(SMALL, stem="convolution", positions="learned_axes", layer_scale=0.1))
@settings(deadline=None, max_examples=25)
def test_every_line_on_the_board_adds_up(config, recipe, train):
    for lines in board(plan(config, recipe=recipe, train=train)).values():
        for line in lines:
            assert worked_out(line) == line.value, line


def test_the_last_line_of_each_section_is_the_plans():
    b16 = plan("b16", batch=4)
    ends = [lines[-1].value for lines in board(b16).values()]
    assert ends == [b16.tokens, b16.parameters, b16.flops, b16.memory.total]


def test_a_line_says_formula_numbers_and_result_below_each_other():
    text = explain(plan("b16"))
    lines = text[text.index("attention products ") :].splitlines()[:3]
    assert [line.split("= ")[1] for line in lines] == [
        "depth · 2 · tokens² · width",
        "12 · 2 · 197² · 768",
        "715,327,488",
    ]
