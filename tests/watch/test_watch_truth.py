"""Three brokers, consumers that are killed, hung, slow, rolled and out of memory, and `heartwheel watch` beside them.

What the brokers' logs say is the judge. The logs are small, so that the brokers rotate them all the time.
"""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.node_config import LOGGING
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.explained_history import explain_history
from heartwheel.wire.explained import REASON_OF, ExplainedEvent
from support.group_members import GroupMember
from support.job import wait_for
from support.second_broker import second_broker
from support.webhook_receiver import Receiver

pytestmark = [pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(900)]

MINUTE_S: Final = 60.0
SECRET: Final = "a secret of a test, and of nothing else"  # noqa: S105 - as it says
CONFIG: Final = {
    "offsets.topic.num.partitions": "6",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "400",
}
SETTINGS: Final = ("notify.gather=500ms", "notify.min_interval=1s", "notify.burst=100", "notify.per_minute=6000")

Removal = tuple[str, str, str, int]
"""A group, a member, the reason and when (epoch ms)."""


class World(NamedTuple):
    """The brokers, and what starts a consumer."""

    brokers: list[EmbeddedKafka]
    member: Callable[..., GroupMember]

    @property
    def logs(self) -> list[str]:
        """The log of each broker."""
        return [str(broker.log_file) for broker in self.brokers]

    @property
    def files(self) -> list[str]:
        """All files of all logs, the rotated ones too."""
        found = [file for broker in self.brokers for file in broker.dir.glob("server.log*")]
        return [str(file) for file in found if re.fullmatch(r"server\.log(\.\d+)?", file.name)]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Run three brokers that keep every file of their logs, and end all consumers at the end."""
    small = LOGGING.replace("size.size=16MB", "size.size=4KB").replace("strategy.max=2", "strategy.fileIndex=nomax")
    assert small.count("4KB") == small.count("nomax") == 1
    monkeypatch.setattr("heartwheel.kafka.broker.embedded.LOGGING", small)
    with ExitStack() as stack:
        first = stack.enter_context(EmbeddedKafka(tmp_path / "broker-1", config=CONFIG, heap="256m"))
        others = [
            stack.enter_context(second_broker(first, tmp_path / f"broker-{number}", config=CONFIG, node_id=number))
            for number in (2, 3)
        ]
        brokers = [first, *others]
        ensure_topics(first.bootstrap, [TopicSpec("work", 4, {})])

        def member(group: str, client: str, **settings: Any) -> GroupMember:
            started = GroupMember(first, "work", group, client, **{"session_ms": 4_000, **settings})
            stack.callback(started.end)
            return started

        yield World(brokers, member)


@contextmanager
def watching(folder: Path, world: World, receiver: Receiver) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command; yield its process and the address of its page, when it has read what the logs had."""
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    command = [sys.executable, "-u", "-m", "heartwheel", "watch", *world.logs, "--port", "0", *words]
    environment = os.environ | {"HEARTWHEEL_NOTIFY__URL": receiver.url, "HEARTWHEEL_NOTIFY__SECRET": SECRET}
    with (
        (folder / "watch.log").open("a") as log,
        subprocess.Popen(
            [*command, "--history", str(folder / "h.db")],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url, (folder / "watch.log").read_text()
            wait_for(lambda: httpx.get(f"{url}readyz").status_code == 200, "a watcher that has caught up")
            yield process, url
        finally:
            process.kill()


def removals(events: Iterator[ExplainedEvent]) -> list[Removal]:
    """Return who was removed, in a fixed order."""
    return sorted(
        (event.group_id, event.member_id or "", REASON_OF[event.kind].value, event.time_ms)
        for event in events
        if event.kind in REASON_OF
    )


def logged(world: World) -> list[Removal]:
    """Return who was removed by what the logs say, read in one go."""
    return removals(explain_logs(world.files, Scanned(), stdin=io.BytesIO()))


def named(receiver: Receiver) -> set[tuple[str, str, str]]:
    """Return the members that messages named: group, member, reason."""
    return {
        (incident.group_id or "", each.member_id, each.reason)
        for body in receiver.bodies
        for incident in body.incidents
        for each in incident.members
    }


def told(receiver: Receiver) -> int:
    """Return how many removals were told of: the newest state of each incident counts its own."""
    newest: dict[str, tuple[int, int]] = {}
    for body in receiver.bodies:
        for incident in body.incidents:
            newest[incident.incident_id] = max(
                newest.get(incident.incident_id, (0, 0)), (incident.sequence, incident.expired)
            )
    return sum(expired for _, expired in newest.values())


def rolled(world: World, members: list[GroupMember]) -> list[GroupMember]:
    """Close each consumer, and start another one in its place, one after the other."""
    new = []
    for each in members:
        each.do("close")
        new.append(world.member(each.group, each.client))
        new[-1].wait_joined()
    return new


def test_each_removal_is_told_within_a_minute_and_none_is_lost_or_repeated(tmp_path: Path, world: World) -> None:
    """On the page with its cause, in metrics and in a webhook; whatever kills the watcher, and while logs rotate."""
    modern: dict[str, Any] = {"library": "librdkafka", "protocol": "consumer"}
    killed = [world.member("orders", f"orders-{number}") for number in range(4)]
    hung, hungry = world.member("video", "video-1"), world.member("search", "search-1")
    slow = world.member("billing", "billing-1", library="java", poll_ms=3_000)
    new = [world.member("clicks", f"clicks-{number}", **modern) for number in range(2)]
    rolling = [world.member("deploys", f"deploys-{number}") for number in range(3)]
    ids = {each: each.wait_joined() for each in (*killed, hung, hungry, slow, *new, *rolling)}
    with Receiver([SECRET.encode()]) as receiver:
        begin_s = time.monotonic()
        with watching(tmp_path, world, receiver) as (process, url):
            killed[0].kill()
            hung.pause()
            slow.do("stall 8")
            new[0].kill()
            by_kernel = hungry.kill_by_memory()
            print(f"out of memory: killed by {'the kernel, in a cgroup' if by_kernel else 'a signal from outside'}")  # noqa: T201
            session = "session_timeout"
            wanted = {(each.group, ids[each], session) for each in (killed[0], hung, new[0], hungry)}
            wanted.add((slow.group, ids[slow], "poll_timeout"))
            _is_told(url, receiver, wanted)
            took_s = time.monotonic() - begin_s
            assert took_s < MINUTE_S
            hung.resume()
            rolling = rolled(world, rolling)
            process.send_signal(signal.SIGKILL)
        for number in (1, 2, 3):  # dead while one is removed, and killed while it reads and tells of another
            rolling = rolled(world, rolling)
            if number < 3:
                killed[number].kill()
                _wait_for_more(world, len(logged(world)))
            with watching(tmp_path, world, receiver) as (process, _):
                rolling = rolled(world, rolling)
                process.send_signal(signal.SIGKILL)
        for each in (*killed[3:], *new[1:], *rolling):
            each.do("close")
        with watching(tmp_path, world, receiver) as (process, url):
            count = len(logged(world))
            wait_for(lambda: told(receiver) == count, lambda: f"{told(receiver)} of {count} removals to be told of")
            assert len(httpx.get(f"{url}api/expirations", params={"limit": 1_000}).json()["rows"]) == count
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    assert removals(explain_history(tmp_path / "h.db", Scanned())) == logged(world)
    assert named(receiver) == {each[:3] for each in logged(world)}
    assert not any(each[0] == "deploys" for each in logged(world))
    assert len(world.files) > 2 * len(world.logs)
    assert len({each.rpartition("/")[0] for each in world.files}) == len(world.logs)


def _wait_for_more(world: World, count: int) -> None:
    wait_for(lambda: len(logged(world)) > count, "a removal that no watcher saw")


def _is_told(url: str, receiver: Receiver, wanted: set[tuple[str, str, str]]) -> None:
    """Wait until removals are on the page with their cause and advice, in the metrics, and in messages."""

    def on_page() -> bool:
        rows = httpx.get(f"{url}api/expirations", params={"limit": 1_000}).json()["rows"]
        found = {
            (row["group_id"], row["member_id"], row["reason"]) for row in rows if row["explanation"] and row["advice"]
        }
        groups = httpx.get(f"{url}api/lanes", params={"last_ms": 900_000, "removals": 50}).json()["groups"]
        drawn = {
            (group["group_id"], row["member_id"], row["reason"])
            for group in groups
            for row in group["removals"]
            if row["why"] and row["advice"]
        }
        return wanted <= found and wanted <= drawn

    def in_metrics() -> bool:
        text = httpx.get(f"{url}metrics").text
        return all(re.search(rf'group_expirations_total{{group="{group}"}} [1-9]', text) for group, _, _ in wanted)

    for look, where in (
        (on_page, "on the page"),
        (in_metrics, "in the metrics"),
        (lambda: wanted <= named(receiver), "in a message"),
    ):
        wait_for(look, f"{wanted} {where}")
