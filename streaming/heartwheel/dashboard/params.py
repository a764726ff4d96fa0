"""Query parameters: what each may be, checked in one place, and the same words for the API's description."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from heartwheel.http_server.problems import RequestError

TEXT_MAX: Final = 1_024
"""Longest text of a filter, characters; ids are no longer."""

SHOWN_MAX: Final = 60
"""How much of a wrong value an answer repeats, characters."""


class Param(NamedTuple):
    """One query parameter.

    Args:
        name: its name.
        words: what it does, for people.
        schema: what it may be, as JSON Schema.
        parse: makes a value of the text; raises `ValueError` with what it must be.
        default: its value if it is not given.
    """

    name: str
    words: str
    schema: Mapping[str, Any]
    parse: Callable[[str], Any]
    default: Any


def text(name: str, words: str) -> Param:
    """Describe a parameter that is any short text."""

    def parse(value: str) -> str:
        if len(value) > TEXT_MAX:
            raise ValueError(f"must be at most {TEXT_MAX} characters, and has {len(value)}")
        return value

    return Param(name, words, {"type": "string", "maxLength": TEXT_MAX, "default": ""}, parse, "")


def integer(name: str, words: str, *, least: int = 0, most: int = 2**53, default: int | None = None) -> Param:
    """Describe a parameter that is a whole number."""

    def parse(value: str) -> int:
        # int() would also take "1_000", " 7 " and digits of other scripts.
        if not (value.isascii() and value.isdigit()) or len(value) > 16 or not least <= int(value) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(value)

    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Param(name, words, schema if default is None else schema | {"default": default}, parse, default)


def flag(name: str, words: str) -> Param:
    """Describe a parameter that is true or false."""

    def parse(value: str) -> bool:
        if value not in {"true", "false"}:
            raise ValueError("must be true or false")
        return value == "true"

    return Param(name, words, {"type": "boolean", "default": False}, parse, default=False)


def one_of(name: str, words: str, values: Sequence[str]) -> Param:
    """Describe a parameter that is one of some words; empty means any."""

    def parse(value: str) -> str:
        if value and value not in values:
            raise ValueError(f"must be one of {', '.join(values)}")
        return value

    return Param(name, words, {"type": "string", "enum": ["", *values], "default": ""}, parse, "")


def some_of(name: str, words: str, values: Sequence[str]) -> Param:
    """Describe a parameter that is some of some words, with commas between them; empty means any."""

    def parse(value: str) -> frozenset[str]:
        found = frozenset(part for part in value.split(",") if part)
        if found - set(values):
            raise ValueError(f"must be some of {', '.join(values)}, with commas between them")
        return found

    return Param(name, words, {"type": "string", "maxLength": TEXT_MAX, "default": ""}, parse, frozenset())


def read(given: Sequence[tuple[str, str]], params: Sequence[Param]) -> dict[str, Any]:
    """Read the query of a request.

    Args:
        given: names and texts, as they stand in the address.
        params: what it may have.

    Returns:
        A value for each of `params`.

    Raises:
        RequestError: 400, if a name is unknown, given twice, or its text is wrong.
    """
    known = {param.name: param for param in params}
    values: dict[str, Any] = {}
    for name, value in given:
        if name not in known:
            raise _unknown(name, known)
        if name in values:
            raise RequestError(400, f"parameter {name} is given more than once", "give it once")
        try:
            values[name] = known[name].parse(value)
        except ValueError as error:
            raise RequestError(400, f"parameter {name} {error}", f"it is {_cut(value)!r}") from None
    return {param.name: values.get(param.name, param.default) for param in params}


def _unknown(name: str, known: Mapping[str, Param]) -> RequestError:
    near = get_close_matches(name[:TEXT_MAX], known, 1)
    names = ", ".join(known) or "none at all"
    hint = f"did you mean {near[0]}?" if near else f"known here: {names}"
    return RequestError(400, f"unknown parameter {_cut(name)!r}", hint)


def _cut(value: str) -> str:
    return value if len(value) <= SHOWN_MAX else f"{value[:SHOWN_MAX]}..."
