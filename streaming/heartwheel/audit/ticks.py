"""Ticks in the heartbeat topic: records that say nothing but that their partition could be written then.

Read here by a decoder of the audit's own. A tick is any JSON object whose `type` is `tick`; one without a run, or with
a field that is not what it should be, is nobody's: it gives time, as every record does, and is evidence of nothing.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

_NUMBER_MAX: Final = 2**53 - 1
_RUN_CHARS_MAX: Final = 64
_PARTITIONS_MAX: Final = 1_000_000


class Tick(msgspec.Struct, frozen=True):
    """Hold one tick.

    Args:
        run: of the ticker that wrote it, made at the start of its process; empty if it is nobody's.
        partitions: of the topic, as far as the ticker knew.
    """

    run: str = ""
    partitions: int = 0


NOBODYS: Final = Tick()
"""A tick that is evidence of nothing."""


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


def read_tick(value: bytes | None) -> Tick | None:
    """Read a value as a tick; `None` if it is none."""
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
    return Tick(found.run, found.partitions)
