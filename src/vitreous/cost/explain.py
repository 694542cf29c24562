"""The formulas with the numbers filled in, as a teacher writes them on the board.

A formula is written once, in names; the numbers are put into it by name, and the result comes from
the same functions as the plan. A test works every line out again.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vitreous.config import ViTConfig
from vitreous.cost import activations, memory, parameters
from vitreous.cost.activations import BYTES
from vitreous.cost.plan import Plan
from vitreous.cost.tokens import convolutions, head_width, heads, patch_tokens

__all__ = ["Line", "board", "explain"]


class Term(NamedTuple):
    """A name, how it is worked out from names before it, and what it comes to."""

    name: str
    formula: str
    value: int


class Line(NamedTuple):
    """One equation on the board."""

    name: str
    formula: str
    numbers: str
    value: int

    def __str__(self) -> str:
        steps = dict.fromkeys([self.formula, self.numbers, f"{self.value:,}"])
        return f"{self.name:22} = ".replace("_", " ") + f"\n{'':22} = ".join(steps).replace(
            "_", " "
        )


def explain(plan: Plan) -> str:
    """The whole board, section by section."""
    return "\n\n".join(
        f"{title}\n\n" + "\n".join(map(str, lines)) for title, lines in board(plan).items()
    )


def board(plan: Plan) -> dict[str, list[Line]]:
    """Every equation, under what it is about and its unit."""
    purpose = "training" if plan.train else "inference"
    needs = training_memory(plan) if plan.train else inference_memory(plan)
    sections = {
        "Tokens": tokens(plan.config),
        "Parameters": parameter_terms(plan),
        "Multiply-adds of one image; FLOPs": multiply_adds(plan),
        f"Bytes of {purpose}": needs,
    }
    return {title: list(filled(plan, terms)) for title, terms in sections.items()}


def filled(plan: Plan, terms: Iterable[Term]) -> Iterator[Line]:
    """The terms as lines: each may name the sizes and the terms before it."""
    names = sizes(plan)
    for name, formula, value in terms:
        numbers = re.sub(r"[a-z][a-z0-9_]*", lambda found: f"{names[found[0]]:,}", formula)
        yield Line(name, formula, numbers, value)
        names[name] = value


def sizes(plan: Plan) -> dict[str, int]:
    """The names that formulas are written in."""
    config, layers = plan.config, convolutions(plan.config)
    (y, x), (py, px), (rows, columns) = config.image_shape, config.patch_shape, config.grid
    return {
        "y": y,
        "x": x,
        "py": py,
        "px": px,
        "rows": rows,
        "columns": columns,
        "channels": config.channels,
        "patches": patch_tokens(config),
        "prefix": config.prefix_tokens,
        "tokens": config.tokens,
        "width": config.width,
        "inner": config.inner,
        "shared": config.projection,
        "depth": config.depth,
        "heads": config.heads,
        "hidden": config.mlp_width,
        "classes": config.classes,
        "batch": plan.batch,
        "parameters": plan.parameters,
        **{f"in{k}": layer.wide for k, layer in enumerate(layers)},
        **{f"out{k}": layer.narrow for k, layer in enumerate(layers)},
        **{f"places{k}": layer.places for k, layer in enumerate(layers)},
    }


def tokens(config: ViTConfig) -> Iterator[Term]:
    """From pixels to a sequence."""
    if config.stem == "linear":
        yield Term("rows", "y / py", config.grid[0])
        yield Term("columns", "x / px", config.grid[1])
    yield Term("patches", "rows · columns", patch_tokens(config))
    yield Term("tokens", "patches + prefix", config.tokens)


def parameter_terms(plan: Plan) -> Iterator[Term]:
    """Matrices with their biases, learned tokens, positions and norms."""
    config, ways_in = plan.config, ways(plan.config)
    block = {
        "attention": (
            attention_weights(config),
            parameters.attention(config.width, config.inner, bias=config.qkv_bias),
        ),
        "mlp": (
            f"{ways_in + 1} · width · hidden + {times(ways_in)}hidden + width",
            parameters.mlp(config),
        ),
        "norms": ("4 · width", 2 * parameters.norm(config)),
    }
    if config.layer_scale is not None:
        block["scales"] = ("2 · width", 2 * config.width)
    yield from (Term(name, *term) for name, term in block.items())
    yield Term("block", " + ".join(block), parameters.block(config))
    whole = {
        "patch_embedding": (stem_weights(config), parameters.stem(config)),
        "prefix_tokens": ("prefix · width", config.prefix_tokens * config.width),
        "positions": (table(config), parameters.positions(config)),
        "blocks": ("depth · block", config.depth * parameters.block(config)),
        "embed_norm": ("2 · width", config.embed_norm * parameters.norm(config)),
        "final_norm": ("2 · width", config.final_norm * parameters.norm(config)),
        "pooling": (pooling_weights(config), parameters.pooling(config)),
        "pooled_norm": ("2 · width", config.pooled_norm * parameters.norm(config)),
        "pre_logits": ("width² + width", config.pre_logits * (config.width + 1) * config.width),
        "head": (
            f"{times(heads(config))}({times(seen(config))}width + 1) · classes",
            heads(config) * parameters.linear(head_width(config), config.classes),
        ),
        "projection": ("width · shared", config.width * config.projection),
    }
    yield from summed("parameters", whole, plan.parameters)


def summed(name: str, parts: dict[str, tuple[str, int]], value: int) -> Iterator[Term]:
    """The parts that there are, and their sum."""
    there = {part: term for part, term in parts.items() if term[1]}
    yield from (Term(part, *term) for part, term in there.items())
    yield Term(name, " + ".join(there), value)


def ways(config: ViTConfig) -> int:
    """Matrices into the hidden layer."""
    return 2 if config.activation == "swiglu" else 1


def inner(config: ViTConfig) -> str:
    """The name for the numbers of all heads together."""
    return "inner" if config.attention_width else "width"


def seen(config: ViTConfig) -> int:
    """Vectors that the head sees."""
    return head_width(config) // config.width


def attention_weights(config: ViTConfig) -> str:
    """A block's attention: queries, keys, values and the way back."""
    if not config.attention_width:
        return f"4 · width² + {'4 · width' if config.qkv_bias else 'width'}"
    return "4 · width · inner + " + "3 · inner + " * config.qkv_bias + "width"


