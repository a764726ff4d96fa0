"""Records that are bad on purpose, of the six kinds that people really send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from heartwheel.wire.events import ID_BYTES_MAX, RejectCause

GARBAGE_KINDS: Final = (
    RejectCause.NOT_JSON,
    RejectCause.BAD_FIELD,
    RejectCause.UNKNOWN_TYPE,
    RejectCause.MISSING_FIELD,
    RejectCause.TOMBSTONE,
    RejectCause.ID_TOO_LONG,
)
"""The kinds, named by the cause with which the engine must reject them."""


def garbage(kind: RejectCause, *, group_id: str, member_id: str) -> bytes | None:
    """Make the value of a bad record.

    Args:
        kind: one of `GARBAGE_KINDS`.
        group_id: a group it could belong to, so that it travels among good records.
        member_id: a member it could come from.

    Returns:
        A value that `decode_event` rejects with just this cause; `None` is a tombstone.
    """
    if kind is RejectCause.TOMBSTONE:
        return None
    good = {"group_id": group_id, "member_id": member_id, "session_timeout_ms": 10_000}
    if kind is RejectCause.NOT_JSON:
        return json.dumps(good).encode()[:-1]
    return json.dumps(_spoilt(kind, good)).encode()


def _spoilt(kind: RejectCause, good: Mapping[str, object]) -> dict[str, object]:
    spoilt: dict[RejectCause, dict[str, object]] = {
        RejectCause.BAD_FIELD: {**good, "session_timeout_ms": "soon"},
        RejectCause.UNKNOWN_TYPE: {**good, "type": "hello"},
        RejectCause.MISSING_FIELD: {"member_id": good["member_id"]},
        RejectCause.ID_TOO_LONG: {**good, "member_id": "x" * (ID_BYTES_MAX + 1)},
    }
    return spoilt[kind]
