"""What one batch of a shard writes, on its way to the Kafka sink: records, many to a row of `schema.OUTPUT`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from heartwheel.wire.rejects import Reject

RECORDS_A_ROW: Final = 128
"""Most records of a row. Fewer cost more for each; of more the JVM has less in its caches."""

ROW_CHARS_MAX: Final = 1 << 20
"""Most characters of the values of a row; where they would be more, each record has a row of its own."""

_TIMES_KEPT: Final = 65_536
"""How many times are remembered as text; many members fall silent in the same millisecond."""

_encode: Final = msgspec.json.Encoder()


class OutputRecord(NamedTuple):
    """One record for an output topic.

    Args:
        value: JSON.
        time_ms: when what it tells of happened, epoch ms.
    """

    topic: str
    key: str
    value: str
    id: str
    type: str
    time_ms: int


class ProgressFigures(NamedTuple):
    """What one batch of a shard adds to the progress line (`progress.Progress`)."""

    members: int = 0
    groups: int = 0
    records: int = 0
    expired: int = 0
    triggers: int = 0
    rejected: int = 0
    behind_ms: int = 0
    standing: int = 0
    outage_ms: int = 0
    renewed: int = 0
    waiting: int = 0
    untimed: int = 0
    stepped_back_ms: int = 0


_LARGEST: Final = frozenset({"behind_ms", "standing", "outage_ms", "stepped_back_ms"})
"""Of these a job has the largest of its shards; of all others the sum."""


def total(shards: Iterable[Sequence[int]]) -> ProgressFigures:
    """Return the figures of a job.

    Args:
        shards: the `ProgressFigures` of each.
    """
    columns = dict(zip(ProgressFigures._fields, zip(*shards, strict=True), strict=False))
    return ProgressFigures(**{name: (max if name in _LARGEST else sum)(column) for name, column in columns.items()})


class Output(NamedTuple):
    """What one batch of a shard writes.

    Args:
        records: in the order in which they are written.
    """

    records: list[OutputRecord]
    figures: ProgressFigures


_COLUMNS: Final = ("topics", "keys", "vals", "ids", "types", "times", "figures")


def frame_of_output(output: Output, topics: Mapping[str, str]) -> pd.DataFrame:
    """Make the frame of `OUTPUT` that a state function gives.

    Args:
        output: of one batch of a shard.
        topics: real names of topics by their logical ones.
    """
    return pd.DataFrame(
        [*rows(output.records, topics), (*([] for _ in OutputRecord._fields), output.figures)], columns=_COLUMNS
    )


def rows(records: Sequence[OutputRecord], topics: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    """Return records as rows of `OUTPUT`, in their order.

    Args:
        topics: real names of topics by their logical ones.
    """
    for part in _parts(records):
        logical, keys, values, ids, types, times = map(list, zip(*part, strict=True))
        real = [topics[name] for name in logical]
        yield real, keys, values, ids, types, list(map(_time_text, times)), None


def _parts(records: Sequence[OutputRecord]) -> Iterator[Sequence[OutputRecord]]:
    for start in range(0, len(records), RECORDS_A_ROW):
        part = records[start : start + RECORDS_A_ROW]
        if sum(len(record.value) for record in part) <= ROW_CHARS_MAX:
            yield part
        else:
            yield from ([record] for record in part)


@lru_cache(_TIMES_KEPT)
def _time_text(time_ms: int) -> str:
    """Write a time as RFC 3339 has it, as the attribute `time` of a CloudEvent."""
    return f"{np.datetime64(time_ms, 'ms')}Z"


def reject_record(reject: Reject) -> OutputRecord:
    """Shape a reject as a record."""
    place = f"{reject.topic}-{reject.partition}"
    record_id = f"{place}@{reject.offset}"
    return OutputRecord(
        "rejects", place, json_text(reject), record_id, "heartwheel.record.rejected.v1", reject.append_ms
    )


def json_text(row: msgspec.Struct) -> str:
    """Encode the value of a record."""
    return _encode.encode(row).decode()


def json_texts(structs: Sequence[msgspec.Struct]) -> list[str]:
    """Encode the values of many records; JSON has no line ends of its own."""
    return _encode.encode_lines(structs).decode().split("\n")[: len(structs)]
