"""What rows and verdicts say is what the log shows, and no sentence takes back what another one says."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.sources.explain.lines import Lines, what
from heartwheel.sources.explain.shown import RowsOnce, rows_of_log
from heartwheel.sources.explain.summary import LogSummary
from heartwheel.sources.explain.verdicts import judged
from heartwheel.wire.explained import Evidence, ExplainedEvent, Happened
from support.broker_logs import explained
from support.scripted_log import lines_of, member, preparing

LEFT = (
    "Member MemberMetadata(memberId={member}, groupInstanceId=None, clientId=app-1, clientHost=/10.0.0.7, "
    "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group g through "
    "explicit `LeaveGroup`; client reason: {words}"
)
EMPTY = "Group g with generation 4 is now empty (__consumer_offsets-3)"
FAILED = f"Member {member('app-1')} in group g has failed, removing it from the group"


def left(words: str) -> str:
    """Write the line of a member that leaves, in its own words."""
    return LEFT.format(member=member("app-1"), words=words)


def rows(events: list[ExplainedEvent]) -> list[str]:
    """Write events as rows."""
    lines = Lines()
    return [row for event in events for row in lines.of(event)]


@pytest.mark.parametrize("line", [left("not provided"), left("").removesuffix("; client reason: ")])
def test_a_leave_without_a_reason_may_be_a_poll_timeout(line: str) -> None:
    """Clients before Kafka 3.2 do not say which of the two it was, and brokers before it do not write it."""
    (event,) = explained(lines_of((0, line)))
    assert what(event) == "left by itself, no reason given (closed, or a poll timeout)"
    (sentence,) = event.explanation
    assert sentence == (
        "It left by itself and gave no reason. Clients before Kafka 3.2 give none, whether they are closed or were "
        "over max.poll.interval.ms."
    )
    sums = LogSummary()
    for number in range(3):
        for each in explained(lines_of((number, line))):
            sums.add(each)
    (group,) = judged(sums)
    assert "3 leaves: 3 x no reason given (closed, or a poll timeout)." in group.verdict


def test_a_leave_with_a_reason_is_no_riddle() -> None:
    """Its own words stand alone."""
    (event,) = explained(lines_of((0, left("tea break"))))
    assert what(event) == "left: tea break"


def ids_of(events: list[ExplainedEvent]) -> list[str]:
    """Return the ids of the rows of events."""
    return [getattr(row.row, "id", "") for row in rows_of_log(events)]


def test_a_rotation_changes_no_id_and_members_of_one_line_have_their_own() -> None:
    """Ids are in messages and addresses: the file that shows a removal may have another name by then."""
    barrier = f"Group g removed dynamic members who haven't joined: Set({member('app-1')}, {member('app-2', 2)})"
    begun = preparing(3, f"Adding new member {member('app-3', 3)} with group instance id None")
    events = explained(lines_of((0, begun), (5, barrier), (5, "Stabilized group g generation 4 (p) with 1 members")))
    renamed = [msgspec.structs.replace(each, evidence=Evidence("server.log.1", each.evidence.line)) for each in events]
    ids = ids_of(events)
    assert ids_of(renamed) == ids
    assert len(set(ids)) == len(ids) == 4


def test_the_begin_of_a_rebalance_that_was_shown_while_it_ran_comes_once() -> None:
    """However many rows come in between; that of another rebalance is a row of its own."""
    begun, rows = (0, preparing(3, "because")), RowsOnce()
    done = explained(lines_of(begun, (50, STABLE), (60, preparing(4, "because")), (61, STABLE.replace("4", "5"))))
    running = [each for each in explained(lines_of(begun)) if each.kind is Happened.REBALANCING]
    shown = [[getattr(row.row, "type", "") for row in each.rows] for each in rows.of([*running, *done])]
    whole = ["rebalance_triggered", "rebalance_completed"]
    assert shown == [whole[:1], whole[1:], whole]


STABLE = "Stabilized group g generation 4 (__consumer_offsets-3) with 1 members"
LAST_OUT = (
    (0, FAILED),
    (0, preparing(3, f"removing member {member('app-1')} on heartbeat expiration")),
    (0, EMPTY),
)


def test_a_rebalance_within_a_millisecond_has_a_length() -> None:
    """It took some time, and the log does not tell how little."""
    text = "\n".join(rows(explained(lines_of(*LAST_OUT))))
    assert text.count("took less than 1 ms") == 2
    assert "0 ms" not in text.replace(".000", "")
    coarse = lines_of(*LAST_OUT).replace(",000]", "]")
    assert "took less than 1 s:" in "\n".join(rows(explained(coarse)))


def test_a_member_goes_before_its_group_is_empty() -> None:
    """The old coordinator writes the two lines the other way round, often at the same millisecond."""
    begun = preparing(3, f"Removing member {member('app-1')} on LeaveGroup; client reason: closed")
    at_once = explained(lines_of((0, begun), (0, EMPTY), (0, left("closed"))))
    assert [event.kind for event in at_once] == [Happened.LEFT, Happened.GROUP_EMPTY]
    others = lines_of((0, begun), (0, EMPTY), (0, FAILED.replace("group g", "group h")), (0, left("closed")))
    assert [event.kind for event in explained(others)] == [Happened.LEFT, Happened.GROUP_EMPTY, Happened.EXPIRED]
    later = explained(lines_of((0, begun), (0, EMPTY), (0.003, left("closed"))))
    assert [event.kind for event in later] == [Happened.GROUP_EMPTY, Happened.LEFT]


def test_advice_and_what_would_have_helped_agree() -> None:
    """Where nobody came back no length is known; to raise the timeout may still be right."""
    sums = LogSummary()
    for event in explained(lines_of((0, left("consumer poll timeout has expired.")))):
        sums.add(event)
    (group,) = judged(sums)
    text = " ".join(group.verdict)
    assert "or raise max.poll.interval.ms" in text
    assert (
        "The log does not show app-1 back within an hour, so it does not show which max.poll.interval.ms would have been "
        "enough." in text
    )
