"""A consumer's own log is read where it holds the answer; any other file is named as what it is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from heartwheel.front.cli.app import run
from heartwheel.settings import Settings
from heartwheel.settings.servers import DashboardSettings
from heartwheel.sources.explain.lines import what
from heartwheel.sources.explain.page import LogPage
from heartwheel.wire.explained import REASON_OF, ExplainedEvent, Happened
from support.scripted_log import START_MS, lines_of, member, read, stable, stamp

CONTEXT = "[Consumer clientId=orders-2, groupId=orders]"
LOGGER = "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
ME = member("orders-2")
SLOW = (
    "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the "
    "configured max.poll.interval.ms, which typically implies that the poll loop is spending too much time processing "
    "messages."
)


def java(*lines: tuple[float, str], context: str = CONTEXT) -> str:
    """Write a Java consumer's log."""
    return "".join(f"[{stamp(second)}] WARN {context} {text} {LOGGER}\n" for second, text in lines)


POLL = java(
    (0, f"Successfully joined group with generation Generation{{generationId=4, memberId='{ME}', protocol='range'}}"),
    (0.1, f"Successfully synced group in generation Generation{{generationId=4, memberId='{ME}', protocol='range'}}"),
    (300, SLOW),
    (300.002, f"Member {ME} sending LeaveGroup request to coordinator kafka-2:9092 (id: 2147483645 rack: null) due to consumer poll timeout has expired."),
    (300.003, "Resetting generation and member id due to: consumer pro-actively leaving the group"),
    (300.003, "Request joining group due to: consumer pro-actively leaving the group"),
    (412, f"Successfully joined group with generation Generation{{generationId=6, memberId='{member('orders-2', 2)}', protocol='range'}}"),
)  # fmt: skip


def _explained(folder: Path, text: str) -> list[ExplainedEvent]:
    return [event for event in read(folder, text)[1] if event.kind is not Happened.REBALANCE]


def test_a_poll_timeout_of_a_java_client(tmp_path: Path) -> None:
    """Its warning and its LeaveGroup are one event; when it joined again, it was back."""
    (event,) = _explained(tmp_path, POLL)
    assert (event.kind, event.group_id, event.client_id, event.member_id) == ("poll_timeout", "orders", "orders-2", ME)
    assert (event.time_ms, event.certainty, event.generation_id) == (START_MS + 300_000, "certain", 4)
    assert (event.returned_ms, event.returned_as) == (START_MS + 412_000, member("orders-2", 2))
    assert event.evidence.line == 3
    assert "max.poll.interval.ms" in " ".join(event.explanation)


def test_a_rebalance_as_a_client_sees_it(tmp_path: Path) -> None:
    """From the first heartbeat that was refused until it had its assignment."""
    text = java(
        (0, "Attempt to heartbeat failed since group is rebalancing"),
        (0, "Request joining group due to: group is already rebalancing"),
        (0.01, "(Re-)joining group"),
        (2, f"Successfully joined group with generation Generation{{generationId=5, memberId='{ME}', protocol='range'}}"),
        (2.2, f"Successfully synced group in generation Generation{{generationId=5, memberId='{ME}', protocol='range'}}"),
    )  # fmt: skip
    (event,) = read(tmp_path, text)[1]
    assert (event.kind, event.generation_id, event.duration_ms) == (Happened.REBALANCE, 5, 2_000)


@pytest.mark.parametrize(
    ("text", "kind", "reason", "words"),
    [
        ("Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response", "removed", "not_a_member", "UNKNOWN_MEMBER_ID"),
        ("Resetting generation due to: encountered ILLEGAL_GENERATION from SYNC_GROUP response", "removed", "other_generation", "ILLEGAL_GENERATION"),
        ("ConsumerGroupHeartbeatRequest failed because member Yk3yQq0TSVuRW1yU3oCQeg is unknown.", "removed", "not_a_member", "is unknown"),
        ("ConsumerGroupHeartbeatRequest failed for member Yk3yQq0TSVuRW1yU3oCQeg because epoch 7 is fenced.", "removed", "other_generation", "epoch 7 is fenced"),
        ("Group coordinator kafka-2:9092 (id: 2147483645 rack: null) is unavailable or invalid due to cause: session timed out without receiving a heartbeat response. isDisconnected: false. Rediscovery will be attempted.", "no_answer", "no_answer", "session timed out"),
        (f"Member {ME} sending LeaveGroup request to coordinator k:9092 (id: 2147483645 rack: null) due to the consumer is being closed", "left", "closed", "the consumer is being closed"),
        (f"Member {ME} sending LeaveGroup request to coordinator k:9092 (id: 2147483645 rack: null)", "left", "left", ""),
    ],
)  # fmt: skip
def test_what_else_java_clients_say(tmp_path: Path, text: str, kind: str, reason: str, words: str) -> None:
    """Thrown out, without answers, or gone by itself; the logger behind the text is none of its words."""
    (event,) = _explained(tmp_path, java((0, text)))
    assert (event.kind, event.reason, event.group_id) == (kind, reason, "orders")
    assert words in event.reason_text
    assert "org.apache" not in event.reason_text


