"""A real broker and real consumers: what was done to each is in the broker's log once, explained, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.explained import ExplainedEvent, Happened
from support.broker_logs import OUT, explained
from support.group_members import GroupMember
from support.job import wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.proof]

SESSION_MS = 2_000
SLACK_MS = 1_500
"""How late a busy machine may be with what was asked of a consumer."""

SHORT_SESSIONS = {
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": str(SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}


class Done(NamedTuple):
    """Hold what was done to a member, and what must follow from it.

    Args:
        member_id: as the member itself knew it.
        kind: what the coordinator decides.
        after_ms: how soon it can be decided, ms.
        until_ms: how late, ms.
    """

    group: str
    member_id: str
    kind: Happened
    at_ms: int
    after_ms: int = 0
    until_ms: int = 0


class Scene(NamedTuple):
    """Hold what was done, and what the broker's log says of it."""

    done: list[Done]
    events: list[ExplainedEvent]
    scanned: Scanned


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    """Do to consumers, of both protocols, all that ends a membership, in one run of one broker."""
    with ExitStack() as stack:
        kafka = stack.enter_context(EmbeddedKafka(config=SHORT_SESSIONS))
        ensure_topics(kafka.bootstrap, [TopicSpec("work", 4, {})])

        def member(group: str, client: str, **settings: Any) -> GroupMember:
            started = GroupMember(kafka, "work", group, client, **settings)
            stack.callback(started.end)
            return started

        modern: dict[str, Any] = {"library": "librdkafka", "protocol": "consumer"}
        killed, stays = member("orders", "orders-1"), member("orders", "orders-2")
        paused = member("video", "video-1")
        closed, polls = member("clicks", "clicks-1"), member("clicks", "clicks-2")
        deaf = member("search", "search-1", poll_ms=2_500, deaf=True)
        new_killed, new_closed, new_stays = (member("modern", f"modern-{n}", **modern) for n in (1, 2, 3))
        static = member("static", "static-1", instance="s-1", **modern)
        everybody = (killed, stays, paused, closed, polls, deaf, new_killed, new_closed, new_stays, static)
        ids = {each: each.wait_joined() for each in everybody}

        def done(each: GroupMember, kind: Happened, after_ms: int = 0, until_ms: int = SLACK_MS) -> Done:
            return Done(each.group, ids[each], kind, each.done_ms, after_ms, until_ms)

        killed.kill()
        paused.pause()
        closed.do("close")
        polls.do("leave consumer poll timeout has expired.")
        deaf.do("stall 8")
        new_killed.kill()
        new_closed.do("close")
        static.do("close")
        late = member("search", "search-2", poll_ms=2_500)
        late.wait_joined()
        paused.resume()
        wait_for(lambda: len(paused.member_ids) > 1, "the paused consumer to be back")
        silent = (SESSION_MS - 500, SESSION_MS + 3_000)
        expected = [
            done(killed, Happened.EXPIRED, *silent),
            done(paused, Happened.EXPIRED, *silent),
            done(closed, Happened.LEFT),
            done(polls, Happened.POLL_TIMEOUT),
            done(deaf, Happened.REMOVED_AT_REBALANCE, 2_500, 12_000),
            done(new_killed, Happened.EXPIRED, *silent),
            done(new_closed, Happened.LEFT),
            done(static, Happened.TEMPORARILY_LEFT),
            done(static, Happened.EXPIRED, SESSION_MS - 1_000, SESSION_MS + 3_000),
        ]

        def log() -> bytes:
            return kafka.log_file.read_bytes()

        wait_for(lambda: sum(event.kind in OUT for event in explained(log())) >= len(expected), "the log to say it all")
        scanned = Scanned()
        yield Scene(expected, explained(log(), scanned=scanned), scanned)


def test_what_was_done_is_found_once_and_nothing_else(scene: Scene) -> None:
    """Killed, paused, closed, out of its poll interval, deaf to a rebalance: each is one event, in its time, as it was."""
    found = [event for event in scene.events if event.kind in OUT]
    for each in scene.done:
        same = [
            event
            for event in found
            if (event.group_id, event.member_id, event.kind) == (each.group, each.member_id, each.kind)
        ]
        assert len(same) == 1, each
        assert each.after_ms <= same[0].time_ms - each.at_ms <= each.until_ms, each
    assert len(found) == len(scene.done), [(event.kind, event.group_id, event.member_id) for event in found]


def test_it_says_who_was_waited_for_and_who_came_back(scene: Scene) -> None:
    """The rebalance that the deaf member held up names it; the paused one is found again under its new id."""
    deaf = next(each for each in scene.done if each.kind is Happened.REMOVED_AT_REBALANCE)
    blocked = [event for event in scene.events if event.blocked_by]
    assert [(event.kind, event.group_id, event.blocked_by) for event in blocked] == [
        (Happened.REBALANCE, "search", (deaf.member_id,))
    ]
    assert (blocked[0].duration_ms or 0) >= 2_300
    (paused,) = [event for event in scene.events if event.group_id == "video" and event.kind is Happened.EXPIRED]
    assert paused.returned_as not in {None, paused.member_id}
    (late,) = [event for event in scene.events if event.reason == "static_not_back"]
    assert (late.group_id, late.group_instance_id) == ("static", "s-1")


def test_every_line_of_the_coordinator_is_understood(scene: Scene) -> None:
    """A real broker writes nothing of its groups that no pattern knows."""
    assert scene.scanned.coordinator_lines > 50
    assert (scene.scanned.unknown, scene.scanned.untimed, scene.scanned.coarse) == ({}, 0, 0)
