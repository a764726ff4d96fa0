"""Groups in trouble: which are, which are not, and in which words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from heartwheel.readers.live.group_list import GroupFilter, list_groups
from heartwheel.readers.live.now import View, now_of
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.storms import StormRule
from heartwheel.readers.live.trouble import WINDOW_MS, GroupsInTrouble, groups_in_trouble
from heartwheel.readers.top.cells import group_cells
from support.output_rows import T0, begun, emptied, expired, job, joined, status, topic_rows

RULE = StormRule(3, 60_000)


def told(*rows: Any) -> Picture:
    """Make a picture of rows."""
    picture = Picture()
    picture.apply(topic_rows(*rows), now_ms=T0)
    return picture


def trouble_of(*rows: Any, now_ms: int = T0 + 30_000) -> GroupsInTrouble:
    """Make a picture of rows, and return the groups in trouble."""
    picture = told(*rows)
    with picture.lock:
        return groups_in_trouble(picture, RULE, now_ms=now_ms)


def lines_of(found: GroupsInTrouble) -> list[tuple[str, str, str]]:
    """Return each trouble as group, kind and words."""
    return [(group.group_id, each.kind, each.words) for group in found.groups for each in group.troubles]


@pytest.mark.parametrize(("there", "words"), [(47, ["47 of 50 members"]), (50, []), (51, [])])
def test_group_with_fewer_members_than_expected_is_in_trouble(there: int, words: list[str]) -> None:
    """A group that should have 50 members and has fewer is in trouble, and shows both; others have no such number."""
    picture = Picture(expected_members={"g": 50})
    rows = [msgspec.structs.replace(joined(group, "a"), member_count=there) for group in ("g", "h")]
    picture.apply(topic_rows(*rows), now_ms=T0)
    with picture.lock:
        found = groups_in_trouble(picture, RULE, now_ms=T0 + 30_000)
    assert lines_of(found) == [("g", "too_few", each) for each in words]
    groups = list_groups(picture, GroupFilter(), RULE, now_ms=T0).rows
    assert {row.group_id: (row.members, row.expected) for row in groups} == {"g": (there, 50), "h": (there, None)}
    in_terminal = {row.group_id: group_cells(row, now_ms=T0)[2].plain for row in groups}
    assert in_terminal == {"g": f"{there} of 50", "h": str(there)}


def test_group_whose_members_were_all_expired_is_in_trouble() -> None:
    """A group that is empty as its members were expired is in trouble, until somebody is back."""
    dead = [expired("g", "a", T0 - 2_000), expired("g", "b", T0), emptied("g", "b")]
    found = trouble_of(*dead)
    assert (found.count, found.sentence) == (1, "1 group in trouble")
    assert lines_of(found) == [("g", "empty", "no members for 30 s; 2 expired members not back")]
    assert found.groups[0].troubles[0].since_ms == T0
    assert trouble_of(*dead, joined("g", "b", at_ms=T0 + 20_000)).count == 0


def test_group_that_somebody_came_back_to_is_in_no_trouble() -> None:
    """A member that was expired, came back and left by itself left a group that is meant to be empty."""
    back_ms = T0 + 10_000
    rows = [expired("g", "a"), emptied("g", "a"), joined("g", "a", at_ms=back_ms)]
    rows.append(emptied("g", "a", at_ms=back_ms + 5_000))
    assert trouble_of(*rows).count == 0


def test_group_of_epochs_that_lost_its_members_is_in_trouble() -> None:
    """A consumer group tells that it is empty by an epoch without members."""
    bumped = msgspec.structs.replace(
        emptied("g", "a"), type="epoch_bumped", cause="member_expired", group_kind="consumer", member_count=0
    )
    assert lines_of(trouble_of(expired("g", "a", group_kind="consumer"), bumped)) == [
        ("g", "empty", "no members for 30 s; 1 expired member not back")
    ]


def test_group_that_all_have_left_is_in_no_trouble() -> None:
    """A group whose members left by themselves is meant to be empty; so is one whose expiry was long before."""
    assert trouble_of(emptied("g", "a")).sentence == "No group in trouble"
    assert trouble_of(expired("g", "a", T0 - 61_000), emptied("g", "b")).count == 0


def test_emptiness_outlives_the_window_of_expirations() -> None:
    """Nobody is back after hours: the group is in trouble still, though its expirations are no longer kept."""
    picture = told(expired("g", "a"), emptied("g", "a"))
    later_ms = T0 + 3 * picture.window_ms
    picture.apply((), now_ms=later_ms)
    found = groups_in_trouble(picture, RULE, now_ms=later_ms)
    assert lines_of(found) == [("g", "empty", "no members for 3 h; 1 expired member not back")]


@pytest.mark.parametrize(
    ("client", "kind", "trouble", "words"),
    [
        ("job", "presence", "overdue", "no run for 1 d 2 h; one was expected within 1 d 1 h"),
        ("job-run", "presence", "overdue", "a run has been silent for 1 d 2 h; its limit is 1 d 1 h"),
        ("job", "classic", "empty", "no members for 1 h; 1 expired member not back"),
    ],
)
def test_overdue_job_is_no_run(client: str, kind: str, trouble: str, words: str) -> None:
    """A job that is expected every day and does not run is not a group without members, but a run that is missing."""
    hour_ms = 3_600_000
    late = expired("g", "backup", client_id=client, group_kind=kind)
    late = msgspec.structs.replace(late, last_seen_ms=T0 - 25 * hour_ms, session_timeout_ms=25 * hour_ms)
    found = trouble_of(late, emptied("g", "backup"), now_ms=T0 + hour_ms)
    assert lines_of(found) == [("g", trouble, words)]
    more = trouble_of(expired("g", "a", T0 - 1), late, emptied("g", "backup"), now_ms=T0 + hour_ms)
    assert lines_of(more)[0][2] == words.replace("; 1 expired member not back", "") + "; 2 expired members not back"


def test_light_is_no_green_one_before_any_group_is_known() -> None:
    """A job has just begun and nothing is read: nobody knows how groups do; the canary's groups tell it neither."""
    for rows in ([status(), job()], [status(), job(), joined("heartwheel-canary-0", "c")]):
        trouble = now_of(told(*rows), View(storm=RULE), now_ms=T0 + 1_000).trouble
        assert (trouble.known, trouble.count, trouble.sentence) == (False, 0, "No group known yet")
    trouble = now_of(told(status(), job(), joined("g", "a")), View(storm=RULE), now_ms=T0 + 1_000).trouble
    assert (trouble.known, trouble.sentence) == (True, "No group in trouble")