def test_how_much_too_late_a_poll_was(tmp_path: Path) -> None:
    """Clients of the newer protocol say it when they poll again."""
    late = f"Time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, exceeded approximately by 4200 ms. Member {ME} will rejoin the group now."  # fmt: skip
    (event,) = _explained(tmp_path, java((0, f"C{SLOW[1:]}"), (4.2, late)))
    assert (event.kind, event.late_ms, event.member_id) == ("poll_timeout", 4_200, ME)


@pytest.mark.parametrize(
    ("text", "kind", "limit_ms"),
    [
        ("%4|1795313510.138|MAXPOLL|rdkafka#consumer-1| [thrd:main]: Application maximum poll interval (300000ms) exceeded by 85ms (adjust max.poll.interval.ms for long-running message processing): leaving group", "poll_timeout", 300_000),
        ("%4|1795313510.138|SESSTMOUT|rdkafka#consumer-1| [thrd:main]: Consumer group session timed out (in join-state steady) after 45267 ms without a successful response from the group coordinator (broker 2, last error was Success): revoking assignment and rejoining group", "no_answer", None),
        ("%4|1795313510.138|HEARTBEAT|rdkafka#consumer-1| [thrd:main]: ConsumerGroupHeartbeat failed due to: Broker: Unknown member: will rejoin the group", "removed", None),
    ],
)  # fmt: skip
def test_librdkafka(tmp_path: Path, text: str, kind: str, limit_ms: int | None) -> None:
    """Its lines name the client and no group."""
    (event,) = _explained(tmp_path, text + "\n")
    assert (event.kind, event.group_id, event.client_id) == (kind, "", "rdkafka#consumer-1")
    assert (event.time_ms, event.rebalance_timeout_ms) == (1_795_313_510_138, limit_ms)


def test_kafka_python(tmp_path: Path) -> None:
    """The line about leaving names the group for the one about the poll before it."""
    warned = f"{stamp(0)} WARNING kafka.coordinator.heartbeat {f'C{SLOW[1:]}'}"
    leaving = f"{stamp(0.1)} INFO kafka.coordinator Leaving consumer group orders (member kafka-python-3.0.12-{ME})."
    (event,) = _explained(tmp_path, f"{warned}\n{leaving}\n")
    assert (event.kind, event.group_id, event.member_id) == ("poll_timeout", "orders", f"kafka-python-3.0.12-{ME}")


def python(*lines: tuple[float, str]) -> str:
    """Write the log of consumers of kafka-python."""
    return "".join(f"{stamp(second)} WARNING kafka.coordinator {text}\n" for second, text in lines)


POLL_EXPIRED = "Heartbeat poll expired, leaving group"


@pytest.mark.parametrize(
    ("joined", "left", "member_id"),
    [
        ("Successfully joined group orders with generation {}", "Leaving consumer group (orders).", None),
        (f"Successfully joined group orders <Generation {{}} (member_id: {ME}, protocol: range)>", "Leaving consumer group (orders).", ME),
        (f"Successfully joined group orders <Generation {{}} (member_id: {ME}, protocol: range)>", f"Leaving consumer group orders (member {ME}).", ME),
    ],
)  # fmt: skip
def test_a_poll_timeout_of_older_kafka_python(tmp_path: Path, joined: str, left: str, member_id: str | None) -> None:
    """2.0 to 2.2.5, to 2.2.20 and 2.3 join and leave in other words; the warning of the oldest is about a poll, too."""
    warned = POLL_EXPIRED if member_id is None else f"C{SLOW[1:]}"
    text = python((0, joined.format(4)), (300, warned), (300.01, left), (412, joined.format(6)))
    (event,) = _explained(tmp_path, text)
    assert (event.kind, event.group_id, event.member_id) == ("poll_timeout", "orders", member_id)
    assert (event.time_ms, event.generation_id, event.returned_ms) == (START_MS + 300_000, 4, START_MS + 412_000)
    assert event.evidence.line == 2


