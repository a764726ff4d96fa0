"""The driver's watch over the query: each batch is told once, at the price of one report."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from heartwheel.engine.runtime.driver.progress import IDLE_EVERY_S, IdleLog, Progress, ProgressReader, read_progress
from heartwheel.engine.runtime.state.output import ProgressFigures


def _report(batch_id: int, rows: int = 4) -> dict[str, Any]:
    source = {"endOffset": "{}", "latestOffset": "{}"}
    return {
        "batchId": batch_id,
        "numInputRows": rows,
        "observedMetrics": {},
        "sources": [source],
        "durationMs": {"triggerExecution": 200},
    }


class _Query:
    """A query that counts how often all reports are asked for."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []
        self.asked = 0

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - PySpark's name
        return self.reports[-1] if self.reports else None

    @property
    def recentProgress(self) -> list[dict[str, Any]]:  # noqa: N802 - PySpark's name
        self.asked += 1
        return self.reports


def _read(reader: ProgressReader) -> list[int]:
    return [batch.batch_id for batch in reader.fresh()]


def test_a_query_that_is_watched_as_it_goes_is_asked_for_its_last_report_alone() -> None:
    """Batch after batch is told once, and the list of all reports, a hundred of them, is never fetched."""
    query = _Query()
    reader = ProgressReader(query)  # type: ignore[arg-type]  # what is used of it
    assert _read(reader) == []
    told = []
    for number in range(3):
        query.reports.append(_report(number))
        told += [*_read(reader), *_read(reader)]
    assert (told, query.asked) == ([0, 1, 2], 0)


def test_batches_that_finish_between_two_looks_are_all_told() -> None:
    """Who looks late, or first at a query that goes on from a checkpoint, gets every batch that is still reported."""
    query = _Query()
    reader = ProgressReader(query)  # type: ignore[arg-type]  # what is used of it
    query.reports += [_report(7), _report(8), _report(9, rows=0), _report(10)]
    assert _read(reader) == [7, 8, 10]
    query.reports += [_report(11), _report(12)]
    assert _read(reader) == [11, 12]


def _batch(**did: int) -> Progress:
    nothing = {"heartbeats": 0, "behind": 0, "members": 3, "groups": 1, "expired": 0, "triggers": 0, "rejected": 0}
    return Progress(batch_id=1, held=False, duration_ms=200, read_ms=100, **(nothing | did))


def test_batches_that_did_nothing_make_few_lines() -> None:
    """An idle job writes a line now and then, so that its log shows that it lives; what happens is logged at once."""
    now_s = 100.0
    log = IdleLog(lambda: now_s)
    assert [log.wants(_batch()) for _ in range(3)] == [True, False, False]
    assert log.wants(_batch(expired=1))
    now_s += IDLE_EVERY_S - 0.1
    assert not log.wants(_batch())
    assert log.wants(_batch(heartbeats=1))
    now_s += IDLE_EVERY_S
    assert [log.wants(_batch()) for _ in range(2)] == [True, False]


@pytest.mark.parametrize("written", [json.dumps, str], ids=["4.2", "4.0"])
def test_offsets_are_read_as_each_pyspark_writes_them(written: Callable[[Any], str]) -> None:
    """PySpark before 4.2 gives offsets as Python shows a dictionary, not as JSON; a missing one is no backlog."""
    report = _report(0)
    for latest, behind in (({"beats": {"0": 9, "1": 5}}, 4), (None, 0)):
        report["sources"] = [{"endOffset": written({"beats": {"0": 5, "1": 5}}), "latestOffset": written(latest)}]
        assert read_progress(report).behind == behind


def test_figures_of_shards_are_added_or_the_largest_is_taken() -> None:
    """What is counted adds up; how long and how far behind are the longest and the furthest of all shards."""
    report = _report(0)
    one = ProgressFigures(members=3, records=5, expired=1, behind_ms=700, outage_ms=0, stepped_back_ms=20)
    other = ProgressFigures(members=4, records=6, expired=0, behind_ms=300, outage_ms=9_000, standing=1)
    report["observedMetrics"]["heartwheel"] = {"shards": [list(one), list(other)]}
    batch = read_progress(report)
    assert (batch.members, batch.heartbeats, batch.expired) == (7, 11, 1)
    assert (batch.behind_ms, batch.outage_ms, batch.standing, batch.stepped_back_ms) == (700, 9_000, 1, 20)
