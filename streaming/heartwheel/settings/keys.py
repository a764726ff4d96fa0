"""The keys: every setting by its dotted path, and what to tell someone who asks for one that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Final, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from heartwheel.settings.models import Settings
from heartwheel.settings.problems import Origin, SettingProblem, did_you_mean
from heartwheel.settings.secret import MASK, shown
from heartwheel.settings.section import Section, key_of
from heartwheel.settings.units import parse_duration_ms

ENV_PREFIX: Final = "HEARTWHEEL_"
"""How the variables begin that set a key: `HEARTWHEEL_ENGINE__SHARDS` is `engine.shards`."""

ENV_SEPARATOR: Final = "__"
"""What stands between the parts of a path in a variable's name."""


def _walk(section: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in section.model_fields.items():
        path = prefix + key_of(name)
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            yield from _walk(kind, path + ".")
        else:
            yield path, field


def _is_duration(field: FieldInfo) -> bool:
    return any(isinstance(each, BeforeValidator) and each.func is parse_duration_ms for each in field.metadata)


FIELDS: Final[Mapping[str, FieldInfo]] = dict(_walk(Settings))
"""Every key by its dotted path."""

TABLES: Final = tuple(path for path, field in FIELDS.items() if get_origin(field.annotation) is Mapping)
"""Paths of the free tables, whose entries have dotted names of their own."""

TEXTS: Final = {path for path, field in FIELDS.items() if field.annotation is str}
"""Keys whose values are text, never a number that happens to look like one."""

DURATIONS: Final = {path for path, field in FIELDS.items() if _is_duration(field)}
"""Keys whose values are durations, in which a bare number counts milliseconds."""

SECTIONS: Final = {path.rpartition(".")[0] for path in FIELDS}
"""Paths of the sections that hold keys."""

PATH_BY_KEY: Final = {path.rpartition(".")[2]: path for path in FIELDS}
"""A key's full path by its last part, for people who forget the section."""


GONE: Final = {
    "engine.skew_allowance": "leave it out: time comes from the broker's append times alone, and no clock is compared",
}
"""Keys of the release before, each with what to do now."""

_NO_KEY: Final = re.compile(r"\d+(\.\d+)? ?[a-zA-Z]{0,3}|(?i:true|false)")
"""A number, with a unit or without, or a truth value."""


def table_of(path: str) -> str | None:
    """Name the free table that an entry's path lies in, or none."""
    return next((table for table in TABLES if path.startswith(table + ".")), None)


def is_section(path: str) -> bool:
    """Return whether a path names a section, or a section that contains sections."""
    return any(section == path or section.startswith(path + ".") for section in SECTIONS)


def env_name(path: str) -> str:
    """Name the environment variable that sets a key."""
    return ENV_PREFIX + path.replace(".", ENV_SEPARATOR).upper()


def unknown(path: str, value: object, origin: Origin) -> SettingProblem:
    """Refuse a key that does not exist, and say which one was probably meant."""
    text = shown(path, value)
    if text == MASK and _NO_KEY.fullmatch(str(value)):
        # The last word `key` alone, as in `ssl.keystore.key`, makes no secret of a number.
        text = shown(path.removesuffix(".key"), value)
    if path in GONE:
        return SettingProblem(path, "is no setting any more", text, origin, GONE[path])
    if path in PATH_BY_KEY:
        return SettingProblem(path, "is not a setting", text, origin, f"did you mean `{PATH_BY_KEY[path]}`?")
    section = path.rpartition(".")[0]
    while section and not is_section(section):
        section = section.rpartition(".")[0]
    if not section and (close := difflib.get_close_matches(path, FIELDS, n=1, cutoff=0.8)):
        return SettingProblem(path, "is not a setting", text, origin, f"did you mean `{close[0]}`?")
    prefix = section + "." if section else ""
    siblings = {known.removeprefix(prefix).partition(".")[0] for known in FIELDS if known.startswith(prefix)}
    hint = did_you_mean(path.removeprefix(prefix).partition(".")[0], siblings)
    return SettingProblem(path, "is not a setting", text, origin, hint)