@pytest.mark.parametrize(
    "text", ["Heartbeat failed for group orders because it is rebalancing", "Group orders is rebalancing; rejoining."]
)
def test_a_rebalance_as_kafka_python_sees_it(tmp_path: Path, text: str) -> None:
    """2.x and 3.0 say it in other words."""
    joined = f"Successfully joined group orders <Generation 5 (member_id: {ME}, protocol: range)>"
    (event,) = read(tmp_path, python((0, text), (2, joined)))[1]
    assert (event.kind, event.group_id, event.duration_ms) == (Happened.REBALANCE, "orders", 2_000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (python((0, "Heartbeat failed for group orders: generation id is not  current.")), "other_generation"),
        (python((0, "Heartbeat failed for group orders due to fenced id error: pod-1")), "instance_taken"),
        (java((0, "Resetting generation due to: encountered FENCED_INSTANCE_ID from HEARTBEAT response")), "instance_taken"),
    ],
)  # fmt: skip
def test_a_consumer_that_the_coordinator_knows(tmp_path: Path, text: str, reason: str) -> None:
    """In another generation, or under an instance id that another process has: it is not said to be unknown."""
    (event,) = _explained(tmp_path, text)
    assert (event.kind, event.group_id, event.reason) == ("removed", "orders", reason)
    assert not [words for words in event.explanation if "no longer knew" in words]
    assert event.advice == event.explanation[-1]
    assert "unknown" not in what(event)


def test_the_only_group_of_a_log(tmp_path: Path) -> None:
    """A line that names no group is about the only one that its log names, also behind that line; of two, it is open."""
    unknown = "Heartbeat: local member_id was not recognized; this consumer needs to re-join"
    joined = "Successfully joined group {} with generation 4"
    text = python((0, unknown), (9, joined.format("orders")))
    (event,) = _explained(tmp_path, text)
    assert (event.group_id, event.returned_ms) == ("orders", START_MS + 9_000)
    (event,) = _explained(tmp_path, text + python((10, joined.format("billing"))))
    assert event.group_id == ""


def test_two_groups_in_one_log(tmp_path: Path) -> None:
    """The line about leaving names the group of the poll before it, whoever else joined."""
    joined = "Successfully joined group {} with generation {}"
    text = python(
        (0, joined.format("orders", 4)),
        (1, joined.format("billing", 9)),
        (300, POLL_EXPIRED),
        (300.01, "Leaving consumer group (billing)."),
        (310, joined.format("billing", 11)),
    )
    (event,) = _explained(tmp_path, text)
    assert (event.kind, event.group_id, event.returned_ms) == ("poll_timeout", "billing", START_MS + 310_000)


def test_a_sentence_without_a_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where no line names the member, its verdict names nobody, and has no gap in a name's place."""
    (tmp_path / "app.log").write_text(python((0, POLL_EXPIRED), (600, POLL_EXPIRED)))
    assert run(["explain", str(tmp_path / "app.log")]) == 0
    verdict = capsys.readouterr().out.splitlines()[-1]
    assert "Twice a member took itself out by a poll timeout. " in verdict
    assert "  " not in verdict
    (tmp_path / "app.log").write_text(python((0, POLL_EXPIRED)))
    assert run(["explain", str(tmp_path / "app.log")]) == 0
    assert "Once a member took itself out by a poll timeout. " in capsys.readouterr().out


def test_a_brokers_log_is_no_clients(tmp_path: Path) -> None:
    """The broker's line quotes the client's words; and beside a broker's log a client's is read, too."""
    quoted = f"Member MemberMetadata(memberId={ME}, groupInstanceId=None, clientId=orders-2, clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group orders through explicit `LeaveGroup`; client reason: consumer poll timeout has expired."  # fmt: skip
    broker = lines_of((299, stable(4, "orders")), (300.005, quoted))
    _, events, scanned = read(tmp_path, broker, POLL)
    assert [event.kind for event in events] == ["rebalance", "poll_timeout", "rebalance"]
    assert [event.evidence.file[-5] for event in events] == ["1", "1", "2"]
    assert scanned.others == {str(tmp_path / "broker-2.log"): "consumer"}


def test_a_removal_is_on_the_page(tmp_path: Path) -> None:
    """Who heard only from UNKNOWN_MEMBER_ID that it was out is a row, with a reason and a place in its own log."""
    text = java((5, "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"))
    names, events, scanned = read(tmp_path, text)
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as page:
        page.take(events, scanned)
        (row,) = httpx.get(f"{page.url}api/expirations").json()["rows"]
        only = httpx.get(f"{page.url}api/expirations", params={"reason": "not_a_member"}).json()
        sentence = httpx.get(f"{page.url}api/now").json()["health"]["sentence"]
    assert (row["group_id"], row["client_id"], row["reason"]) == ("orders", "orders-2", "not_a_member")
    assert row["member_id"] == "orders-2"  # this log does not name its id
    assert row["evidence"] == f"{names[0]}:1"
    assert "UNKNOWN_MEMBER_ID" in row["explanation"][0]
    assert not [words for words in row["explanation"] if "broker's log says so" in words]
    assert only["matched"] == 1
    assert sentence.startswith(f"From a consumer's own log: {names[0]}")
    assert "1 of 1 line is about groups" in sentence


