"""Rejects: the rows for records that could not be used."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

REJECT_VALUE_BYTES_MAX: Final = 64 * 1024
"""How much of a rejected record's value is kept."""


class Reject(msgspec.Struct, kw_only=True):
    """One row of the rejects topic; `conf/schemas/heartbeat-rejects.schema.json` describes it."""

    topic: str
    partition: int
    offset: int
    append_ms: int
    cause: str
    detail: str
    key_base64: str | None
    value_base64: str | None
    value_bytes: int | None


def make_reject(
    *,
    topic: str,
    partition: int,
    offset: int,
    append_ms: int,
    cause: str,
    detail: str,
    key: bytes | None,
    value: bytes | None,
) -> Reject:
    """Return a record that could not be used as the row of the rejects topic.

    Args:
        topic: where it was read.
        partition: in which partition.
        offset: and where there.
        append_ms: its append time, epoch ms.
        cause: the enum that is counted.
        detail: words for people.
        key: its key.
        value: its value.
    """
    return Reject(
        topic=topic,
        partition=partition,
        offset=offset,
        append_ms=append_ms,
        cause=cause,
        detail=detail,
        key_base64=to_base64(key),
        value_base64=to_base64(value),
        value_bytes=None if value is None else len(value),
    )


def to_base64(data: bytes | None) -> str | None:
    """Encode a rejected key or value, cut to what is kept of one; `None` stays `None`."""
    return None if data is None else base64.b64encode(data[:REJECT_VALUE_BYTES_MAX]).decode()