def pooling_weights(config: ViTConfig) -> str:
    """Attention pooling: its query, its attention, and an MLP where there is one."""
    looks = "width + 4 · width² + 4 · width"
    return f"{looks} + 2 · width + mlp" if config.pooling == "map" else looks


def times(factor: int) -> str:
    """A factor before a name; one is not written."""
    return f"{factor} · " if factor > 1 else ""


def stem_weights(config: ViTConfig) -> str:
    """The patch embedding's parameters."""
    if config.stem == "linear":
        bias = " + 1" if config.patch_bias else ""
        norms = " + 2 · (channels · py · px + width)" if config.patch_norm else ""
        return f"(channels · py · px{bias}) · width{norms}"
    kernels = [f"(9 · in{k} + 1) · out{k}" for k in range(len(convolutions(config)))]
    return " + ".join([*kernels, "(width + 1) · width"])


def table(config: ViTConfig) -> str:
    """The rows of the position table."""
    if config.positions == "learned_axes":
        return "(rows + columns) · width"
    return "(patches + 1) · width" if config.class_token else "patches · width"


def multiply_adds(plan: Plan) -> Iterator[Term]:
    """Products only: norms, softmax and activations have none."""
    formulas = {
        "patch_embedding": stem_products(plan.config),
        "attention_projections": f"depth · tokens · 4 · {squared(plan.config)}",
        "attention_products": f"depth · 2 · tokens² · {inner(plan.config)}",
        "mlp": f"depth · tokens · {ways(plan.config) + 1} · width · hidden",
        "pooling": pooling_products(plan.config),
        "head": head_products(plan.config),
    }
    parts = {name: (text, getattr(plan.by_part, name)) for name, text in formulas.items()}
    yield from summed("multiply_adds", parts, plan.multiply_adds)
    yield Term("flops", "2 · multiply_adds", plan.flops)


def squared(config: ViTConfig) -> str:
    """The size of one of a block's four projections."""
    return "width · inner" if config.attention_width else "width²"


def pooling_products(config: ViTConfig) -> str:
    """One query over the tokens, or over the patches and through an MLP."""
    if config.pooling != "map":
        return "(2 + 2 · tokens) · width² + 2 · tokens · width"
    looks = "(2 + 2 · patches) · width² + 2 · patches · width"
    return f"{looks} + {ways(config) + 1} · width · hidden"


def head_products(config: ViTConfig) -> str:
    """Features to scores."""
    scores = f"{times(heads(config) * seen(config))}width · classes"
    parts = ["width²"] * config.pre_logits + [scores] * bool(config.classes)
    return " + ".join(parts)