NOT_ANSWERED = java(
    (0, f"Successfully joined group with generation Generation{{generationId=4, memberId='{ME}', protocol='range'}}"),
    (60, "Group coordinator kafka-2:9092 (id: 2147483645 rack: null) is unavailable or invalid due to cause: session timed out without receiving a heartbeat response. isDisconnected: false. Rediscovery will be attempted."),
)  # fmt: skip


def test_a_membership_ends_once(tmp_path: Path) -> None:
    """Without answers for its session and then unknown to the coordinator: one removal, and one more after it is back."""
    unknown = "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"
    log = NOT_ANSWERED + java((72, unknown))
    (event,) = _explained(tmp_path, log)
    assert event.kind == "removed"
    assert 'UNKNOWN_MEMBER_ID from HEARTBEAT response, 12.0 s after "session timed out' in event.explanation[0]
    back = java(
        (
            72,
            f"Successfully joined group with generation Generation{{generationId=5, memberId='{ME}', protocol='range'}}",
        ),
        (90, unknown),
    )
    kinds = [each.kind for each in _explained(tmp_path, NOT_ANSWERED + back)]
    assert kinds == ["no_answer", "removed"]


def test_the_page_claims_no_more_than_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A consumer without answers was likely removed: no expiry that nobody saw, with what to do, on page and terminal."""
    names, events, scanned = read(tmp_path, NOT_ANSWERED)
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as page:
        page.take(events, scanned)
        (row,) = httpx.get(f"{page.url}api/expirations").json()["rows"]
        group = httpx.get(f"{page.url}api/groups/orders").json()
    assert run(["explain", *names]) == 0
    out = capsys.readouterr().out
    assert row["reason"] == "no_answer"
    assert "If the broker's log says that it expired: raise session.timeout.ms." in row["advice"]
    assert row["advice"] in out
    said = "Once a member got no answer to its heartbeats for its session timeout, and was likely thrown out: orders-2."
    assert said in group["verdict"]
    assert said in out
    assert group["timeline"][0]["text"].endswith("and was likely removed")
    assert run(["explain", *names, "--only", "out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certainty"] == "likely"


def test_the_state_of_a_group_that_only_consumers_tell_of(tmp_path: Path) -> None:
    """That one consumer joined does not make its group stable; where the broker's log says so, it is."""
    assert _state(tmp_path, NOT_ANSWERED) == ("Unknown", None)
    removed = "Resetting generation and member id due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"
    assert _state(tmp_path, java((0, removed))) == ("Unknown", None)
    assert _state(tmp_path, lines_of((9, stable(4, "orders", 2)))) == ("Stable", 2)


def _state(folder: Path, log: str) -> tuple[str, int | None]:
    """Return the state of group orders and its size on the page of a log; what its state means names the log."""
    names, events, scanned = read(folder, log)
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as page:
        page.take(events, scanned)
        group = httpx.get(f"{page.url}api/groups/orders").json()
    assert ("own log" in group["state_words"]) == (group["state"] == "Unknown")
    return group["state"], group["members"]


def test_a_consumer_does_not_know_how_many_members_there_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What it says behind the broker's log leaves the size of the group as the broker had it."""
    names, _, _ = read(tmp_path, lines_of((0, stable(4, "orders", 3))), POLL)
    assert run(["explain", *names, "--summary"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["orders", "3"]


def test_each_removal_has_a_name_on_the_page() -> None:
    """Whatever ends a membership is a row of page Expired, under a reason that the page and its documentation name."""
    root = Path(__file__).parents[2]
    words = (root / "streaming/heartwheel/readers/dashboard/page/js/words.js").read_text()
    table = (root / "docs/dashboard.md").read_text()
    for reason in REASON_OF.values():
        assert f"  {reason}: {{" in words
        label = re.search(rf'  {reason}: {{\s*label: "([^"]+)"', words)
        assert label is not None
        assert f"| {label[1]} |" in table


def test_a_person_reads_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Who, when and why from the consumer's log; and a script is told that a member was out."""
    (tmp_path / "app.log").write_text(POLL)
    assert run(["explain", str(tmp_path / "app.log")]) == 0
    out, err = capsys.readouterr()
    assert "took itself out: poll timeout" in out
    assert "a consumer's own log" in err
    assert run(["explain", str(tmp_path / "app.log"), "--group", "nosuch"]) == 1
    (tmp_path / "app.log").write_text(
        java((0, "Resetting generation due to: encountered UNKNOWN_MEMBER_ID from HEARTBEAT response"))
    )
    capsys.readouterr()
    assert run(["explain", str(tmp_path / "app.log"), "--json", "--fail-on-expired"]) == 1
    row: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert row["kind"] == "removed"
