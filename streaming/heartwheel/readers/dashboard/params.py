"""Query parameters, parsed into the struct of an endpoint; the API's description is made from the same struct."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from heartwheel.readers.dashboard.queries import TEXT_MAX, Query
from heartwheel.readers.http_server.problems import RequestError

Q = TypeVar("Q", bound=Query)

SHOWN_MAX: Final = 60
"""How much of a wrong value an answer repeats, characters."""

# int() would also accept "1_000", " 7 " and digits of other scripts; msgspec would accept "1e3".
_WHOLE: Final = re.compile(r"[0-9]{1,16}")
_FLAGS: Final = {"true": True, "false": False}


class Param(NamedTuple):
    """One query parameter.

    Args:
        name: its name.
        words: its effect, for people.
        type: of its value.
        default: its value if it is not given.
    """

    name: str
    words: str
    type: inspect.Type
    default: Any

    def parse(self, text: str) -> Any:
        """Return the value to convert to the type: text stays text where it is no number, flag or list."""
        if isinstance(self.type, inspect.IntType):
            return int(text) if _WHOLE.fullmatch(text) else text
        if isinstance(self.type, inspect.BoolType):
            return _FLAGS.get(text, text)
        if isinstance(self.type, inspect.FrozenSetType):
            return [part for part in text.split(",") if part]
        # An empty state means any, as sent by a form.
        return self.default if isinstance(self.type, inspect.EnumType) and not text else text

    def bounds(self) -> str:
        """Return a sentence about the accepted values."""
        kind = self.type
        if isinstance(kind, inspect.IntType):
            steps = f" that is a multiple of {kind.multiple_of}" if kind.multiple_of else ""
            return f"must be a whole number from {kind.ge} to {kind.le}{steps}"
        if isinstance(kind, inspect.FrozenSetType):
            return f"must be some of {', '.join(_names(kind.item_type))}, with commas between them"
        if isinstance(kind, inspect.EnumType):
            return f"must be one of {', '.join(_names(kind))}"
        return (
            "must be true or false" if isinstance(kind, inspect.BoolType) else f"must be at most {TEXT_MAX} characters"
        )

    def schema(self) -> dict[str, Any]:
        """Return the accepted values as JSON Schema for the text in the address."""
        kind = self.type
        found: dict[str, Any] = {"type": "string", "maxLength": TEXT_MAX}
        if isinstance(kind, inspect.IntType):
            found = {"type": "integer", "minimum": kind.ge, "maximum": kind.le}
            found |= {"multipleOf": kind.multiple_of} if kind.multiple_of else {}
        elif isinstance(kind, inspect.BoolType):
            found = {"type": "boolean"}
        elif isinstance(kind, inspect.EnumType):
            found = {"type": "string", "enum": ["", *_names(kind)]}
        default = self.default if isinstance(self.default, int | str) else None if "minimum" in found else ""
        return found if default is None else found | {"default": default}


@cache
def params_of(query: type[Query]) -> dict[str, Param]:
    """Return the parameters of a query, by name."""
    described = inspect.type_info(query)
    assert isinstance(described, inspect.StructType)  # noqa: S101 - queries are structs
    return {field.name: _param(field) for field in described.fields if not field.required}


def read(query: type[Q], given: Sequence[tuple[str, str]], in_path: Mapping[str, str]) -> Q:
    """Parse the query of a request.

    Args:
        given: names and texts, as in the address.
        in_path: the values of the path's placeholders.

    Raises:
        RequestError: 400, a name is unknown or given twice, or its text is wrong.
    """
    known, texts = params_of(query), dict[str, str]()
    for name, text in given:
        if name not in known:
            raise _unknown(name, known)
        if name in texts:
            raise RequestError(400, f"parameter {name} is given more than once", "give it once")
        texts[name] = text
    values = {name: known[name].parse(text) for name, text in texts.items()}
    try:
        return msgspec.convert({**in_path, **values}, query)
    except msgspec.ValidationError as error:
        name = next(name for name in texts if re.search(rf"\$\.{name}\b", str(error)))
        raise RequestError(400, f"parameter {name} {known[name].bounds()}", f"it is {_cut(texts[name])!r}") from None


def _param(field: inspect.Field) -> Param:
    kind, words = field.type, ""
    while isinstance(kind, inspect.Metadata):
        words = (kind.extra_json_schema or {}).get("description", words)
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    return Param(field.name, words, kind, field.default)


def _names(kind: inspect.Type) -> list[str]:
    assert isinstance(kind, inspect.EnumType)  # noqa: S101 - sets exist only of enums
    return [each.value for each in kind.cls]


def _unknown(name: str, known: Mapping[str, Param]) -> RequestError:
    near = get_close_matches(name[:TEXT_MAX], known, 1)
    names = ", ".join(known) or "none at all"
    hint = f"did you mean {near[0]}?" if near else f"known here: {names}"
    return RequestError(400, f"unknown parameter {_cut(name)!r}", hint)


def _cut(value: str) -> str:
    return value if len(value) <= SHOWN_MAX else f"{value[:SHOWN_MAX]}..."
