"""What a model will cost, before it is built."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from vitreous import config as configs
from vitreous import settings
from vitreous.config import Recipe, ViTConfig
from vitreous.cost import memory
from vitreous.cost.changes import Change, changes
from vitreous.cost.flops import MultiplyAdds, forward
from vitreous.cost.memory import Memory
from vitreous.cost.parameters import count_parameters
from vitreous.cost.sizes import in_bytes, in_count
from vitreous.cost.tokens import patch_tokens

__all__ = ["Plan", "plan"]

Row = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cost of one model: multiply-adds and FLOPs of one image, bytes of a whole batch."""

    config: ViTConfig
    recipe: Recipe
    """Its batch size is the plan's."""
    train: bool
    """Whether the memory is that of training; of inference otherwise."""
    tokens: int
    parameters: int
    by_part: MultiplyAdds
    """Of one image through the whole model."""
    memory: Memory

    @property
    def batch(self) -> int:
        """Images at once."""
        return self.recipe.batch_size

    @property
    def multiply_adds(self) -> int:
        """Of one image, in all."""
        return self.by_part.total

    @property
    def flops(self) -> int:
        """Of one image, in all: 2 × multiply-adds."""
        return self.by_part.flops

    @property
    def attention_share(self) -> float:
        """Attention products (queries with keys, weights with values) over all multiply-adds."""
        return self.by_part.attention_share

    @property
    def changes(self) -> list[Change]:
        """The same with half the patch, and with double the image."""
        return changes(self.config, self.recipe)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values, and every setting that it follows from."""
        return {
            "tokens": self.tokens,
            "patch_tokens": patch_tokens(self.config),
            "prefix_tokens": self.config.prefix_tokens,
            "parameters": self.parameters,
            "multiply_adds": self.multiply_adds,
            "flops": self.flops,
            "attention_share": self.attention_share,
            "multiply_adds_by_part": asdict(self.by_part),
            "batch": self.batch,
            "train": self.train,
            "memory": asdict(self.memory),
            "changes": [asdict(change) for change in self.changes],
            "settings": settings.to_dict(self.config) | settings.to_dict(self.recipe),
        }

    def __str__(self) -> str:
        sections = [f"{title}\n{aligned(rows)}".rstrip() for title, rows in sections_of(self)]
        return "\n\n".join(sections)

    def _repr_html_(self) -> str:
        from vitreous.figures.page import section, table  # needs numpy and PIL, a plan does not

        return "\n".join(section(title, table(rows)) for title, rows in sections_of(self))


def plan(
    config: ViTConfig | str,
    *,
    batch: int | None = None,
    train: bool = True,
    recipe: Recipe | str = "fast",
) -> Plan:
    """What a model costs, without building it and without torch.

    `config` and `recipe` may be names of presets. The batch is the recipe's unless given. Without
    `train` the memory is that of answering, in float32, and nothing is kept for a gradient. Raises
    ConfigError for an unknown name or a batch below 1.

    >>> plan("b16").multiply_adds
    17563828224
    """
    config = configs.preset(config) if isinstance(config, str) else config
    recipe = configs.recipe(recipe) if isinstance(recipe, str) else recipe
    if batch is not None:
        recipe = replace(recipe, batch_size=batch)
    needs = memory.training(config, recipe) if train else memory.answering(config, recipe)
    return Plan(
        config=config,
        recipe=recipe,
        train=train,
        tokens=config.tokens,
        parameters=count_parameters(config),
        by_part=forward(config),
        memory=needs,
    )


def sections_of(plan: Plan) -> Iterator[tuple[str, list[Row]]]:
    """The plan as titled tables, for a terminal and for a notebook alike."""
    yield title(plan.config), sizes(plan)
    yield "multiply-adds of one image, by part", parts(plan)
    work = f"{plan.recipe.precision}, {plan.recipe.optimizer}" if plan.train else "float32"
    purpose = "training" if plan.train else "inference"
    yield f"memory of {purpose}, batch {plan.batch}, {work}, on a CPU", bytes_by_part(plan)
    for change in plan.changes:
        yield change.sentence, factors(plan.config, change)


def title(config: ViTConfig) -> str:
    """The shape of the model in one line."""
    (y, x), (py, px) = config.image_shape, config.patch_shape
    return (
        f"image {y}×{x}, patch {py}×{px}, width {config.width}, depth {config.depth}, "
        f"heads {config.heads}"
    )


def sizes(plan: Plan) -> list[Row]:
    """The figures that are asked for first."""
    (rows, columns), prefix = plan.config.grid, plan.config.prefix_tokens
    return [
        ("tokens", f"{plan.tokens:,} = {rows}×{columns} patches + {prefix} prefix"),
        ("parameters", f"{plan.parameters:,}"),
        ("multiply-adds", f"{in_count(plan.multiply_adds)} an image"),
        ("flops", f"{in_count(plan.flops)} an image: 2 × multiply-adds"),
        ("attention's share", f"{plan.attention_share:.1%} (its products; projections are apart)"),
    ]


def parts(plan: Plan) -> list[Row]:
    """Multiply-adds and share of every part that there is."""
    return [
        (name.replace("_", " "), f"{in_count(count)} {count / plan.multiply_adds:7.1%}")
        for name, count in asdict(plan.by_part).items()
        if count
    ]


def bytes_by_part(plan: Plan) -> list[Row]:
    """What memory holds."""
    *kinds, total, inference = asdict(plan.memory).items()
    rows = [(name, in_bytes(size)) for name, size in kinds if size]
    rows.append(("total", f"{in_bytes(total[1])}, at the worst moment"))
    if plan.train:
        rows.append(("inference", f"{in_bytes(inference[1])}, float32"))
    return rows


def factors(config: ViTConfig, change: Change) -> list[Row]:
    """By how much each cost grows, largest units first."""
    if change.factors is None:
        return []
    prefix = config.prefix_tokens
    notes = {"tokens": f" ({prefix} prefix stay {prefix})" if prefix else ""}
    return [
        (name.replace("_", " "), f"×{factor:.4g}{notes.get(name, '')}")
        for name, factor in change.factors.items()
    ]


def aligned(rows: list[Row]) -> str:
    """Two columns for a terminal."""
    return "\n".join(f"  {name:22} {value}" for name, value in rows)
