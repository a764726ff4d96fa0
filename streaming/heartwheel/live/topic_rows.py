"""Rows of the output topics: which topic, where in it, when, and the decoded value."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from heartwheel.settings import TopicSettings
from heartwheel.wire.job import JobRow
from heartwheel.wire.rejects import Reject
from heartwheel.wire.status import StatusRow
from heartwheel.wire.verdicts import ExpirationRow, TriggerRow

Row = ExpirationRow | TriggerRow | StatusRow | JobRow | Reject
"""What a value of a followed topic decodes to."""


class Source(enum.StrEnum):
    """A topic that the engine writes, by its name in `[kafka.topics]`."""

    EXPIRATIONS = "expirations"
    TRIGGERS = "triggers"
    STATUS = "status"
    JOB = "job"
    REJECTS = "rejects"


COMPACTED: Final = frozenset({Source.STATUS, Source.JOB})
"""Topics whose newest rows are how things stand, however old they are."""


class TopicRow(NamedTuple):
    """One row of an output topic.

    Args:
        source: which topic.
        partition: where in it.
        offset: likewise.
        append_ms: the broker's append time, epoch ms: when it was known.
        row: the decoded value.
    """

    source: Source
    partition: int
    offset: int
    append_ms: int
    row: Row


_DECODERS: Final[Mapping[Source, Callable[[bytes], Row]]] = {
    Source.EXPIRATIONS: msgspec.json.Decoder(ExpirationRow).decode,
    Source.TRIGGERS: msgspec.json.Decoder(TriggerRow).decode,
    Source.STATUS: msgspec.json.Decoder(StatusRow).decode,
    Source.JOB: msgspec.json.Decoder(JobRow).decode,
    Source.REJECTS: msgspec.json.Decoder(Reject).decode,
}


def decode(source: Source, record: Any) -> TopicRow | None:
    """Decode a record of kafka-python; fields of a newer release are passed over.

    Returns:
        The row; `None` if the record's value is not one of that topic.
    """
    try:
        row = _DECODERS[source](record.value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return TopicRow(source, record.partition, record.offset, record.timestamp, row)


def topic_names(topics: TopicSettings) -> dict[Source, str]:
    """Return for each source the name that its topic has in Kafka."""
    return {source: getattr(topics, source.value) for source in Source}
