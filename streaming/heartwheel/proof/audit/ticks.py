"""Ticks in the heartbeat topic: records that only show that their partition could be written at that time.

The audit reads them with its own decoder. A tick is any JSON object whose `type` is `tick`. A tick without a run, or
with an invalid field, belongs to no run: it advances time, as every record does, and is no evidence of an outage.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

_NUMBER_MAX: Final = 2**53 - 1
_RUN_CHARS_MAX: Final = 64
_PARTITIONS_MAX: Final = 1_000_000


class AuditedTick(msgspec.Struct, frozen=True):
    """One tick.

    Args:
        run: the run of the ticker that wrote it, chosen at the start of its process; empty if the tick is invalid.
        partitions: number of partitions of the topic, as far as the ticker knew.
    """

    run: str = ""
    partitions: int = 0


NOBODYS: Final = AuditedTick()
"""A tick that is no evidence of an outage."""


class _Typed(msgspec.Struct):
    type: str = ""


class _Fields(msgspec.Struct):
    type: Literal["tick"]
    run: str = ""
    mono_ms: int = 0
    partitions: int = 0
    interval_ms: int = 0


_typed = msgspec.json.Decoder(_Typed).decode
_fields = msgspec.json.Decoder(_Fields).decode


def read_tick(value: bytes | None) -> AuditedTick | None:
    """Return the tick in a value; `None` if it is not a tick."""
    if value is None or b"tick" not in value:
        return None
    try:
        if _typed(value).type != "tick":
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    try:
        found = _fields(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NOBODYS
    numbers = (found.mono_ms, found.partitions, found.interval_ms)
    fits = all(0 <= number <= _NUMBER_MAX for number in numbers) and found.partitions <= _PARTITIONS_MAX
    if not fits or len(found.run) > _RUN_CHARS_MAX:
        return NOBODYS
    return AuditedTick(found.run, found.partitions)
