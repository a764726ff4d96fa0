"""Gaps that are open: which of them were outages depends on the log alone, wherever it is cut into batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from random import Random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.time import LogTime, ReadingsBuilder, decode_readings, encode_readings
from heartwheel.engine.time.reading import UNTIMED_MS
from heartwheel.proof.audit.partitions import Partition
from heartwheel.proof.audit.ticks import read_tick as audited_tick
from heartwheel.proof.testing import OUTAGE_MIN_MS, RUN, ProducedRecord
from heartwheel.wire.tick import Tick, encode_tick, read_tick
from support.heartbeat_logs import EXAMPLES, T0
from support.log_time_reference import outages_of

RUNS = (RUN, "another")
Found = list[tuple[int, int]]


def _tick(append_ms: int, run: str = RUN, *, interval_ms: int = 200) -> ProducedRecord:
    return ProducedRecord(T0 + append_ms, encode_tick(Tick(run, append_ms, 1, interval_ms)), 0, 0)


def _beats(*append_ms: int) -> list[ProducedRecord]:
    return [ProducedRecord(T0 + each, b"{}", 0, 0) for each in append_ms]


def _untimed(record: ProducedRecord) -> ProducedRecord:
    """Take the append time off a record: it carries its producer's."""
    return record._replace(append_ms=UNTIMED_MS)


def _numbered(records: Sequence[ProducedRecord]) -> list[ProducedRecord]:
    return [record._replace(offset=offset) for offset, record in enumerate(records)]


def _batches(records: list[ProducedRecord], cuts: Sequence[bool]) -> list[list[ProducedRecord]]:
    """Cut a log before each record but the first where that is so said."""
    ends = [0, *(at for at, cut in enumerate(cuts, 1) if cut), len(records)]
    return [records[start:end] for start, end in pairwise(ends)]


def _engine(batches: list[list[ProducedRecord]], *, frame: int = 1_000) -> Iterator[tuple[Found, int]]:
    """Yield the outages of each batch and up to where the partition is decided after it; the state is coded between."""
    time = LogTime()
    for batch in batches:
        builder = ReadingsBuilder(RUNS, OUTAGE_MIN_MS)
        for start in range(0, len(batch), frame):
            rows = batch[start : start + frame]
            ticks = {row: tick for row, record in enumerate(rows) if (tick := read_tick(record.value)) is not None}
            append_ms = np.array([record.append_ms for record in rows], np.int64)
            builder.add(0, rows[0].offset, append_ms, list(ticks), list(ticks.values()))
        readings = decode_readings(encode_readings(builder.readings()))
        found = [(each.before_ms - T0, each.after_ms - T0) for each in time.read(readings, outage_min_ms=OUTAGE_MIN_MS)]
        yield found, int(time.decided()[0]) - T0 if time.count else -1 - T0
        time = msgspec.msgpack.decode(msgspec.msgpack.encode(time), type=LogTime)


def _audit(batches: list[list[ProducedRecord]]) -> Iterator[tuple[Found, int]]:
    """Yield the same by the audit, which reads record by record."""
    part = Partition(0)
    for batch in batches:
        found: Found = []
        for record in batch:
            tick = audited_tick(record.value)
            outages = part.read(record.append_ms, tick, runs=RUNS, outage_min_ms=OUTAGE_MIN_MS)
            found += ((each.from_ms - T0, each.to_ms - T0) for each in outages)
        yield found, part.decided_ms - T0


def _by_the_rule(records: list[ProducedRecord]) -> Found:
    return [(before - T0, after - T0) for before, after in outages_of(records, RUNS)]


TWO = [_tick(0), *_beats(3_001, 100, 6_500), _tick(6_600), _tick(6_800)]
"""A new leader's clock is behind, so that the only tick is still next to the second gap."""

MANY = [_tick(0), *_beats(*(ms for at in range(1, 6) for ms in (3_001 * at, at)), 3_001 * 6), _tick(3_001 * 6 + 100)]
"""Six gaps in a row, as leaders change by turns, of which the tick at the end comes in time for the last four."""

GIVEN_UP = [_tick(0), *_beats(3_500, 100, 13_499, 13_500, 13_501), _tick(13_502)]
"""The first gap is given up while the second, between the same tick and the same next one, is still open."""

