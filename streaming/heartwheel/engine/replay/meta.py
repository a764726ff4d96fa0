"""The `meta.json` of a recording: the broker's settings, and when the recording ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.rules.config import KAFKA_VERSIONS, MIGRATION_POLICIES, CoordinatorConfig, GroupOverride
from heartwheel.engine.rules.epochs.config import EpochConfig

FILE_NAME: Final = "meta.json"
_MIGRATION: Final = "group.consumer.migration.policy"


@dataclass(frozen=True)
class Meta:
    """The description of a recording.

    Args:
        settings: the coordinator's settings by name; a broker's other settings are left out.
        end_ms: when the recording ended, epoch ms, if it is given.
        overrides: settings of single groups, `group_overrides` in the file.
        migration: `group.consumer.migration.policy`, in lower case; `None` if the file does not have it.
        version: `kafka_version` of the broker; `None` if the file does not name it.
    """

    settings: Mapping[str, int]
    end_ms: int | None
    overrides: tuple[GroupOverride, ...] = ()
    migration: str | None = None
    version: str | None = None

    def epoch_config(self, coordinator: CoordinatorConfig) -> EpochConfig:
        """Return the coordinator's settings with the overrides of single groups."""
        if self.migration is not None:
            coordinator = replace(coordinator, group_consumer_migration_policy=self.migration)
        if self.version is not None:
            coordinator = replace(coordinator, kafka_version=self.version)
        return EpochConfig(coordinator, self.overrides)


class _File(msgspec.Struct):
    broker_conf: dict[str, Any]
    broker: str = ""
    end_ms: int | None = None
    group_overrides: list[dict[str, Any]] = []


class MetaError(HeartwheelError):
    """The description of a recording cannot be read."""


def read_meta(path: Path) -> Meta:
    """Read the description of a recording.

    Raises:
        MetaError: it does not exist, or is not a description.
    """
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise MetaError(f"{path} cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = 'it needs the broker\'s settings: {"broker_conf": {"group.max.size": 3}}'
        raise MetaError(f"{path} does not describe a recording: {error}", hint=hint) from error
    named = {name.replace(".", "_"): value for name, value in file.broker_conf.items()}
    settings = {name: value for name, value in named.items() if name in CoordinatorConfig.__slots__}
    settings.pop(_MIGRATION.replace(".", "_"), None)
    migration = str(file.broker_conf[_MIGRATION]).lower() if _MIGRATION in file.broker_conf else None
    if migration not in (None, *MIGRATION_POLICIES):
        raise MetaError(f"{path} has {_MIGRATION} {migration}", hint=f"one of {', '.join(MIGRATION_POLICIES)}")
    try:
        overrides = tuple(one for entry in file.group_overrides for one in _overrides(entry))
    except (TypeError, ValueError) as error:
        hint = 'an override is such as {"t_ms": 0, "group_id": "g", "consumer.session.timeout.ms": 8000}'
        raise MetaError(f"{path} has a group override that cannot be read: {error}", hint=hint) from error
    return Meta(settings, file.end_ms, overrides, migration, _version(file.broker))


def _version(broker: str) -> str | None:
    """Return the `kafka_version` of a broker that is named such as `Apache Kafka 4.3.1`."""
    found = re.search(r"\b(\d+)\.(\d+)", broker)
    if found is None:
        return None
    return KAFKA_VERSIONS[(int(found[1]), int(found[2])) >= (4, 4)]


def _overrides(entry: Mapping[str, Any]) -> Iterator[GroupOverride]:
    """Parse one entry of `group_overrides`: a group, since when, and any of its settings; `null` removes one."""
    for name, value in entry.items():
        if name.endswith(".ms"):
            number = None if value is None else int(value)
            if number is not None and number < 0:
                raise ValueError(f"{name} is {number}")
            yield GroupOverride(str(entry.get("group_id", "")), name, number, int(entry.get("t_ms", 0)))


def find_meta(log: Path) -> Path | None:
    """Return the description in the log's folder; a `meta.json` about something else does not count."""
    path = log.parent / FILE_NAME
    if not path.is_file():
        return None
    try:
        read_meta(path)
    except MetaError:
        return None
    return path
