"""The rules for replaying a log: the configuration, then what a recording says, then the flags.

Only the coordinator's settings matter to a replay. So they are merged separately: a recorded broker may well have
limits that the feeder or the members of this configuration would violate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.rules.config import CoordinatorConfig, coordinator_config
from heartwheel.front.cli.console import load
from heartwheel.settings import FIELDS, CoordinatorSettings, Layer, Origin, SettingProblem, SettingsError
from heartwheel.settings.problems import problem_of

_SECTION: Final = "coordinator."


class _Value(NamedTuple):
    text: str
    origin: Origin


def rules_of(config: Path | None, flags: Sequence[str], recorded: Mapping[str, int], source: str) -> CoordinatorConfig:
    """Return the coordinator's settings: the configuration, overridden by a recording, overridden by the flags.

    Args:
        flags: the texts of `--set`; a duration may also have its name in a broker's configuration, with `_ms` and in
            ms.
        recorded: the coordinator's settings of a recording, by their names in `CoordinatorConfig`.
        source: where they come from, for errors.

    Raises:
        SettingsError: with everything that is wrong.
        HeartwheelError: the shortest session timeout is above the longest.
    """
    values = {_key(name): _Value(str(value), Origin(Layer.FILE, source)) for name, value in recorded.items()}
    others = []
    for flag in flags:
        path, equals, text = flag.partition("=")
        key = _key(path.strip().removeprefix(_SECTION))
        if equals and path.strip().startswith(_SECTION) and _SECTION + key in FIELDS:
            values[key] = _Value(text.strip(), Origin(Layer.FLAG, f"--set {path.strip()}"))
        else:
            others.append(flag)
    configured = load(config, others).settings.coordinator.model_dump(mode="json", by_alias=True)
    return _checked(configured, values)


def _key(name: str) -> str:
    """Return the name of a setting in our configuration, where the value of a duration contains its unit."""
    short = name.removesuffix("_ms")
    return short if _SECTION + short in FIELDS else name


def _checked(configured: Mapping[str, object], values: Mapping[str, _Value]) -> CoordinatorConfig:
    laid_over = {key: int(value.text) if value.text.isdecimal() else value.text for key, value in values.items()}
    try:
        settings = CoordinatorSettings.model_validate({**configured, **laid_over})
    except ValidationError as error:
        raise SettingsError(_problems(error, values)) from None
    try:
        return coordinator_config(settings.model_dump(by_alias=False))
    except ValueError as error:
        raise HeartwheelError(str(error), hint="set the other one with --set too") from None


def _problems(error: ValidationError, values: Mapping[str, _Value]) -> Iterator[SettingProblem]:
    for one in error.errors(include_url=False):
        key = str(one["loc"][0])
        yield problem_of({**one, "loc": (_SECTION + key,)}, values[key].origin)
