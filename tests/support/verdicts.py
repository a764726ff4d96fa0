"""What is on the topics in the end, held against what the log of heartbeats asks for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from support.job import Job, Topics
from support.silences import SentHeartbeats


def assert_exact(job: Job, *, due: Iterable[str], members: int) -> None:
    """Assert that the audit is clean, every silence is there once by its id, nobody else was expired, and somebody was.

    A silence is told by when the member was last heard of and its session, as an outage puts the deadline off. Whoever
    beat on after an outage was renewed and is not expired: whether that was right is what the audit looks at.

    Args:
        job: one that has ended.
        due: the groups whose members fell silent for good, long enough ago that the job has fired their timers.
        members: how many each of them has.
    """
    assert_audit_is_clean(job)
    topics = job.topics
    rows = topics.rows("expirations")  # before the heartbeats: what justifies an expiration is then in what was read
    justified = silences_in(topics)
    clock_ms = topics.clock_ms()
    by_id: dict[str, set[tuple[str, int]]] = {}
    for row in rows:
        over_ms = row["last_seen_ms"] + row["session_timeout_ms"]
        by_id.setdefault(row["id"], set()).add((row["member_id"], over_ms))
    assert all(len(silences) == 1 for silences in by_id.values())
    expired = [silence for silences in by_id.values() for silence in silences]
    assert len(set(expired)) == len(expired)
    assert set(expired) - justified == set()
    missing = {silence for silence in justified if silence[1] <= clock_ms} - set(expired)
    newest = {member: max(over for who, over in justified if who == member) for member, _ in missing}
    assert {silence for silence in missing if newest[silence[0]] == silence[1]} == set()
    dead = {f"{group}-m{i}" for group in due for i in range(members)}
    assert dead - {member for member, _ in expired} == set()


def silences_in(topics: Topics) -> set[tuple[str, int]]:
    """List who fell silent by the log of heartbeats: (member id, when the session was over, epoch ms)."""
    beats = SentHeartbeats()
    for record in topics.read("heartbeats"):
        beats.add(record)
    return {(silence.member_id, silence.deadline_ms) for silence in beats.silences()}


def assert_audit_is_clean(job: Job) -> None:
    """Run `heartwheel audit` on the job's topics; how late verdicts were is not its business after so many stops."""
    # Where the checkpoint lies is checked for every command, though an audit does not look at it.
    flags = [word for flag in (*job.flags, "checkpoint.shared=true") for word in ("--set", flag)]
    command = [sys.executable, "-m", "heartwheel", "audit", "--late", "off", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-5000:]}\n{done.stderr[-2000:]}"
