"""A study: one question, one base, arms that each change it, and seeds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from typing import Any, TypeAlias

from vitreous import config as configs
from vitreous import settings
from vitreous.config import Recipe, ViTConfig
from vitreous.errors import ConfigError
from vitreous.studies.material import Material
from vitreous.studies.scores import RandomScores

__all__ = ["NULL_SEED", "Cell", "Study"]

Changes: TypeAlias = Mapping[str, Any]
NULL_SEED = 1_000
"""The null arm is the base on seeds that are so much higher."""


@dataclass(frozen=True)
class Cell:
    """One arm with one seed: everything that its outcome depends on."""

    arm: str
    seed: int
    parts: tuple[Any, ...]
    """Settings objects: model, recipe and material of a training, or what else is measured."""

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every setting, resolved, as JSON values."""
        return {k: v for part in self.parts for k, v in settings.to_dict(part).items()}

    @cached_property
    def name(self) -> str:
        """A hash of kind, settings and seed; not of the arm's name."""
        kinds = [type(part).__name__ for part in self.parts]
        whole = json.dumps([kinds, self.settings, self.seed], sort_keys=True)
        return sha256(whole.encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Study:
    """A question, a base, arms that each are one `replace` of the base, and seeds.

    The base is a ViTConfig that is trained by `recipe` on `material`, or a RandomScores, for which
    neither matters. Each arm is a name and the settings that it changes, of any of these. Raises
    ConfigError, with the nearest name, for an unknown setting, for an arm that changes nothing, and
    for a seed that is given twice.

    >>> study = Study(
    ...     name="positions",
    ...     question="What are positions worth?",
    ...     base=configs.preset("digits-small"),
    ...     base_name="learned",
    ...     arms={"none": {"positions": "none"}},
    ... )
    >>> [(cell.arm, cell.seed) for cell in study.cells][:3]
    [('learned', 0), ('none', 0), ('learned again', 1000)]
    """

    name: str
    question: str
    base: ViTConfig | RandomScores
    arms: Mapping[str, Changes]
    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    recipe: Recipe | str = "fast"
    material: Material = field(default_factory=Material)
    base_name: str = "base"
    against: Mapping[str, str] = field(default_factory=dict)
    """Which arm an arm is compared with, where that is not the base. An arm that others are
    compared with is itself compared with nothing, unless it stands here."""
    along: str = ""
    """What the figure's lower axis shows, where arms stand along one."""
    series: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Lines of that figure: a name, and the place of each of its arms on the axis."""
    note: str = ""
    """What a reader of the report should know: that it is exploratory, where figures come from."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", tuple(self.seeds))
        if isinstance(self.recipe, str):
            object.__setattr__(self, "recipe", configs.recipe(self.recipe))
        self._check_seeds()
        self._check_arms()

    def _check_seeds(self) -> None:
        if not self.seeds:
            raise ConfigError(f"study {self.name!r} has no seeds")
        twice = sorted({seed for seed in self.seeds if self.seeds.count(seed) > 1})
        if twice:
            raise ConfigError(f"study {self.name!r}: seed {twice[0]} is given twice")
        if min(self.seeds) < 0 or max(self.seeds) >= NULL_SEED:
            raise ConfigError(
                f"study {self.name!r}: seeds are 0 to {NULL_SEED - 1}, those above are the null "
                f"arm's; got {min(self.seeds)} to {max(self.seeds)}"
            )

    def _check_arms(self) -> None:
        if not self.arms or {self.base_name, self.null_name} & set(self.arms):
            raise ConfigError(
                f"study {self.name!r} needs arms beside its base, of other names than "
                f"{self.base_name!r} and {self.null_name!r}"
            )
        known = {self.base_name: {}, **self.arms}
        placed = [arm for places in self.series.values() for arm in places]
        for arm in (*self.against, *self.against.values(), *placed):
            settings.named("arm", arm, known)
        for arm, other in self.against.items():
            if arm in (other, self.base_name):
                raise ConfigError(f"study {self.name!r}: {arm!r} cannot be compared with {other!r}")
        seen = {Cell("", 0, self.parts).name: self.base_name}
        for arm in self.arms:
            cell = self.cell(arm, 0)
            if cell.name in seen:
                raise ConfigError(
                    f"study {self.name!r}: arm {arm!r} does not differ from {seen[cell.name]!r}"
                )
            seen[cell.name] = arm

    @property
    def parts(self) -> tuple[Any, ...]:
        """The settings objects of the base."""
        if isinstance(self.base, RandomScores):
            return (self.base,)
        return (self.base, self.recipe, self.material)

    @property
    def measure(self) -> str:
        """What arms are compared by."""
        return "entropy" if isinstance(self.base, RandomScores) else "test_accuracy"

    @property
    def null_name(self) -> str:
        """The arm that is the base on other seeds: what a difference of nothing looks like."""
        return f"{self.base_name} again"

    def cell(self, arm: str, seed: int) -> Cell:
        """One arm with one seed."""
        changes = self.arms.get(arm, {})
        try:
            return Cell(arm, seed, changed(self.parts, changes))
        except ConfigError as error:
            raise ConfigError(f"study {self.name!r}, arm {arm!r}: {error}") from error

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell, seed by seed, so that a study that is stopped early is still balanced."""
        for seed in self.seeds:
            yield self.cell(self.base_name, seed)
            for arm in self.arms:
                yield self.cell(arm, seed)
            yield self.cell(self.null_name, seed + NULL_SEED)

    @property
    def contrasts(self) -> dict[str, str]:
        """Each arm that is compared with another, and with which."""
        quiet = set(self.against.values()) - set(self.against)
        return {arm: self.against.get(arm, self.base_name) for arm in self.arms if arm not in quiet}


def changed(parts: tuple[Any, ...], changes: Changes) -> tuple[Any, ...]:
    """The parts with these settings changed, each in the part that has it."""
    known = {field.name: None for part in parts for field in fields(part)}
    for name in changes:
        settings.named("setting", name, known)
    done = []
    for part in parts:
        own = {field.name for field in fields(part)}
        done.append(replace(part, **{name: v for name, v in changes.items() if name in own}))
    if not changes or done != list(parts):
        return tuple(done)
    raise ConfigError("it changes nothing: " + ", ".join(f"{n}={v!r}" for n, v in changes.items()))
