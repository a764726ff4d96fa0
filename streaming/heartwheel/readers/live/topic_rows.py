"""Rows of the output topics: the topic, the position in it, the time, and the decoded value."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from heartwheel.settings import TopicSettings
from heartwheel.wire.job import JobRow
from heartwheel.wire.rejects import Reject
from heartwheel.wire.status import StatusRow
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

Row = ExpirationRow | TriggerRow | StatusRow | JobRow | Reject
"""What a value of a followed topic decodes to."""


class OutputTopic(enum.StrEnum):
    """A topic that the engine writes, by its name in `[kafka.topics]`."""

    EXPIRATIONS = "expirations"
    TRIGGERS = "triggers"
    STATUS = "status"
    JOB = "job"
    REJECTS = "rejects"


COMPACTED: Final = frozenset({OutputTopic.STATUS, OutputTopic.JOB})
"""Topics whose newest rows are the present state, however old they are."""


class TopicRow(NamedTuple):
    """One row of an output topic.

    Args:
        source: which topic.
        partition: its partition.
        offset: its offset there.
        append_ms: the broker's append time, epoch ms: when it was known.
        row: the decoded value.
    """

    source: OutputTopic
    partition: int
    offset: int
    append_ms: int
    row: Row


_DECODERS: Final[Mapping[OutputTopic, Callable[[bytes], Row]]] = {
    OutputTopic.EXPIRATIONS: msgspec.json.Decoder(ExpirationRow).decode,
    OutputTopic.TRIGGERS: msgspec.json.Decoder(TriggerRow).decode,
    OutputTopic.STATUS: msgspec.json.Decoder(StatusRow).decode,
    OutputTopic.JOB: msgspec.json.Decoder(JobRow).decode,
    OutputTopic.REJECTS: msgspec.json.Decoder(Reject).decode,
}


def decode(source: OutputTopic, record: Any) -> TopicRow | None:
    """Decode a record of kafka-python; fields of a newer release are ignored.

    Returns:
        The row; `None` if the record's value is not one of that topic.
    """
    try:
        row = _DECODERS[source](record.value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return TopicRow(source, record.partition, record.offset, record.timestamp, row)


def topic_names(topics: TopicSettings) -> dict[OutputTopic, str]:
    """Return the name in Kafka of each source's topic."""
    return {source: getattr(topics, source.value) for source in OutputTopic}
