"""Rejects: the rows for records that could not be used."""

from __future__ import annotations

import base64
from typing import Final

import msgspec

REJECT_VALUE_BYTES_MAX: Final = 64 * 1024
"""The most bytes of a rejected record's value that are kept."""


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
    """Return the row of the rejects topic for a record that could not be used.

    Args:
        topic: the record's topic.
        partition: its partition.
        offset: its offset.
        append_ms: its append time, epoch ms.
        cause: the cause that is counted.
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
    """Encode a rejected key or value, cut to `REJECT_VALUE_BYTES_MAX`; `None` stays `None`."""
    return None if data is None else base64.b64encode(data[:REJECT_VALUE_BYTES_MAX]).decode()
