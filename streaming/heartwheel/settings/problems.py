"""The problems of a configuration, each with its path, its layer and a hint."""

from __future__ import annotations

import difflib
import enum
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from heartwheel.base.errors import HeartwheelError
from heartwheel.base.plain import plain
from heartwheel.settings.secret import shown
from heartwheel.settings.units import format_duration, format_size, unit_hint


class Layer(enum.StrEnum):
    """Name where a value comes from; each layer wins over those before it."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


class Origin(NamedTuple):
    """Where a value comes from.

    Args:
        layer: which layer set it.
        name: the file's path, the variable's name or the flag, empty for a default.
    """

    layer: Layer
    name: str = ""

    def __str__(self) -> str:
        return f"{self.layer} {self.name}".rstrip()


DEFAULT_ORIGIN: Final = Origin(Layer.DEFAULT)


class SettingProblem(NamedTuple):
    """One problem of a configuration.

    Args:
        path: the dotted key, such as `engine.shards`; empty where no key is to blame.
        message: what is wrong with it.
        value: what it was set to, masked if it is a secret; empty where there is none.
        origin: which layer set it.
        hint: what to do about it.
    """

    path: str
    message: str
    value: str = ""
    origin: Origin = DEFAULT_ORIGIN
    hint: str = ""

    def __str__(self) -> str:
        value = f" = {plain(self.value)}" if self.value else ""
        source = "" if self.origin == DEFAULT_ORIGIN else f" (from {plain(str(self.origin))})"
        return f"{plain(self.path)}{value}: {self.message}{source}" if self.path else f"{self.message}{source}"


class SettingsError(HeartwheelError):
    """A configuration is wrong; the message lists all its problems.

    Args:
        problems: at least one, in the order of the layers.
    """

    exit_code = 2

    def __init__(self, problems: Iterable[SettingProblem]) -> None:
        self.problems = tuple(problems)
        lines = [f"{problem}\n    hint: {problem.hint}" if problem.hint else str(problem) for problem in self.problems]
        count = "1 problem" if len(lines) == 1 else f"{len(lines)} problems"
        super().__init__(f"the configuration has {count}\n  " + "\n  ".join(lines))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Suggest the known word that is most like this one, or list them if they are few."""
    words = sorted(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"known here: {', '.join(words)}"


def problem_of(error: dict[str, Any], origin: Origin, *, is_duration: bool = False) -> SettingProblem:
    """Put one of pydantic's errors into words for people.

    Args:
        error: what pydantic says of one key.
        origin: the layer of its value.
        is_duration: whether the key is a duration, in which a bare number counts milliseconds.
    """
    path, value = ".".join(str(part) for part in error["loc"]), error["input"]
    bare = str(value).strip() if isinstance(value, int | str) else ""
    hint = unit_hint(bare) if is_duration and bare.isdecimal() else ""
    return SettingProblem(path, _words(error, path, is_duration=is_duration), shown(path, value), origin, hint)


_WANTED: Final = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text in quotes",
    "bool_type": "must be true or false",
    "mapping_type": "must be a table of names and values",
    "model_type": "must be a table of keys",
}
_PATTERNS: Final = {
    "dashboard.allow_hosts": "must be names with commas between them, without spaces and slashes",
    "dashboard.base_path": "must be empty, or begin with a slash and not end with one, such as /heartwheel",
    "dashboard.user_header": "must be the name of a header, such as X-Forwarded-User",
    "kafka.bootstrap_servers": "must be `host:port`, several with commas and no spaces",
    "notify.url": "must be an address that begins with https:// or http://",
    "kafka.topics": "must be a topic name of letters, digits, `.`, `_` and `-`",
    "watch.kubernetes_api": "must be an address that begins with https:// or http://",
    "watch.kubernetes": "must be NAMESPACE/LABEL-SELECTOR, such as kafka/app=broker",
    "spark.master": 'must be a Spark master, such as "local[*]", "spark://host:7077", "yarn"',
}


def _words(error: dict[str, Any], path: str, *, is_duration: bool) -> str:
    kind, bounds = error["type"], error.get("ctx", {})
    if kind == "greater_than_equal":
        return f"must be at least {_bound(bounds['ge'], error['input'], is_duration=is_duration)}"
    if kind == "less_than_equal":
        return f"must be at most {_bound(bounds['le'], error['input'], is_duration=is_duration)}"
    if kind == "literal_error":
        return f"must be {bounds['expected']}"
    if kind == "string_pattern_mismatch":
        return next(words for prefix, words in _PATTERNS.items() if path.startswith(prefix))
    if kind == "value_error":
        return str(bounds["error"])
    return _WANTED.get(kind, str(error["msg"]))


def _bound(bound: float, value: object, *, is_duration: bool) -> str:
    """Write a bound in the unit in which the value was written; that of a duration always with a unit."""
    if is_duration:
        return format_duration(int(bound))
    unit = value.strip().lstrip("0123456789. ") if isinstance(value, str) else ""
    if not unit:
        return f"{bound:g}" if isinstance(bound, float) else str(bound)
    return format_size(int(bound)) if unit.lower().endswith("b") else format_duration(int(bound))
