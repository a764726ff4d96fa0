"""Read what a job wrote to its sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from heartwheel.simulation.checkpoint import Told
from heartwheel.wire.rejects import Reject
from heartwheel.wire.verdicts import ExpirationRow, TriggerRow

Row = ExpirationRow | TriggerRow

_DECODERS: Final[dict[str, Callable[[str], Row]]] = {
    "expirations": msgspec.json.Decoder(ExpirationRow).decode,
    "triggers": msgspec.json.Decoder(TriggerRow).decode,
}
_decode_reject: Final = msgspec.json.Decoder(Reject).decode


def read_row(told: Told) -> Row | None:
    """Read a verdict; `None` if it is something else."""
    decode = _DECODERS.get(told.topic)
    return None if decode is None else decode(told.value)


def read_reject(told: Told) -> Reject | None:
    """Read a reject; `None` if it is something else."""
    return _decode_reject(told.value) if told.topic == "rejects" else None
