"""Many plans: every combination of some settings' values."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from vitreous import settings
from vitreous.config import Recipe, ViTConfig
from vitreous.cost.plan import Plan, plan
from vitreous.errors import ConfigError

__all__ = ["Row", "parse_axis", "sweep"]

MODEL, RECIPE = settings.setting_types(ViTConfig), settings.setting_types(Recipe)


@dataclass(frozen=True)
class Row:
    """One combination, with its plan or the sentence that says why there is none."""

    values: Mapping[str, Any]
    plan: Plan | None = None
    refused: str | None = None

    @property
    def name(self) -> str:
        """The values, as they would be set."""
        return ", ".join(f"{name}={plain(value)}" for name, value in self.values.items())


def sweep(
    config: ViTConfig,
    recipe: Recipe,
    axes: Mapping[str, Sequence[Any]],
    *,
    train: bool = True,
) -> Iterator[Row]:
    """A row for each combination, the last setting moving fastest; nothing set gives one row.

    A combination that cannot be built says so, and the others stand.
    """
    for combination in product(*axes.values()):
        values = dict(zip(axes, combination, strict=True))
        try:
            model = replace(config, **{n: v for n, v in values.items() if n in MODEL})
            training = replace(recipe, **{n: v for n, v in values.items() if n in RECIPE})
            yield Row(values, plan(model, recipe=training, train=train))
        except ConfigError as error:
            yield Row(values, refused=str(error))


def parse_axis(text: str) -> tuple[str, list[Any]]:
    """`name=value,value,...`, typed by the setting that it names; raises ConfigError.

    >>> parse_axis("image_size=224,[32,48]")
    ('image_size', [224, (32, 48)])
    """
    name, equals, values = text.partition("=")
    if not equals or not values:
        raise ConfigError(f"{text}: write a sweep as name=value,value,...")
    wanted = settings.named("setting", name, MODEL | RECIPE)
    return name, [settings.parse(value, wanted, name) for value in separated(values)]


def separated(values: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for letter in values:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def plain(value: Any) -> str:
    """A value as a person writes it."""
    return "×".join(map(str, value)) if isinstance(value, tuple) else str(value)
