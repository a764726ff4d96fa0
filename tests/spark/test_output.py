"""What a batch writes, on its way to the sink: many records in a row, none lost or out of order, no row too large."""

from __future__ import annotations

import random

import pytest

from heartwheel.engine.runtime.state.output import (
    RECORDS_A_ROW,
    ROW_CHARS_MAX,
    Output,
    OutputRecord,
    ProgressFigures,
    frame_of_output,
    json_texts,
    rows,
)
from heartwheel.wire.rejects import make_reject

_TOPICS = {"expirations": "member-expirations", "triggers": "rebalance-triggers"}


def _record(number: int, *, value: str = "{}", topic: str = "triggers", time_ms: int = 0) -> OutputRecord:
    return OutputRecord(topic, f"key-{number}", value, f"id-{number}", "type", time_ms)


@pytest.mark.parametrize("count", [0, 1, RECORDS_A_ROW - 1, RECORDS_A_ROW, RECORDS_A_ROW + 1, 3 * RECORDS_A_ROW])
def test_p4_records_keep_their_order_in_as_few_rows_as_there_may_be(count: int) -> None:
    """P4: taken out of their rows, the records are those put in, in their order, under the topics' real names."""
    records = [_record(number, topic=random.Random(number).choice(list(_TOPICS))) for number in range(count)]
    shaped = list(rows(records, _TOPICS))
    assert len(shaped) == -(-count // RECORDS_A_ROW)
    topics, keys, values, ids, types, _ = ([part for row in shaped for part in row[place]] for place in range(6))
    assert topics == [_TOPICS[record.topic] for record in records]
    assert list(zip(keys, values, ids, types, strict=True)) == [record[1:5] for record in records]
    assert all(row[6:] == (None,) for row in shaped)


def test_p6_long_records_do_not_share_a_row() -> None:
    """P6: a row of many long values would be held several times at once, so each has a row of its own."""
    long = "x" * (ROW_CHARS_MAX // 2)
    together = [_record(1, value=long), _record(2, value=long)]
    assert [row[1] for row in rows(together, _TOPICS)] == [["key-1", "key-2"]]
    apart = [*together, _record(3)]
    assert [row[1] for row in rows(apart, _TOPICS)] == [["key-1"], ["key-2"], ["key-3"]]


def test_figures_stand_once_beside_no_record() -> None:
    """Of a shard one row has figures, however many rows its records take."""
    figures = ProgressFigures(*range(1, len(ProgressFigures._fields) + 1))
    frame = frame_of_output(Output([_record(number) for number in range(RECORDS_A_ROW + 1)], figures), _TOPICS)
    assert frame["figures"].tolist() == [None, None, figures]
    assert frame["keys"].map(len).tolist() == [RECORDS_A_ROW, 1, 0]


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (1_795_239_834_000, "2026-11-21T05:43:54.000Z"),
        (1_795_239_834_007, "2026-11-21T05:43:54.007Z"),
        (0, "1970-01-01T00:00:00.000Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_written_as_cloud_events_have_them(time_ms: int, text: str) -> None:
    """A time has its milliseconds, and is in UTC, also the -1 of a record without a timestamp."""
    [row] = rows([_record(1, time_ms=time_ms)], _TOPICS)
    assert row[5] == [text]


def test_a_time_that_no_calendar_has_does_not_stop_the_job() -> None:
    """P6: who writes a record may set its timestamp where the broker does not; a reject then has that time."""
    [row] = rows([_record(1, time_ms=2**63 - 1), _record(2, time_ms=-(2**63) + 1)], _TOPICS)
    assert all(text.endswith("Z") for text in row[5])


def test_values_encoded_together_stay_apart() -> None:
    """A line end inside of a value is no end of the value."""
    rejects = [
        make_reject(topic="t", partition=0, offset=at, append_ms=0, cause="c", detail=detail, key=None, value=None)
        for at, detail in enumerate(["a\nb", "\r\n", "\u2028", "", "\n"])
    ]
    texts = json_texts(rejects)
    assert texts == [json_texts([reject])[0] for reject in rejects]
    assert len(texts) == len(rejects)
    assert json_texts([]) == []
