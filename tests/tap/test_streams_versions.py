"""Requests of streams members, made by hand, to real brokers of 4.3.1 and 4.4.0: the rules decide what each decides.

A client of Kafka Streams never sends most of them. The request log of each broker is replayed with its answers, and
without them, when only `coordinator.kafka_version` says which rules hold. The broker's own log has the truth.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from heartwheel.engine.replay.log import LogReplay
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.jars import fetch_jars
from heartwheel.kafka.client import admin_client
from heartwheel.sources.tap.request_log import RequestLog
from heartwheel.sources.tap.requests import error_of, event_of
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.verdicts import Kind, Verdict
from support.job import wait_for
from support.streams_requests import StreamsRequests, topology

pytestmark = [pytest.mark.kafka, pytest.mark.proof, pytest.mark.timeout(120)]

SESSION_MS: Final = 3_000
CONFIG: Final = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": str(SESSION_MS),
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "400",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.max.size": "2",
}
GROUPS: Final = ("dynamic", "static", "emptied")
EARLY_MS: Final = 200
"""How long before a request seems to have arrived its decision may be logged, ms.

The arrival is counted back from the line of the request, which a busy broker may write late.
"""
LATE_MS: Final = 1_000
"""How long after a request arrived a busy broker, which has just started, may log what it decided, ms."""
_LOGGED: Final = {
    Kind.MEMBER_JOINED,
    Kind.MEMBER_LEFT,
    Kind.STATIC_LEFT,
    Kind.STATIC_REPLACED,
    Kind.EPOCH_BUMPED,
    Kind.TARGET_COMPUTED,
    Kind.MEMBER_EXPIRED,
}


class Recorded(NamedTuple):
    """One run: the broker's version, its answers, its requests, what it logged of groups, and when it ended."""

    version: str
    answers: Mapping[str, str]
    requests: list[dict[str, Any]]
    truth: list[tuple[int, str]]
    end_ms: int


def _join(requests: StreamsRequests, group: str, member: str, *, process: str = "p", **fields: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "processId": process,
        "clientTags": [],
        "topology": topology("words"),
        "rebalanceTimeoutMs": 5_000,
    }
    tasks: dict[str, Any] = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}
    return requests.send(group, member, 0, **(usual | tasks | fields))


def _act(requests: StreamsRequests) -> dict[str, str]:
    """Send the requests; return what some of them were answered, by what they try."""
    said: dict[str, str] = {}

    def note(what: str, answer: dict[str, Any]) -> None:
        said[what] = str(answer["errorCode"] or answer["memberEpoch"])

    note("join", _join(requests, "dynamic", "a"))
    note("join again", _join(requests, "dynamic", "a"))
    note("join again from another process", _join(requests, "dynamic", "a", process="q"))
    note("say another rack", requests.send("dynamic", "a", 2, rackId="r"))
    note("join as the second", _join(requests, "dynamic", "b", process="b"))
    note("join as one too many", _join(requests, "dynamic", "c", process="c"))
    note("join a full group again", _join(requests, "dynamic", "b", process="b"))
    note("leave", requests.send("dynamic", "b", -1))
    note("join as static", _join(requests, "static", "s1", instanceId="i"))
    note("join where the instance id is held", _join(requests, "static", "s2", instanceId="i"))
    note("beat as static", requests.send("static", "s1", 2, instanceId="i"))
    note("leave for a while", requests.send("static", "s1", -2, instanceId="i"))
    note("return", _join(requests, "static", "s2", instanceId="i"))
    note("beat under the old id", requests.send("static", "s1", 2, instanceId="i"))
    requests.send("static", "s2", -2, instanceId="i")
    note("return from another process", _join(requests, "static", "s3", instanceId="i", process="q"))
    requests.send("static", "s3", -2, instanceId="i")
    note("join before the group empties", _join(requests, "emptied", "a"))
    requests.send("emptied", "a", -1)
    note("join the emptied group", _join(requests, "emptied", "b"))
    note("beat in no group", requests.send("nowhere", "a", 2))
    return said


def _truth(log: Path) -> list[tuple[int, str]]:
    """Read what a broker logged of the groups: when, epoch ms, and its words."""
    found = []
    for line in log.read_text().splitlines():
        time_text, _, words = line.partition(" INFO ")
        _, at, message = words.partition("[GroupId ")
        told = ("joins the", "left the", " Bumped ", "Computed a new target", " fenced from ")
        if at and any(each in message for each in told):
            moment = time.mktime(time.strptime(time_text[:19], "%Y-%m-%dT%H:%M:%S"))
            found.append((round(moment * 1_000) + int(time_text[20:23]), at + message))
    return found


