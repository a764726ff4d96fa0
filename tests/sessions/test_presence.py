"""The same events for `sessions` and for presence groups: who is gone, and when, is the same, as the audit has it.

The audit's rules were written a second time from docs/groups.md, so this is the opinion of another author. Both count a
member alive while now < deadline. Where the two promise different things, this file leaves it out: of two events of a
key and a millisecond a presence group goes by the order of the log, which a DataFrame has not; it takes a timeout only
if its settings allow it; and it follows an outage of Kafka, of which other sources have nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from audit.engine_runs import engine_run
from heartwheel import sessions
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.log_builder import LogBuilder
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdict_rows import ExpirationRow

T0 = 1_767_268_800_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CONFIG = CoordinatorConfig(group_min_session_timeout_ms=1)

steps = st.tuples(
    # Often to the millisecond at a deadline.
    st.integers(0, 700) | st.sampled_from([500, 1_000]),
    st.sampled_from("abc"),
    st.sampled_from([500, 1_000, 2_500]),
    st.sampled_from([False, False, False, True]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=1, max_size=30), st.integers(0, 30))
def test_the_same_keys_are_gone_at_the_same_times(found: list[tuple[int, str, int, bool]], cut: int) -> None:
    """A worker that beats, falls silent, leaves and comes back is gone for both at the same millisecond."""
    log, rows, now_ms = LogBuilder(), [], T0
    known: set[tuple[str, int]] = set()
    for step_ms, member, timeout_ms, leaves in found:
        now_ms += step_ms + ((member, now_ms + step_ms) in known)
        known.add((member, now_ms))
        if leaves:
            log.add(now_ms, Event(type=EventType.LEAVE, group_id="g", member_id=member))
        else:
            log.beat(now_ms, "g", member, session_timeout_ms=timeout_ms)
        at = EPOCH + timedelta(milliseconds=now_ms)
        rows.append({"key": member, "at": at, "timeout": timeout_ms / 1000, "bye": leaves})
    end_ms = now_ms + 3_000
    run = engine_run(log, clock_ms=end_ms, config=CONFIG)
    report = run.audit(cut=min(cut, len(log.records)))
    assert report.faults == {}, report.findings
    expired = {
        (each.row.member_id, each.row.deadline_ms) for each in run.written if isinstance(each.row, ExpirationRow)
    }
    _, member, timeout_ms, leaves = found[-1]
    assert leaves or (member, now_ms + timeout_ms) in expired
    gone = sessions.test(
        rows, key="key", timeout="timeout", time="at", ends="bye", emit=["gone"], until=timedelta(seconds=40)
    )
    assert {(row["key"], _ms(row["at"])) for row in gone if row["reason"] == "timeout"} == expired


def _ms(at: datetime) -> int:
    return round((at - EPOCH) / timedelta(milliseconds=1))
