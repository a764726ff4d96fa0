"""The `meta.json` of a recording: the broker's settings, and when the recording ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.errors import HeartwheelError

FILE_NAME: Final = "meta.json"


@dataclass(frozen=True)
class Meta:
    """What a recording says about itself.

    Args:
        settings: the coordinator's settings by name; what else a broker has set is left out.
        end_ms: when the recording ended, epoch ms, if it says so.
    """

    settings: Mapping[str, int]
    end_ms: int | None


class _File(msgspec.Struct):
    broker_conf: dict[str, Any]
    end_ms: int | None = None


class MetaError(HeartwheelError):
    """The description of a recording cannot be read."""


def read_meta(path: Path) -> Meta:
    """Read the description of a recording.

    Raises:
        MetaError: it is not there, or is none.
    """
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise MetaError(f"{path} can not be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        hint = 'it needs the broker\'s settings: {"broker_conf": {"group.max.size": 3}}'
        raise MetaError(f"{path} does not describe a recording: {error}", hint=hint) from error
    named = {name.replace(".", "_"): value for name, value in file.broker_conf.items()}
    return Meta({name: value for name, value in named.items() if name in CoordinatorConfig.__slots__}, file.end_ms)


def find_meta(log: Path) -> Path | None:
    """Find the description that lies beside a log; a `meta.json` about something else is none."""
    path = log.parent / FILE_NAME
    if not path.is_file():
        return None
    try:
        read_meta(path)
    except MetaError:
        return None
    return path
