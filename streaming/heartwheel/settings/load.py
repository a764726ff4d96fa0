"""Loading: the layers laid over each other, checked as a whole, every problem reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from pydantic import ValidationError

from heartwheel.kafka.security import SUPPORTED_PROPERTIES, ClientPropertyError, check_properties
from heartwheel.settings.combinations import OWNED, RULES, duplicate_topics, wrong_overrides
from heartwheel.settings.keys import DURATIONS, FIELDS, TABLES, table_of
from heartwheel.settings.layers import Assignment, read_environment, read_file, read_overrides
from heartwheel.settings.models import Settings
from heartwheel.settings.problems import DEFAULT_ORIGIN, Origin, SettingProblem, SettingsError, did_you_mean, problem_of
from heartwheel.settings.secret import is_reference, is_secret, read_reference, shown

CONFIG_VARIABLE: Final = "HEARTWHEEL_CONFIG"
"""The environment variable that names the configuration file."""

DEFAULT_CONFIG: Final = Path("conf/heartwheel.toml")
"""The file that is read if none is named, where it exists."""


class LoadedSettings(NamedTuple):
    """A checked configuration, with the layer that each value comes from.

    Args:
        settings: the values.
        origin: the layer of every key by its dotted path, entries of free tables included.
    """

    settings: Settings
    origin: Mapping[str, Origin]

    def values(self) -> dict[str, Any]:
        """List every value by its dotted path, written as in the file."""
        document = self.settings.model_dump(mode="json", by_alias=True)
        return {path: _get(document, path) for path in self.origin}


def load_settings(
    config_path: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
) -> LoadedSettings:
    """Load the configuration: defaults, then the file, then the environment, then flags; the later layer wins.

    Args:
        config_path: the file; `None` takes `$HEARTWHEEL_CONFIG` of `env`, else `conf/heartwheel.toml` if it is there.
        env: such as `os.environ`; `None` is an empty environment.
        overrides: `key=value` texts, or values by their dotted path.

    Raises:
        SettingsError: with everything that is wrong.
    """
    env = env or {}
    problems: list[SettingProblem] = []
    assignments = [
        *_read_config(config_path, env, problems),
        *read_environment(env, problems),
        *read_overrides(overrides, problems),
    ]
    winners = {assignment.path: _with_secret(assignment, problems) for assignment in assignments}
    settings = _validate(winners, problems)
    if problems:
        raise SettingsError(problems)
    return LoadedSettings(settings, _origins(winners))


def _read_config(path: Path | None, env: Mapping[str, str], problems: list[SettingProblem]) -> list[Assignment]:
    if path is None and env.get(CONFIG_VARIABLE):
        path = Path(env[CONFIG_VARIABLE])
    if path is None:
        if not DEFAULT_CONFIG.is_file():
            return []
        path = DEFAULT_CONFIG
    return read_file(path, problems)


def _with_secret(assignment: Assignment, problems: list[SettingProblem]) -> Assignment:
    """Put in the secret where a value names the file that it lies in."""
    path, value, origin = assignment
    if not (is_secret(path) and is_reference(value)):
        return assignment
    try:
        return assignment._replace(value=read_reference(value))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        problems.append(
            SettingProblem(path, f"cannot be read: {why}", f'"{value}"', origin, "name a file that this user may read")
        )
        return assignment


def _origins(winners: Mapping[str, Assignment]) -> dict[str, Origin]:
    origins = {path: DEFAULT_ORIGIN for path in FIELDS if path not in TABLES}
    return origins | {path: assignment.origin for path, assignment in winners.items() if path not in TABLES}


def _validate(winners: Mapping[str, Assignment], problems: list[SettingProblem]) -> Settings:
    """Check each value by itself, then the combinations of those that are right."""
    settings, wrong = _try(winners.values())
    for error in wrong:
        path = ".".join(str(part) for part in error["loc"])
        origin = winners[path].origin if path in winners else DEFAULT_ORIGIN
        problems.append(problem_of(error, origin, is_duration=path in DURATIONS))
    bad = {problem.path for problem in problems}
    if settings is None:
        settings, again = _try(assignment for path, assignment in winners.items() if path not in bad)
        if settings is None:
            raise AssertionError(f"problems without a key: {again}")
    problems += _combinations(settings, winners, bad)
    problems += _client_properties(settings.kafka.client, winners)
    return settings


def _try(assignments: Iterable[Assignment]) -> tuple[Settings | None, list[dict[str, Any]]]:
    try:
        return Settings.model_validate(_document(assignments)), []
    except ValidationError as error:
        return None, cast("list[dict[str, Any]]", error.errors(include_url=False))


def _document(assignments: Iterable[Assignment]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for path, value, _ in assignments:
        *parents, key = _parts(path)
        table = document
        for parent in parents:
            table = table.setdefault(parent, {})
        table[key] = value
    return document


def _parts(path: str) -> list[str]:
    table = table_of(path)
    return [*table.split("."), path.removeprefix(table + ".")] if table else path.split(".")


def _get(document: Mapping[str, Any], path: str) -> Any:
    value: Any = document
    for part in _parts(path):
        value = value[part]
    return value


def _combinations(settings: Settings, winners: Mapping[str, Assignment], bad: set[str]) -> list[SettingProblem]:
    document = settings.model_dump(mode="json", by_alias=True)

    def problem(path: str, message: str, hint: str) -> SettingProblem:
        origin = winners[path].origin if path in winners else DEFAULT_ORIGIN
        return SettingProblem(path, message, shown(path, _get(document, path)), origin, hint)

    return [
        *(
            problem(rule.path, rule.message(settings), rule.hint)
            for rule in RULES
            if not bad.intersection((rule.path, *rule.others)) and rule.broken(settings)
        ),
        *(problem(*wrong) for wrong in wrong_overrides(settings) if wrong[0] not in bad),
        *(problem(path, "belongs to heartwheel", hint) for path, hint in OWNED.items() if path in winners),
        *(
            problem(path, f"is also the name of {other}", "give each topic a name of its own")
            for path, other in duplicate_topics(settings)
            if not bad.intersection((path, other))
        ),
    ]


def _client_properties(client: Mapping[str, str], winners: Mapping[str, Assignment]) -> list[SettingProblem]:
    """Check that both Kafka clients, Spark's and ours, can follow every property."""
    problems = []
    for name in client.keys() - SUPPORTED_PROPERTIES:
        path = f"kafka.client.{name}"
        if path not in OWNED:
            hint = did_you_mean(name, SUPPORTED_PROPERTIES)
            value, origin = shown(path, client[name]), winners[path].origin
            problems.append(SettingProblem(path, "is not a client property that is supported", value, origin, hint))
    try:
        check_properties({name: client[name] for name in client.keys() & SUPPORTED_PROPERTIES})
    except ClientPropertyError as error:
        problems += [SettingProblem("kafka.client", fault, hint=error.hint or "") for fault in str(error).splitlines()]
    return sorted(problems)
