"""Messages of a watcher: each removal that is new, once over restarts, and no flood of a rolling restart."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import httpx
import pytest

from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.sources.explain import shown
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.watched_logs import WatchedLogs
from heartwheel.wire.explained import ExplainedEvent
from support.job import wait_for
from support.scripted_log import START_MS, lines_of, member, preparing, stable
from support.stepping import Stepping
from support.watching import Receiver, watching

NOTIFY = {"notify": {"gather": "0ms", "min_interval": "0ms"}}
FAILS = "Member {} in group {} has failed, removing it from the group"


def since() -> float:
    """Return the present moment on the clock of scripted logs, seconds."""
    return time.time() - START_MS / 1000


def leaves(client: str, number: int, group: str = "g") -> str:
    """Write the line of a member that is closed."""
    return (
        f"Member MemberMetadata(memberId={member(client, number)}, groupInstanceId=None, clientId={client}, "
        "clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has "
        f"left group {group} through explicit `LeaveGroup`; client reason: the consumer is being closed"
    )


def restarted(client: str, number: int, at: float, generation: int, group: str) -> list[tuple[float, str]]:
    """Write the lines of a member that is closed and started again."""
    gone, new = member(client, number), member(client, number + 1)
    return [
        (at, leaves(client, number, group)),
        (at, preparing(generation, f"explicit `LeaveGroup` request for ({gone}) members.", group)),
        (at + 0.1, stable(generation + 1, group)),
        (at + 0.2, preparing(generation + 1, f"Adding new member {new} with group instance id None", group)),
        (at + 0.3, stable(generation + 2, group)),
    ]


def removed(client: str, number: int, at: float, generation: int, group: str) -> list[tuple[float, str]]:
    """Write the lines of a member that is removed by its timeout, and is back under a new id."""
    gone = member(client, number)
    begun = preparing(generation, f"removing member {gone} on heartbeat expiration", group)
    return [(at, FAILS.format(gone, group)), (at, begun), *restarted(client, number, at, generation, group)[2:]]


def test_a_removal_is_told_with_its_cause_and_advice(tmp_path: Path) -> None:
    """What is new, not what the log had before; the message names evidence and what to change."""
    log, receiver = tmp_path / "server.log", Receiver()
    log.write_text(lines_of((since(), FAILS.format(member("old"), "before")), (since(), stable(2))))
    with watching(tmp_path, log, post=receiver, **NOTIFY):
        with log.open("a") as more:
            more.write(lines_of((since(), FAILS.format(member("g-1"), "g"))))
        wait_for(lambda: receiver.messages, "a message")
    assert receiver.told == {"g": ["opened"]}
    row = receiver.messages[0]["incidents"][0]["members"][0]
    assert row["evidence"] == f"{log}:3"
    assert "session.timeout.ms" in row["advice"]
    assert row["advice"] in receiver.messages[0]["text"]


def test_rows_of_an_event_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page, metrics and messages share them: making them is the most that a line costs after it is read."""
    made: list[str] = []
    real = shown.rows_of_log

    def counted(events: Iterable[ExplainedEvent]) -> Iterator[TopicRow]:
        for event in events:
            made.append(event.kind)
            yield from real([event])

    monkeypatch.setattr(shown, "rows_of_log", counted)
    log, receiver = tmp_path / "server.log", Receiver()
    log.write_text("")
    with watching(tmp_path, log, post=receiver, **NOTIFY) as watcher:
        with log.open("a") as more:
            more.write(lines_of((since(), FAILS.format(member("g-1"), "g"))))
        wait_for(lambda: receiver.messages, "a message")
        assert httpx.get(f"{watcher.url}api/expirations").json()["total"] == 1
        assert 'group_expirations_total{group="g"} 1.0' in httpx.get(f"{watcher.url}metrics").text
    assert made == ["expired"]


def test_what_was_read_and_not_told_before_a_kill_is_told_once_after_it(tmp_path: Path) -> None:
    """The history had the removal when the process was killed, and its incidents had not."""
    log, receiver, clock = tmp_path / "server.log", Receiver(), Stepping()
    log.write_text(lines_of((since(), stable(2))))
    with watching(tmp_path, log, post=receiver, **NOTIFY):
        pass
    with log.open("a") as more:
        more.write(lines_of((since(), FAILS.format(member("g-1"), "g"))))
    with (
        HistoryFile(tmp_path / "history.db", writes=True) as history,
        WatchedLogs([str(log)], history, clock=clock) as logs,
    ):
        logs.read()
        clock.now_s += 1
        assert len(logs.read().facts) == 1
    for _ in range(2):
        with watching(tmp_path, log, post=receiver, **NOTIFY):
            wait_for(lambda: receiver.messages, "a message")
    assert receiver.told == {"g": ["opened"]}


def stormy(receiver: Receiver) -> set[str]:
    """Return the groups of which a message says that they are in a storm."""
    incidents = [each for message in receiver.messages for each in message["incidents"]]
    return {each["group_id"] for each in incidents if any(one["kind"] == "storm" for one in each["troubles"])}


def test_a_rolling_restart_is_no_storm_and_a_loop_is(tmp_path: Path) -> None:
    """Twelve members that leave and come back once each tell nobody; one that does so again and again is told once.

    Of a group that removes its members the ways back count as well as the ways out.
    """
    log, receiver, at = tmp_path / "server.log", Receiver(), since() - 60
    log.write_text("")
    rolled = [line for n in range(12) for line in restarted(f"app-{n}", 1, at + n, 10 + 2 * n, "rolled")]
    looped = [line for n in range(12) for line in restarted("bad", 1 + n, at + n + 0.5, 10 + 2 * n, "looped")]
    died = [line for n in range(4) for line in removed(f"app-{n}", 1, at + n + 0.7, 10 + 2 * n, "died")]
    with watching(tmp_path, log, post=receiver, **NOTIFY):
        with log.open("a") as more:
            more.write(lines_of(*sorted([*rolled, *looped, *died])))
        wait_for(lambda: stormy(receiver) == {"looped", "died"}, "both storms")
    assert receiver.told.keys() == {"looped", "died"}
    assert receiver.told["looped"] == ["opened"]


def test_what_came_while_it_was_down_is_reported_however_little_is_in_memory(tmp_path: Path) -> None:
    """The page has a thousand lines in memory after a start; the first of 1,500 that came meanwhile is in a message."""
    log, receiver = tmp_path / "server.log", Receiver()
    log.write_text(lines_of((since(), FAILS.format(member("old"), "before"))))
    with watching(tmp_path, log, post=receiver, **NOTIFY):
        pass
    with log.open("a") as more:
        more.write(lines_of((since(), FAILS.format(member("m"), "first"))))
        more.write(lines_of(*((since(), FAILS.format(member("m", number), "g")) for number in range(1_500))))
    kept = {"page_events_max": 1_000, "history_file": str(tmp_path / "history.db")}
    with watching(tmp_path, log, post=receiver, watch=kept, **NOTIFY):
        wait_for(lambda: "g" in receiver.told, "a message")
    assert receiver.told.keys() == {"first", "g"}
