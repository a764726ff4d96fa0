"""Decoders of the records in a job's sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from heartwheel.proof.simulation.world.checkpoint import SinkRecord
from heartwheel.wire.rejects import Reject
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

Row = ExpirationRow | TriggerRow

_DECODERS: Final[dict[str, Callable[[str], Row]]] = {
    "expirations": msgspec.json.Decoder(ExpirationRow).decode,
    "triggers": msgspec.json.Decoder(TriggerRow).decode,
}
_decode_reject: Final = msgspec.json.Decoder(Reject).decode


def read_row(written: SinkRecord) -> Row | None:
    """Return the row of a verdict; `None` for other records."""
    decode = _DECODERS.get(written.topic)
    return None if decode is None else decode(written.value)


def read_reject(written: SinkRecord) -> Reject | None:
    """Return a reject; `None` for other records."""
    return _decode_reject(written.value) if written.topic == "rejects" else None
