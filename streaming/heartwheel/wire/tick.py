"""Ticks: records of the heartbeat topic that say nothing but that its partition could be written then.

The job writes one to every partition every `engine.tick_interval`, and the broker stamps it. Whoever has read a tick
has read all that stands before it, so ticks carry time to a partition in which nobody else writes. They are no events,
and nothing that was refused: everybody who reads the topic passes over them.
"""

from __future__ import annotations

from typing import Final

import msgspec

TICK_PREFIX: Final = b'{"type":"tick"'
"""How the ticks of heartwheel begin; those of others may be written in another way."""

RUN_CHARS_MAX: Final = 64
"""Longest run id that is looked at."""


PARTITIONS_MAX: Final = 1_000_000
"""Most partitions that a tick may speak of."""


class Tick(msgspec.Struct, frozen=True, tag_field="type", tag="tick"):
    """One tick.

    Args:
        run: id of the ticker that wrote it, made when its process was started; empty: nobody's, so that the tick gives
            time and is evidence of nothing.
        mono_ms: the ticker's monotonic clock when it was sent, ms.
        partitions: how many partitions the topic had, as far as the ticker knew.
        interval_ms: time from one tick to the next, ms.
    """

    run: str = ""
    mono_ms: int = 0
    partitions: int = 0
    interval_ms: int = 0


class _Typed(msgspec.Struct):
    type: str = ""


ANONYMOUS: Final = Tick()
"""A tick whose fields nobody can use."""

_encode = msgspec.json.Encoder().encode
_decode_typed = msgspec.json.Decoder(_Typed).decode
_decode_tick = msgspec.json.Decoder(Tick).decode


def encode_tick(tick: Tick) -> bytes:
    """Encode a tick as the JSON that `read_tick` reads; it begins with `TICK_PREFIX`."""
    return _encode(tick)


def read_tick(value: bytes | None) -> Tick | None:
    """Read a record's value as a tick.

    Returns:
        The tick, `ANONYMOUS` if its fields are not as they should be, or `None` if the value is no tick.
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
