"""Frozen dataclasses of settings: checked on construction, read from text and from JSON.

A settings class is an ordinary dataclass whose annotations are plain types, literals, unions and
pairs; everything here works from those annotations, so a new setting needs one line.
"""

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from vitreous.errors import ConfigError

__all__ = ["check", "from_dict", "named", "nearest", "parse", "setting_types", "to_dict"]

Settings = TypeVar("Settings")


def setting_types(kind: type) -> dict[str, Any]:
    """Name and annotation of every setting of a dataclass, in order."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def check(settings: Any) -> None:
    """Raise ConfigError where a value is not of its annotated type.

    A whole number given for a float becomes one, so that equal settings are written alike.
    """
    for name, wanted in setting_types(type(settings)).items():
        value = getattr(settings, name)
        if not fits(value, wanted):
            raise ConfigError(f"{name}={value!r} is not {describe(wanted)}")
        if type(value) is int and float in (wanted, *get_args(wanted)):
            object.__setattr__(settings, name, float(value))  # frozen, and still being made


def fits(value: Any, wanted: Any) -> bool:
    """Whether a value is of an annotated type; True is no integer, 3 is a float."""
    origin = get_origin(wanted)
    if origin is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(wanted))
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in get_args(wanted))
    if origin is tuple:
        parts = get_args(wanted)
        if parts[-1] is ...:
            return isinstance(value, tuple) and all(fits(v, parts[0]) for v in value)
        return (
            isinstance(value, tuple)
            and len(value) == len(parts)
            and all(fits(v, part) for v, part in zip(value, parts, strict=True))
        )
    if wanted is float:
        return type(value) in (int, float) and value == value and abs(value) != float("inf")
    return type(value) is wanted


def describe(wanted: Any) -> str:
    """An annotation in words, for error messages and help."""
    origin = get_origin(wanted)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(wanted)))
    if origin in (Union, UnionType):
        return " or ".join(map(describe, get_args(wanted)))
    if origin is tuple:
        many = "a list" if get_args(wanted)[-1] is ... else "a pair"
        return f"{many} of {describe(get_args(wanted)[0]).removeprefix('a ')}s"
    names = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        str: "text",
        NoneType: "none",
    }
    return names.get(wanted, str(wanted))


def parse(text: str, wanted: Any, name: str) -> Any:
    """Read one setting from the text after `=` on a command line.

    >>> parse("[32, 48]", int | tuple[int, int], "image_size")
    (32, 48)
    >>> parse("none", float | None, "layer_scale") is None
    True
    """
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    if text == "none" and NoneType in get_args(wanted):
        value = None
    value = tuple(value) if isinstance(value, list) else value
    if not fits(value, wanted):
        raise ConfigError(f"{name}={text} is not {describe(wanted)}")
    return value


def to_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain JSON values."""
    plain = asdict(settings)
    return {name: list(v) if isinstance(v, tuple) else v for name, v in plain.items()}


def from_dict(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """Settings from plain JSON values; an unknown name is answered with the nearest known one."""
    known = setting_types(kind)
    for name in values:
        if name not in known:
            raise ConfigError(unknown("setting", name, known))
    return kind(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def named(kind: str, name: str, table: Mapping[str, Settings]) -> Settings:
    """Look a name up in a table; an unknown one is answered with the nearest known one."""
    if name not in table:
        raise ConfigError(unknown(kind, name, table))
    return table[name]


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that nothing answers to."""
    close = nearest(name, known)
    hint = f"did you mean {close!r}?" if close else "known: " + ", ".join(known)
    return f"no {kind} is called {name!r}; {hint}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, if any is alike at all."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return close[0] if close else None
