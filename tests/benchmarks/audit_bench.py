"""Measure the audit: heartbeats a second, and the memory that it takes, while it derives and matches in step.

    .venv/bin/python tests/benchmarks/audit_bench.py --events 10000000 --members 100000

Members beat every three seconds; every tenth of a second one dies and comes back half a minute later under its name.
At the end all fall silent at once. Each verdict is written as soon as it is derived, as a job would: deriving and
matching are measured, not the truth of the rows. It prints the rate by processor time, and the largest memory, which
is not to grow.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
from collections.abc import Iterator

from heartwheel.proof.audit import Audit, AuditConfig
from heartwheel.proof.audit.derived import Derived, Row
from heartwheel.wire.partitioner import partition_of
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

BEAT_MS = 3_000
SESSION_MS = 10_000
GROUP_SIZE = 20
PARTITIONS = 8
DEATH_EVERY_MS = 100
DEAD_MS = 30_000
KNOWN_MS = 1_000


def beats(events: int, members: int) -> Iterator[tuple[int, int, int, bytes]]:
    """Write heartbeats as (append time, partition, offset, value)."""
    values = [
        b'{"group_id":"g%d","member_id":"m%d","session_timeout_ms":%d}' % (m // GROUP_SIZE, m, SESSION_MS)
        for m in range(members)
    ]
    homes = [partition_of(b"g%d" % group, PARTITIONS) for group in range(members // GROUP_SIZE + 1)]
    dead_until = [0] * members
    next_death_ms, victim, number, turn = DEATH_EVERY_MS, 0, 0, 0
    while number < events:
        for member, value in enumerate(values):
            t_ms = turn * BEAT_MS + member * BEAT_MS // members
            while next_death_ms <= t_ms:
                victim = (victim + 7_919) % members
                dead_until[victim] = next_death_ms + DEAD_MS
                next_death_ms += DEATH_EVERY_MS
            if dead_until[member] <= t_ms:
                yield t_ms, homes[member // GROUP_SIZE], number, value
                number += 1
        turn += 1


def last_words() -> list[bytes]:
    """Write a heartbeat of a new group in each partition, by which time passes there."""
    names = (b"late-%d" % number for number in itertools.count())
    found: dict[int, bytes] = {}
    while len(found) < PARTITIONS:
        name = next(names)
        found.setdefault(partition_of(name, PARTITIONS), name)
    return [
        b'{"group_id":"%s","member_id":"m","session_timeout_ms":%d}' % (found[partition], SESSION_MS)
        for partition in range(PARTITIONS)
    ]


def row_of(verdict: Derived) -> Row:
    """Shape a derived verdict as the row that a job would tell."""
    facts, detected_ms = dict(verdict.facts), verdict.time_ms + KNOWN_MS
    common = {"id": verdict.id(), "group_id": verdict.group_id, "detected_ms": detected_ms, "shard": 0}
    if verdict.type == "expired":
        return ExpirationRow(**common, **facts, deadline_ms=verdict.time_ms, lateness_ms=KNOWN_MS)  # type: ignore[arg-type]
    counts = {f"{name}_count": len(facts[name]) for name in ("awaiting", "removed", "joined")}  # type: ignore[arg-type]
    return TriggerRow(**common, **facts, **counts, type=verdict.type, time_ms=verdict.time_ms)  # type: ignore[arg-type]


def memory_mib() -> float:
    """Tell the largest memory that this process has taken so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Audit a log that is made on the way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--members", type=int, default=100_000)
    arguments = parser.parse_args()
    audit = Audit(AuditConfig())
    written = offset = 0
    matcher = audit._matcher
    derive = matcher.derive

    def tell(verdict: Derived) -> None:
        nonlocal written, offset
        derive(verdict)
        offset += 1
        written += 1
        audit.written(row_of(verdict), 0, offset, verdict.time_ms + KNOWN_MS)

    matcher.derive = tell  # type: ignore[method-assign]
    start, number, newest = time.process_time(), 0, 0
    for number, (t_ms, partition, place, value) in enumerate(beats(arguments.events, arguments.members), start=1):
        audit.event(t_ms, partition, place, value)
        newest = t_ms
        if number % (arguments.events // 10) == 0:
            rate = number / (time.process_time() - start)
            print(f"{number:12,} heartbeats  {rate:10,.0f}/s  {written:10,} rows  {memory_mib():8,.0f} MiB", flush=True)  # noqa: T201
    before, start = written, time.process_time()
    for partition, value in enumerate(last_words()):
        audit.event(newest + 2 * SESSION_MS, partition, number + partition, value)
    rate = (written - before) / (time.process_time() - start)
    print(f"all silent at once   {rate:10,.0f}/s  {written - before:10,} rows  {memory_mib():8,.0f} MiB", flush=True)  # noqa: T201
    report = audit.finish(newest + SESSION_MS)
    print(f"ok {report.ok}, {report.confirmed:,} confirmed, {memory_mib():,.0f} MiB with a snapshot")  # noqa: T201 - a report


if __name__ == "__main__":
    main()