def stem_products(config: ViTConfig) -> str:
    """The patch embedding's multiply-adds."""
    if config.stem == "linear":
        return "patches · channels · py · px · width"
    kernels = [f"9 · in{k} · out{k} · places{k}" for k in range(len(convolutions(config)))]
    return " + ".join([*kernels, "patches · width²"])


def training_memory(plan: Plan) -> Iterator[Term]:
    """Numbers of 4 bytes, or of 2 in bfloat16, whose weights there are in both."""
    config, recipe, needs = plan.config, plan.recipe, plan.memory
    size = BYTES[recipe.precision]
    each = 4 * memory.copies(recipe) + (0 if size == 4 else size)
    yield Term("weights", f"{each} · parameters", needs.weights)
    yield Term("gradients", "4 · parameters", needs.gradients)
    if recipe.optimizer == "muon":
        matrices = f"depth · (4 · {squared(config)} + {ways(config) + 1} · width · hidden)"
        yield Term("matrices", matrices, parameters.hidden_matrices(config))
        yield Term("optimizer", "8 · parameters - 4 · matrices", needs.optimizer)
    else:
        yield Term("optimizer", "8 · parameters", needs.optimizer)
    yield from kept_by_block(plan, size)
    yield from kept_by_image(plan)
    yield Term("activations", "batch · image", needs.activations)
    code = memory.CODE[recipe.precision]
    yield Term("overhead", f"{code:,} + {needs.overhead - code:,}", needs.overhead)
    worst = needs.at_worst
    partly = min(("gradients", "activations"), key=lambda name: getattr(needs, name))
    yield Term(f"{partly}_at_worst", f"{worst[partly]:,}", worst[partly])
    names = (name if name != partly else f"{name}_at_worst" for name in worst)
    yield Term("total", " + ".join(names), needs.total)


def kept_by_block(plan: Plan, size: int) -> Iterator[Term]:
    """What a whole block keeps of one image for the backward pass."""
    config, plain = plan.config, activations.takes_plain_path(plan.config, plan.recipe)
    ends = activations.branch_end(config)
    turned = 3 if config.positions in activations.ROTATIONS and not plain else 0
    weights = 3 if config.attention_dropout else 1
    rest = f"{weights * size} · heads · tokens²" if plain else "4 · heads · tokens"
    hidden = activations.HIDDEN[config.activation] + (config.dropout > 0)
    whole = config.tokens
    yield Term(
        "block_attention",
        kept_by_attention(config, size, 4 + turned, 1 + ends) + f" + {rest}",
        activations.attention(config, whole, size, plain=plain),
    )
    yield Term(
        "block_mlp",
        f"{size} · tokens · ({times(1 + ends)}width + {hidden} · hidden)",
        size * activations.mlp(config, whole),
    )
    yield Term("block_norms", f"{2 * size} · tokens · (width + 2)", block_norms(config, size))


def kept_by_attention(config: ViTConfig, size: int, inside: int, outside: int) -> str:
    """Tensors of the heads' size and of the tokens'."""
    if not config.attention_width:
        return f"{size * (inside + outside)} · tokens · width"
    return f"{size * inside} · tokens · inner + {size * outside} · tokens · width"


def block_norms(config: ViTConfig, size: int) -> int:
    """Two norms' tokens, with mean and deviation of each."""
    return size * 2 * config.tokens * (config.width + 2)


def kept_by_image(plan: Plan) -> Iterator[Term]:
    """Every block alike but the last, which makes only what is pooled."""
    config, size = plan.config, BYTES[plan.recipe.precision]
    plain = activations.takes_plain_path(config, plan.recipe)
    kept = activations.saved(config, plan.recipe)
    block = (
        activations.attention(config, config.tokens, size, plain=plain)
        + size * activations.mlp(config, config.tokens)
        + block_norms(config, size)
    )
    rest = kept.total - (config.depth - 1) * block
    yield Term("block", "block_attention + block_mlp + block_norms", block)
    yield Term("stem_last_block_head", f"{rest:,}", rest)
    yield Term("image", "(depth - 1) · block + stem_last_block_head", kept.total)


def inference_memory(plan: Plan) -> Iterator[Term]:
    """Numbers of 4 bytes; nothing is kept."""
    needs, numbers = plan.memory, activations.live(plan.config)
    yield Term("weights", "4 · parameters", needs.weights)
    yield Term("numbers_at_once", f"{numbers:,}", numbers)
    yield Term("activations", "4 · batch · numbers_at_once", needs.activations)
    yield Term("overhead", f"{needs.overhead:,}", needs.overhead)
    yield Term("total", "weights + activations + overhead", needs.total)