@pytest.fixture(scope="module", params=[("4.3", "broker-4.3"), ("4.4", "broker")], ids=["4.3.1", "4.4.0"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Send the requests to a broker of one version, and wait until the last member's session is over."""
    version, jars = request.param
    folder = tmp_path_factory.mktemp("broker")
    with (
        EmbeddedKafka(folder, config=CONFIG, jars=fetch_jars(jars), request_log=True) as broker,
        StreamsRequests(broker.port) as requests,
    ):
        with admin_client(broker.bootstrap) as admin:
            admin.create_topics({"words": {"num_partitions": 4}})
        for group in (*GROUPS, "nowhere"):
            wait_for(partial(requests.is_ready, group), f"the coordinator of {group}")
        answers = _act(requests)
        expired = 3 if version == "4.4" else 2
        wait_for(lambda: broker.log_file.read_text().count(" fenced from ") >= expired, "the last session to end")
        log = RequestLog()
        lines = [log.read(line, at) for at, line in enumerate(broker.request_log.read_bytes().splitlines())]
        read = []
        for answered in (line for line in lines if line is not None and line.request["memberId"] != "nobody"):
            event = event_of(answered._replace(answer=answered.answer | {"errorCode": 0}))
            assert isinstance(event, GroupHeartbeat)
            fields = msgspec.to_builtins(event)
            read.append({**fields, "t_ms": answered.arrived_ms, "error": error_of(answered)})
        # Each was sent after the answer to the one before, so none arrived later than the next one seems to have.
        for earlier, later in reversed(list(pairwise(read))):
            earlier["t_ms"] = min(earlier["t_ms"], later["t_ms"])
        truth = _truth(broker.log_file)
        yield Recorded(version, answers, read, truth, truth[-1][0] + 100)


def _replayed(run: Recorded, *, answers: bool) -> list[tuple[int, str]]:
    """Replay the requests, with the broker's answers or without them; return when and what the rules decided."""
    config = CoordinatorConfig(
        group_streams_session_timeout_ms=SESSION_MS,
        group_streams_initial_rebalance_delay_ms=0,
        group_streams_max_size=2,
        kafka_version=run.version,
    )
    replay = LogReplay(config)
    for each in run.requests:
        known = each if answers else {name: value for name, value in each.items() if name not in _ANSWER}
        if answers and each["error"] != "NONE":
            known = {name: value for name, value in each.items() if name not in _ANSWER} | {"error": each["error"]}
        replay.feed(json.dumps(known).encode())
    verdicts = [verdict for verdict in replay.finish(run.end_ms) if verdict.kind in _LOGGED]
    return [(verdict.time_ms, _words(verdict)) for verdict in verdicts]


_ANSWER: Final = frozenset({"error", "answer_member_id", "answer_member_epoch", "assignment"})


def _words(verdict: Verdict) -> str:
    if verdict.kind is not Kind.MEMBER_EXPIRED:
        return verdict.reason.removesuffix(".")
    who = f"[GroupId {verdict.group_id}] Streams member {verdict.member_id}"
    return f"{who} fenced from the group because {verdict.reason}"


def _differ(truth: list[tuple[int, str]], found: list[tuple[int, str]]) -> list[tuple[Any, ...]]:
    """Compare group by group, as lines of one millisecond have no order across groups."""
    wrong: list[tuple[Any, ...]] = []
    for group in GROUPS:
        of_kafka = [each for each in truth if each[1].startswith(f"[GroupId {group}]")]
        of_rules = [each for each in found if each[1].startswith(f"[GroupId {group}]")]
        for at in range(max(len(of_kafka), len(of_rules))):
            one, two = of_kafka[at : at + 1], of_rules[at : at + 1]
            is_same = one and two and one[0][1].startswith(two[0][1]) and -EARLY_MS <= one[0][0] - two[0][0] <= LATE_MS
            wrong += [] if is_same else [(group, *one, *two)]
    return wrong


@pytest.mark.parametrize("answers", [True, False], ids=["answered", "unanswered"])
def test_rules_decide_what_the_broker_decided(run: Recorded, *, answers: bool) -> None:
    """The same lines in the same order, about when the request came or the deadline was, and nothing else."""
    assert len(run.truth) >= 15
    assert _differ(run.truth, _replayed(run, answers=answers)) == []


def test_versions_differ_in_what_they_refuse(run: Recorded) -> None:
    """INVALID_REQUEST (42), GROUP_MAX_SIZE_REACHED (81), FENCED_INSTANCE_ID (82), UNRELEASED_INSTANCE_ID (111)."""
    both = {"join": "2", "join again": "2", "join as one too many": "81", "beat in no group": "69", "leave": "-1"}
    assert both.items() <= run.answers.items()
    static = {"join as static": "2", "join where the instance id is held": "111", "beat under the old id": "82"}
    wanted = static if run.version == "4.4" else dict.fromkeys(static, "42")
    wanted["join a full group again"] = "2" if run.version == "4.4" else "81"
    assert wanted.items() <= run.answers.items()
