"""The reference of "time from the log": the whole log at once, record by record, by the words of the rule."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group
from heartwheel.engine.time.outage import FORGOTTEN_MS, RESUME_MAX_MS
from heartwheel.proof.testing import OUTAGE_MIN_MS, RUN, LogBuilder, ProducedRecord
from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, RejectedError
from heartwheel.wire.tick import read_tick
from heartwheel.wire.verdicts import Verdict


class _Item(NamedTuple):
    """One thing that happens to a group: compared by time, records first, then by partition and offset."""

    at_ms: int
    is_renewal: bool
    partition: int
    offset: int
    after_ms: int
    event: Event | None


def effective_times(records: list[ProducedRecord]) -> list[int]:
    """Return the running maximum of the append times of one partition."""
    times: list[int] = []
    for record in records:
        times.append(max(record.append_ms, times[-1] if times else record.append_ms))
    return times


def outages_of(records: list[ProducedRecord], runs: tuple[str, ...] = (RUN,)) -> list[tuple[int, int]]:
    """Find the outages of one partition, as (before, after) in effective times.

    Records without an append time are evidence of nothing, but that one does not know how long they took.
    """
    places = [i for i, record in enumerate(records) if record.append_ms >= 0]
    unknown = [second - first > 1 for first, second in pairwise(places)]
    records = [records[i] for i in places]
    times = effective_times(records)
    ticks = [(i, tick.run) for i, record in enumerate(records) if (tick := read_tick(record.value))]
    return [
        (before, after)
        for i, (before, after) in enumerate(pairwise(times))
        if (unknown[i] and after > before)
        or (after - before > OUTAGE_MIN_MS and any(_lived_through(i, run, records, times, ticks) for run in runs))
    ]


def _lived_through(
    i: int, run: str, records: list[ProducedRecord], times: list[int], ticks: list[tuple[int, str]]
) -> bool:
    """Return whether a run ticked just before the gap after a record, and soon after it."""
    k = next((k for k, of in reversed(ticks) if k <= i and of == run), None)
    following = next((k for k, of in ticks if k > i and of == run), None)
    if k is None or following is None:
        return False
    quiet_ms = max(records[i].append_ms - records[k].append_ms, times[i] - times[k] - FORGOTTEN_MS)
    return quiet_ms <= OUTAGE_MIN_MS / 2 and times[following] - times[i + 1] <= RESUME_MAX_MS


def run_reference(
    log: LogBuilder, *, clock_ms: int, config: CoordinatorConfig, runs: tuple[str, ...] = (RUN,)
) -> list[Verdict]:
    """Run a log through the rules alone, each group's records merged from all partitions.

    Args:
        clock_ms: append time of a last tick in every partition, epoch ms.
        runs: the known runs of the ticker.
    """
    groups: dict[str, list[_Item]] = {}
    renewals: list[_Item] = []
    for partition in {record.partition for record in log.records}:
        mine = [record for record in log.records if record.partition == partition]
        renewals += (_Item(before, True, partition, -1, after, None) for before, after in outages_of(mine, runs))
        placed = [each for each in zip(mine, effective_times(mine), strict=True) if each[1] >= 0]
        for record, at_ms in placed:
            try:
                event = decode_event(record.value)
            except RejectedError:
                continue
            groups.setdefault(event.group_id, []).append(_Item(at_ms, False, partition, record.offset, 0, event))
    verdicts: list[Verdict] = []
    for group_id, items in groups.items():
        machine = GroupMachine(Group(group_id=group_id), config, verdicts.append)
        seen: set[int] = set()
        for item in sorted([*items, *renewals], key=lambda each: each[:4]):
            if item.event is None and item.partition not in seen:
                continue
            machine.advance(item.at_ms)
            if machine.is_forgettable():
                seen.clear()
            if item.event is not None:
                seen.add(item.partition)
                machine.apply(item.event, item.at_ms)
            elif seen:
                machine.renew(item.at_ms, item.after_ms)
        machine.advance(clock_ms)
    return verdicts
