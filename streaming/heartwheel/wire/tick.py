"""Ticks: records of the heartbeat topic that only show that their partition could be written at that time.

The job writes one to every partition every `engine.tick_interval`, and the broker stamps it. A reader of a tick has
read all records before it, so ticks carry time to a partition without other records. They are no events and no rejects:
every reader of the topic skips them.
"""

from __future__ import annotations

from typing import Final

import msgspec

RUN_CHARS_MAX: Final = 64
"""Longest valid run id."""


PARTITIONS_MAX: Final = 1_000_000
"""Largest valid number of partitions in a tick."""


class Tick(msgspec.Struct, frozen=True, tag_field="type", tag="tick"):
    """One tick.

    Args:
        run: id of the ticker that wrote it, new with every process; a tick without one only advances time, and is no
            evidence of an outage.
        mono_ms: the ticker's monotonic clock when it was sent, ms.
        partitions: number of partitions of the topic, as far as the ticker knew.
        interval_ms: time from one tick to the next, ms.
    """

    run: str = ""
    mono_ms: int = 0
    partitions: int = 0
    interval_ms: int = 0


class _Typed(msgspec.Struct):
    type: str = ""


ANONYMOUS: Final = Tick()
"""A tick whose fields are not valid."""

_encode = msgspec.json.Encoder().encode
_decode_typed = msgspec.json.Decoder(_Typed).decode
_decode_tick = msgspec.json.Decoder(Tick).decode


def encode_tick(tick: Tick) -> bytes:
    """Encode a tick as the JSON that `read_tick` reads."""
    return _encode(tick)


def read_tick(value: bytes | None) -> Tick | None:
    """Return the tick in a record's value.

    Returns:
        The tick, `ANONYMOUS` if its fields are not valid, or `None` if the value is not a tick.
    """
    if value is None or b'"tick"' not in value:
        return None
    try:
        if _decode_typed(value).type != "tick":
            return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    try:
        tick = _decode_tick(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ANONYMOUS
    return tick if _is_plausible(tick) else ANONYMOUS


def _is_plausible(tick: Tick) -> bool:
    if len(tick.run) > RUN_CHARS_MAX or not 0 <= tick.partitions <= PARTITIONS_MAX:
        return False
    return all(0 <= number < 2**53 for number in (tick.mono_ms, tick.interval_ms))
