"""Lines that only groups with member epochs have: their heartbeats, and commits that name an epoch."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from heartwheel.engine.replay.epoch_lane import EpochLine
from heartwheel.engine.replay.recorded import RecordedAnswer
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, RejectCause, RejectedError
from heartwheel.wire.group_heartbeats import decode_group_heartbeat

_TYPE: Final = re.compile(rb'"type"\s*:\s*"(consumer_heartbeat|share_heartbeat|streams_heartbeat|offset_commit)"')
_COMMIT: Final = "offset_commit"

_decode_evidence: Final = msgspec.json.Decoder(RecordedAnswer).decode


def is_epoch_line(line: bytes) -> bool:
    """Return whether a line is one of these; cheap for lines that are not."""
    return (b'_heartbeat"' in line or b"offset_commit" in line) and _TYPE.search(line) is not None


def decode_epoch_line(line: bytes) -> EpochLine | None:
    """Decode such a line.

    Returns:
        The line, or `None` for one that has no effect on any group: a commit without a member, or a request that a
        broker refused as invalid.

    Raises:
        RejectedError: it is no such line, and no broker has refused it.
    """
    try:
        evidence = _decode_evidence(line)
        fields: dict[str, Any] = msgspec.json.decode(line)
    except msgspec.ValidationError as error:
        raise RejectedError(RejectCause.BAD_FIELD, str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RejectedError(RejectCause.NOT_JSON, str(error)) from None
    try:
        if fields.get("type") == _COMMIT:
            event = _commit(fields)
            return None if event is None else EpochLine(evidence, event=event)
        return EpochLine(evidence, decode_group_heartbeat(line))
    except RejectedError:
        if evidence.error in (None, "NONE"):
            raise
        return None


def _commit(fields: dict[str, Any]) -> Event | None:
    """Return a commit as one of the classic protocol, with its epoch as the generation."""
    if not fields.get("member_id"):
        return None
    epoch = fields.get("generation_id", fields.get("member_epoch", -1))
    kept = {name: value for name, value in fields.items() if name in Event.__struct_fields__}
    return decode_event(msgspec.json.encode({**kept, "type": "commit", "generation_id": epoch}))
