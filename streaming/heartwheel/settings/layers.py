"""Layers: the file, the environment and the flags, each read into `Assignment`s of one dotted key.

A typo is refused in the layer it stands in, with the key that was probably meant.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heartwheel.settings.keys import (
    ENV_PREFIX,
    ENV_SEPARATOR,
    FIELDS,
    SECTIONS,
    TABLES,
    TEXTS,
    env_name,
    is_section,
    table_of,
    unknown,
)
from heartwheel.settings.problems import Layer, Origin, SettingProblem
from heartwheel.settings.secret import holds_secret, is_reference, is_secret, shown


class Assignment(NamedTuple):
    """A value that a layer sets.

    Args:
        path: the dotted key; of an entry of a free table, the table's path and the entry's own dotted name.
        value: as the layer gave it.
        origin: the layer.
    """

    path: str
    value: Any
    origin: Origin


def read_file(file: Path, problems: list[SettingProblem]) -> list[Assignment]:
    """Read the assignments of a TOML file.

    Args:
        file: which one; that it cannot be read is a problem too.
        problems: gets what is wrong.
    """
    origin = Origin(Layer.FILE, str(file))
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        problems.append(
            SettingProblem("", f"cannot read the file: {error.strerror}", "", origin, "check the path and rights")
        )
        return []
    except UnicodeDecodeError as error:
        problem = f"is not text in UTF-8: byte {error.object[error.start]:#04x} at {error.start}"
        problems.append(SettingProblem("", problem, "", origin, "save it as UTF-8"))
        return []
    except tomllib.TOMLDecodeError as error:
        problems.append(
            SettingProblem("", f"is not valid TOML: {error}", "", origin, 'text needs quotes, as in key = "45s"')
        )
        return []
    return list(_flatten(document, "", origin, problems))


def _flatten(
    table: Mapping[str, Any], prefix: str, origin: Origin, problems: list[SettingProblem]
) -> Iterator[Assignment]:
    for key, value in table.items():
        path = prefix + key
        is_table = isinstance(value, dict)
        if path in TABLES and is_table:
            yield from (Assignment(f"{path}.{name}", entry, origin) for name, entry in _dotted(value))
        elif path in TABLES:
            problems.append(
                SettingProblem(path, "is a table, not a value", shown(path, value), origin, f"write [{path}]")
            )
        elif path in FIELDS:
            yield Assignment(path, value, origin)
        elif is_table and is_section(path):
            yield from _flatten(value, path + ".", origin, problems)
        elif not is_table and path in SECTIONS:
            problems.append(
                SettingProblem(path, "is a section, not a value", shown(path, value), origin, f"write [{path}]")
            )
        else:
            problems.append(unknown(path, value, origin))


def _dotted(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    # `security.protocol = "SSL"` without quotes around the key is a nested table to TOML; people mean the dotted name.
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def read_environment(env: Mapping[str, str], problems: list[SettingProblem]) -> list[Assignment]:
    """Read the assignments of the environment; variables without a double underscore are not about settings.

    Args:
        env: such as `os.environ`.
        problems: gets what is wrong.
    """
    found = []
    for name in sorted(env):
        if not name.startswith(ENV_PREFIX):
            continue
        origin = Origin(Layer.ENVIRONMENT, name)
        path = name.removeprefix(ENV_PREFIX).lower().replace(ENV_SEPARATOR, ".")
        table = table_of(path)
        if ENV_SEPARATOR not in name.removeprefix(ENV_PREFIX):
            problems += _single_underscores(name, env[name])
        elif path in TABLES:
            found += _table_entries(path, env[name], origin, problems)
        elif table:
            found.append(Assignment(f"{table}.{path.removeprefix(table + '.').replace('_', '.')}", env[name], origin))
        elif path in FIELDS:
            found.append(Assignment(path, _literal(path, env[name]), origin))
        else:
            problems.append(unknown(path, env[name], origin))
    return found


def _single_underscores(name: str, value: str) -> list[SettingProblem]:
    # Only an exact hit: a container platform may well set HEARTWHEEL_PORT for reasons of its own.
    meant = next((p for p in FIELDS if env_name(p).replace(ENV_SEPARATOR, "_") == name), None)
    if meant is None:
        return []
    origin = Origin(Layer.ENVIRONMENT, name)
    hint = f"did you mean `{env_name(meant)}`? Two underscores separate the parts"
    return [SettingProblem(meant, "is not set by this variable", shown(meant, value), origin, hint)]


def _table_entries(path: str, text: str, origin: Origin, problems: list[SettingProblem]) -> list[Assignment]:
    try:
        entries = json.loads(text)
    except json.JSONDecodeError:
        entries = None
    if not isinstance(entries, dict):
        hint = 'such as {"security.protocol": "SASL_SSL"}'
        problems.append(SettingProblem(path, "must be a JSON object of names and texts", "", origin, hint))
        return []
    return [Assignment(f"{path}.{name}", value, origin) for name, value in entries.items()]


def read_overrides(overrides: Sequence[str] | Mapping[str, Any], problems: list[SettingProblem]) -> list[Assignment]:
    """Read the assignments of flags.

    Args:
        overrides: texts `key=value` as `--set` takes them, or a mapping of path to value as named flags give.
        problems: gets what is wrong.
    """
    pairs = overrides.items() if isinstance(overrides, Mapping) else _split(overrides, problems)
    found = []
    for path, value in pairs:
        origin = Origin(Layer.FLAG, f"--set {path}")
        if path in TABLES:
            hint = f"write --set {path}.NAME=VALUE"
            problems.append(SettingProblem(path, "is a table, not a value", shown(path, value), origin, hint))
        elif path in FIELDS:
            found.append(Assignment(path, _literal(path, value) if isinstance(value, str) else value, origin))
        elif table_of(path):
            found.append(Assignment(path, value, origin))
        else:
            problems.append(unknown(path, value, origin))
    return found


def _split(texts: Iterable[str], problems: list[SettingProblem]) -> Iterator[tuple[str, str]]:
    for text in texts:
        key, equals, value = text.partition("=")
        path = key.strip()
        # An unknown key is refused as one, whatever its name sounds like.
        is_known = path in FIELDS or table_of(path) is not None
        if equals and is_known and holds_secret(path, value) and not is_reference(value.strip()):
            problems.append(_readable_by_all(path, value))
        elif equals:
            yield path, value.strip()
        else:
            origin = Origin(Layer.FLAG, "--set")
            problems.append(SettingProblem(text, "needs a value", "", origin, f"write --set {text}=VALUE"))


def _readable_by_all(path: str, value: str) -> SettingProblem:
    """Refuse a secret in a flag: every user of a machine can read the command lines of all its processes."""
    hint = _in_the_environment(path)
    if is_secret(path):
        hint += f", or write --set {path}=file:PATH"
    message = (
        f"{'is' if is_secret(path) else 'has'} a secret, and a command line can be read by every user of this machine"
    )
    return SettingProblem(path, message, shown(path, value), Origin(Layer.FLAG, f"--set {path}"), hint)


def _in_the_environment(path: str) -> str:
    table = table_of(path)
    if table is None:
        return f"set {env_name(path)} in the environment"
    name = path.removeprefix(f"{table}.")
    if name == name.lower() and "_" not in name:
        return f"set {env_name(table)}{ENV_SEPARATOR}{name.replace('.', '_').upper()} in the environment"
    # Upper and lower case would be lost in a variable's name.
    return f"""set {env_name(table)} in the environment, to {{"{name}": "..."}}"""


def _literal(path: str, text: str) -> Any:
    """Read a text as the number or truth value that TOML would see, unless the key wants text."""
    if path in TEXTS:
        return text
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