def test_storm_is_trouble() -> None:
    """A storm counts, with the cause of its first rebalance and who was expired more than once."""
    rows = [begun("g", at_ms=T0 + i) for i in range(3)] + [expired("g", "m", T0), expired("g", "m", T0 + 1)]
    ((group, kind, words),) = lines_of(trouble_of(*rows))
    assert (group, kind, words) == ("g", "storm", "3 rebalances in 1 min, the first by: member expired")
    assert [each.member_id for each in trouble_of(*rows).groups[0].troubles[0].offenders] == ["m"]


def test_member_that_keeps_failing_is_trouble() -> None:
    """Three expirations of one worker in a quarter of an hour are flapping, under whatever member ids it returns."""
    flaps = [expired("g", f"app-{i}{i}", T0 + i, client_id="app", client_host="/10.0.0.1") for i in range(3)]
    assert lines_of(trouble_of(*flaps)) == [("g", "flapping", "app at /10.0.0.1 expired 3 times in 15 min")]
    epochs = [
        expired("g", f"id{i}", T0 + i, client_id="app", client_host="/h", group_kind="consumer") for i in range(3)
    ]
    assert lines_of(trouble_of(*epochs)) == [("g", "flapping", "app at /h expired 3 times in 15 min")]
    assert trouble_of(*flaps[:2]).count == 0
    assert trouble_of(*flaps, now_ms=T0 + WINDOW_MS + 3).count == 0


@pytest.mark.parametrize("reason", ["poll_timeout", "rebalance_timeout", "revocation_timeout"])
def test_late_polls_are_trouble(reason: str) -> None:
    """Two members that did not poll in time are trouble; a single one is not, nor is one that died."""
    slow = [expired("g", "a", reason=reason), expired("g", "b", reason=reason)]
    assert lines_of(trouble_of(*slow)) == [("g", "late_polls", "2 members did not poll in time in 15 min")]
    assert trouble_of(slow[0], expired("g", "b")).count == 0
    same = [expired("g", "a", at_ms, reason=reason) for at_ms in (T0, T0 + 1)]
    assert lines_of(trouble_of(*same)) == [("g", "late_polls", "1 member did not poll in time, 2 times in 15 min")]


def test_worst_groups_come_first() -> None:
    """Empty groups come before storms, of these the fiercest first; the canary's groups do not count."""
    storms = [begun("mild", at_ms=T0 + i) for i in range(3)] + [begun("fierce", at_ms=T0 + i) for i in range(4)]
    dead = [expired("heartwheel-canary-0", "c"), emptied("heartwheel-canary-0", "c")]
    dead += [expired("dead", "a"), emptied("dead", "a")]
    found = trouble_of(*storms, *dead)
    assert [group.group_id for group in found.groups] == ["dead", "fierce", "mild"]
    assert found.sentence == "3 groups in trouble"


def test_engine_that_is_healthy_says_nothing_of_the_groups() -> None:
    """How things stand has two lights: the engine may be healthy while a group is in trouble."""
    picture = told(status(), job(), expired("g", "a"), emptied("g", "a"))
    now = now_of(picture, View(storm=RULE), now_ms=T0 + 1_000)
    assert (now.health.state, now.trouble.sentence) == ("healthy", "1 group in trouble")
