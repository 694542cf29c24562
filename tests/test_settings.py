from dataclasses import dataclass
from types import NoneType
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vitreous import ConfigError, Recipe, ViTConfig
from vitreous.settings import check, from_dict, nearest, parse, setting_types, to_dict


@dataclass(frozen=True, kw_only=True)
class Everything:
    """One setting of each kind there is."""

    count: int = 1
    rate: float = 0.5
    on: bool = True
    word: str = "a"
    kind: Literal["x", "y"] = "x"
    size: int | tuple[int, int] = 2
    limit: float | None = None
    levels: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        check(self)


KINDS = setting_types(Everything)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("count", "3", 3),
        ("count", "-3", -3),
        ("rate", "0.25", 0.25),
        ("rate", "1e-4", 1e-4),
        ("rate", "3", 3),
        ("on", "true", True),
        ("on", "false", False),
        ("word", "plain", "plain"),
        ("word", '"3"', "3"),
        ("word", "none", "none"),
        ("kind", "y", "y"),
        ("kind", '"y"', "y"),
        ("size", "28", 28),
        ("size", "[28, 32]", (28, 32)),
        ("limit", "none", None),
        ("limit", "0.5", 0.5),
        ("levels", "[0.1, 1, 2.5]", (0.1, 1, 2.5)),
        ("levels", "[]", ()),
    ],
)
def test_text_becomes_the_value_it_says(name, text, value):
    parsed = parse(text, KINDS[name], name)
    assert parsed == value
    assert type(parsed) is type(value)
    Everything(**{name: parsed})


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("count", "3.0", "a whole number"),
        ("count", "true", "a whole number"),
        ("count", "none", "a whole number"),
        ("count", "three", "a whole number"),
        ("rate", "nan", "a number"),
        ("rate", "inf", "a number"),
        ("on", "1", "true or false"),
        ("on", "True", "true or false"),
        ("word", "3", "text"),
        ("kind", "z", "one of 'x', 'y'"),
        ("size", "[28]", "a whole number or a pair of whole numbers"),
        ("size", "[28, 32.5]", "a whole number or a pair of whole numbers"),
        ("limit", "None", "a number or none"),
        ("levels", "0.5", "a list of numbers"),
    ],
)
def test_text_of_another_kind_is_refused_in_words(name, text, wanted):
    with pytest.raises(ConfigError) as refusal:
        parse(text, KINDS[name], name)
    assert str(refusal.value) == f"{name}={text} is not {wanted}"


@pytest.mark.parametrize("kind", [ViTConfig, Recipe])
def test_every_setting_reads_back_what_it_writes(kind):
    written = {True: "true", False: "false", None: "none"}
    for name, wanted in setting_types(kind).items():
        value = getattr(kind(), name)
        text = written[value] if isinstance(value, bool | NoneType) else str(value)
        assert parse(text, wanted, name) == value


@given(
    st.builds(
        Everything,
        count=st.integers(),
        rate=st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
        on=st.booleans(),
        word=st.text("ab [=", max_size=4),
        kind=st.sampled_from(["x", "y"]),
        size=st.integers() | st.tuples(st.integers(), st.integers()),
        limit=st.none() | st.integers(-9, 9),
        levels=st.lists(st.floats(0, 1)).map(tuple),
    )
)
@settings(deadline=None, max_examples=30)
def test_settings_come_back_from_plain_values(some):
    assert from_dict(Everything, to_dict(some)) == some
    assert not any(isinstance(value, tuple) for value in to_dict(some).values())
    assert type(some.rate) is float


def test_a_whole_number_for_a_float_becomes_one():
    some = Everything(rate=3, limit=2)
    assert [type(some.rate), type(some.limit)] == [float, float]
    assert type(Everything(count=3).count) is int


@pytest.mark.parametrize(
    "change",
    [
        {"count": 1.0},
        {"count": True},
        {"rate": "1"},
        {"rate": True},
        {"rate": float("inf")},
        {"on": 0},
        {"word": b"a"},
        {"kind": "z"},
        {"size": [2, 2]},
        {"size": (2, 2, 2)},
        {"limit": "none"},
        {"levels": (0.5, "x")},
    ],
)
def test_a_value_of_another_type_is_refused(change):
    ((name, value),) = change.items()
    with pytest.raises(ConfigError) as refusal:
        Everything(**change)
    assert str(refusal.value).startswith(f"{name}={value!r} is not ")


def test_nothing_alike_is_no_hint():
    assert nearest("dept", ["depth", "width"]) == "depth"
    assert nearest("zzz", ["depth", "width"]) is None
