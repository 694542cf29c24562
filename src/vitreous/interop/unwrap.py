"""From what a training script saved to the bare names of one model."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from vitreous.errors import CheckpointError
from vitreous.interop.report import Row

__all__ = ["unwrap"]

NESTS = ("teacher", "model", "state_dict", "model_state_dict", "module", "net", "student")
"""Under which names a state dict is found, best first: of student and teacher the teacher."""
PREFIXES = ("module.", "_orig_mod.", "model.", "net.")
"""Put before every name by wrappers, and taken off where they stand before all."""
HEADS = ("head.", "dino_head.", "ibot_head.")


def unwrap(content: Mapping[str, Any]) -> tuple[dict[str, Tensor], list[Row], list[str]]:
    """Tensors by their bare names, a row for each that was left behind, and what was done.

    Raises CheckpointError where there is no state dict.
    """
    rows: list[Row] = []
    notes: list[str] = []
    tensors = inner(content, rows, notes, "")
    tensors = one_of_two(tensors, rows, notes)
    tensors = without_prefixes(tensors, notes)
    return backbone(tensors, rows, notes), rows, notes


def inner(
    content: Mapping[str, Any], rows: list[Row], notes: list[str], path: str
) -> dict[str, Tensor]:
    """The state dict, however deep it lies; every other tensor gets its row."""
    names = [name for name in NESTS if isinstance(content.get(name), Mapping)]
    own = {str(name): value for name, value in content.items() if isinstance(value, Tensor)}
    if own and not names:
        others = {name: value for name, value in content.items() if name not in own}
        rows += dropped(others, path, "no weight of the model")
        return own
    if not names:
        found = ", ".join(map(str, list(content)[:6])) or "nothing"
        raise CheckpointError(f"there is no state dict in it; it holds {found}")
    chosen = names[0]
    notes.append(f"the state dict stands under {path + chosen!r}")
    for name, value in content.items():
        if name != chosen:
            rows += dropped({name: value}, path, why_left(str(name), chosen))
    return inner(content[chosen], rows, notes, f"{path}{chosen}.")


def why_left(name: str, chosen: str) -> str:
    """Why another part of a training checkpoint is not taken."""
    if name == "student" and chosen == "teacher":
        return "the student; the teacher is taken"
    if "optim" in name:
        return "state of the optimizer"
    return f"{chosen} is taken"


def dropped(value: Any, path: str, reason: str) -> Iterator[Row]:
    """A row for each tensor in here, however deep it lies."""
    if isinstance(value, Tensor):
        yield Row(path.rstrip("."), tuple(value.shape), "dropped", note=reason)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from dropped(part, f"{path}{name}.", reason)
    elif isinstance(value, (list, tuple)):
        for index, part in enumerate(value):
            yield from dropped(part, f"{path}{index}.", reason)


def one_of_two(tensors: dict[str, Tensor], rows: list[Row], notes: list[str]) -> dict[str, Tensor]:
    """The teacher, where student and teacher stand side by side."""
    teacher = {name: tensor for name, tensor in tensors.items() if name.startswith("teacher.")}
    if not teacher:
        return tensors
    for name in tensors.keys() - teacher.keys():
        reason = "the student; the teacher is taken"
        rows += dropped(
            tensors[name], name, reason if name.startswith("student.") else "the teacher is taken"
        )
    notes.append("the teacher is taken")
    return {name.removeprefix("teacher."): tensor for name, tensor in teacher.items()}


def without_prefixes(tensors: dict[str, Tensor], notes: list[str]) -> dict[str, Tensor]:
    """Names without what wrappers put before all of them, as often as they did."""
    for prefix in PREFIXES:
        if tensors and all(name.startswith(prefix) for name in tensors):
            notes.append(f"{prefix!r} was taken off every name")
            bare = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
            return without_prefixes(bare, notes)
    return tensors


def backbone(tensors: dict[str, Tensor], rows: list[Row], notes: list[str]) -> dict[str, Tensor]:
    """The backbone of self-supervised training; its head has no use outside of it."""
    ours = {name: tensor for name, tensor in tensors.items() if name.startswith("backbone.")}
    others = tensors.keys() - ours.keys()
    if not ours or not all(name.startswith(HEADS) for name in others):
        return tensors
    for name in sorted(others):
        rows += dropped(tensors[name], name, "head of the self-supervised training")
    notes.append("the backbone is taken")
    return {name.removeprefix("backbone."): tensor for name, tensor in ours.items()}