DRIVERS = [_tick(0, "another"), _tick(100), *_beats(300, 3_400), _tick(3_500, "another"), _tick(3_600), *_beats(3_900)]
"""Two runs tick by turns: the one that ticked last before the gap is not the one that ticks first after it."""

IN_ORDER = [_tick(0, "another"), _tick(3_001), *_beats(6_002), _tick(6_002), _tick(6_002, "another")]
"""The second outage is proven first, by another run than the one that proves the first."""

UNTIMED = [_tick(0), *_beats(200), *map(_untimed, (*_beats(900_000), _tick(0, "another"))), *_beats(1_000, 1_100)]
"""Records without an append time, between two that lie less than an outage apart."""

BEHIND_A_GAP = [_tick(0), *_beats(3_500, 4_000), *map(_untimed, _beats(0)), *_beats(5_000), _tick(5_100)]
"""What lies behind a gap that waits for its tick waits with it."""

LOGS = {
    "untimed": (UNTIMED, [(200, 1_000)]),
    "untimed behind a gap": (BEHIND_A_GAP, [(0, 3_500), (4_000, 5_000)]),
    "begins untimed": ([*map(_untimed, _beats(0, 1)), *_beats(5_000), _tick(5_100)], []),
    "in order": (IN_ORDER, [(0, 3_001), (3_001, 6_002)]),
    "drivers": (DRIVERS, [(300, 3_400)]),
    "two": (TWO, [(0, 3_001), (3_001, 6_500)]),
    "many": (MANY, [(3_001 * at, 3_001 * (at + 1)) for at in range(2, 6)]),
    "given up": (GIVEN_UP, [(3_500, 13_499)]),
}


@pytest.mark.parametrize("name", LOGS)
def test_p3_all_open_gaps_are_kept_however_the_log_is_cut(name: str) -> None:
    """P3: several gaps may wait for one tick, in one batch or in as many as there are records."""
    records, expected = _numbered(LOGS[name][0]), LOGS[name][1]
    assert _by_the_rule(records) == expected
    for cuts in product([False, True], repeat=len(records) - 1):
        batches = _batches(records, cuts)
        steps = list(_engine(batches))
        assert steps == list(_audit(batches)), cuts
        assert [each for found, _ in steps for each in found] == expected, cuts


@st.composite
def _logs(draw: st.DrawFn) -> list[ProducedRecord]:
    """Draw logs of one partition with gaps, clocks that step back, and ticks of several runs, some far apart."""
    records, now = [], 0
    steps = st.sampled_from([0, 1, 200, 1_300, 1_500, 3_000, 3_001, 3_001, 5_000, 10_000, 10_001])
    for _ in range(draw(st.integers(1, 25))):
        now += draw(steps)
        append_ms = max(0, now - draw(st.sampled_from([0, 0, 0, 7, 3_000, 9_000])))
        run = draw(st.sampled_from(["", "", "", RUN, RUN, "another", "forged"]))
        interval_ms = draw(st.sampled_from([0, 200, 2**53 - 1]))
        made = [_tick(append_ms, run, interval_ms=interval_ms)] if run else _beats(append_ms)
        if draw(st.integers(0, 9)) == 0:
            made = [_untimed(record) for record in made]
        records += made
    return _numbered(records)


@given(_logs(), st.randoms(use_true_random=False), st.integers(1, 5))
@settings(max_examples=EXAMPLES)
def test_p3_outages_do_not_depend_on_how_the_log_is_cut(log: list[ProducedRecord], dice: Random, frame: int) -> None:
    """P3: cut anywhere, read in frames of any size: the outages of the log as a whole, and decided as far as that."""
    cuts = [dice.random() < 0.5 for _ in log[1:]]
    batches = _batches(log, cuts)
    steps = list(_engine(batches, frame=frame))
    assert steps == list(_audit(batches))
    found = [each for outages, _ in steps for each in outages]
    # One behind a gap that is still open waits for it.
    assert found == [(before, after) for before, after in _by_the_rule(log) if before < steps[-1][1]]
    assert [(found, steps[-1][1])] == list(_engine([log]))
