import pytest

from vitreous.figures import style
from vitreous.figures.bars import stacked

BARS = [{"weights": 2.0, "activations": 3.0}, {"weights": 1.0, "pooling": 4.0}]


def test_a_bar_is_as_long_as_its_parts_and_the_first_stands_on_top():
    with style.chart() as (_, axes):
        stacked(axes, BARS, ["one", "two"])
        ends = [max(p.get_x() + p.get_width() for p in axes.patches[row::2]) for row in (0, 1)]
        names = [label.get_text() for label in axes.get_yticklabels()]
        bottom, top = axes.get_ylim()
    assert ends == [5.0, 5.0]
    assert names == ["one", "two"]
    assert top < 0 < bottom


@pytest.mark.parametrize("again", [False, True])
def test_a_part_has_its_colour_in_every_bar(again):
    with style.chart() as (_, axes):
        stacked(axes, BARS[::-1] if again else BARS, ["one", "two"])
        for container in axes.containers:
            assert len({patch.get_facecolor() for patch in container}) == 1
        named = axes.get_legend().get_texts()
    assert {text.get_text() for text in named} == {"weights", "activations", "pooling"}
