"""A broker's log and its consumers' own logs, given together: what both tell of is one event."""

from __future__ import annotations

from pathlib import Path

from heartwheel.sources.explain.summary import LogSummary
from heartwheel.sources.explain.verdicts import judged
from heartwheel.wire.explained import ExplainedEvent, Happened
from support.scripted_log import lines_of, member, preparing, read, stable, stamp

ME = member("app-1")
LOGGER = "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)"
JOINED = f"Successfully joined group with generation Generation{{generationId=4, memberId='{ME}', protocol='range'}}"
POLL = f"Member {ME} sending LeaveGroup request to coordinator b:9092 (id: 1 rack: null) due to consumer poll timeout has expired."
LEFT = (
    f"Member MemberMetadata(memberId={ME}, groupInstanceId=None, clientId=app-1, clientHost=/10.0.0.7, "
    "sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group g through "
    "explicit `LeaveGroup`; client reason: {words}"
)
BROKER = lines_of((0, preparing(3, f"Adding new member {ME} with group instance id None")), (3, stable(4)))


def consumer(*lines: tuple[float, str], group: str = "g") -> str:
    """Write a Java consumer's log."""
    context = f"[Consumer clientId=app-1, groupId={group}]"
    return "".join(f"[{stamp(second)}] INFO {context} {text} {LOGGER}\n" for second, text in lines)


def told(folder: Path, *logs: str) -> list[tuple[Happened, str]]:
    """Explain logs: what happened, and by which log."""
    return [(event.kind, Path(event.evidence.file).name) for event in read(folder, *logs)[1]]


def test_a_rebalance_of_both_is_the_brokers(tmp_path: Path) -> None:
    """The broker knows why it began and how long it took; the consumer's clock may be before or behind."""
    for second in (3.004, 2.1, 30):
        assert told(tmp_path, BROKER, consumer((second, JOINED))) == [(Happened.REBALANCE, "broker-1.log")]
        assert told(tmp_path, consumer((second, JOINED)), BROKER) == [(Happened.REBALANCE, "broker-2.log")]
    sums = LogSummary()
    for event in read(tmp_path, BROKER, consumer((3.004, JOINED)))[1]:
        sums.add(event)
    (group,) = judged(sums)
    assert "1 rebalance took 3.0 s." in group.verdict


def test_what_only_one_of_them_tells_stays(tmp_path: Path) -> None:
    """Another generation, another group, and the same number hours later are other rebalances."""
    later = JOINED.replace("generationId=4", "generationId=5")
    for text in (consumer((4, later)), consumer((3, JOINED), group="h"), consumer((9_000, JOINED))):
        assert [name for _, name in told(tmp_path, BROKER, text)] == ["broker-1.log", "broker-2.log"]


def test_a_leave_of_both_is_the_brokers(tmp_path: Path) -> None:
    """Where both give the same reason; where the broker has none, the consumer's own word is shown beside it."""

    def rows(words: str) -> list[ExplainedEvent]:
        return read(tmp_path, lines_of((10, LEFT.format(words=words))), consumer((9.998, JOINED), (9.999, POLL)))[1][1:]

    same = rows("consumer poll timeout has expired.")
    assert [(each.kind, each.broker_id) for each in same] == [(Happened.POLL_TIMEOUT, 1)]
    silent = rows("not provided")
    assert [(each.kind, each.broker_id) for each in silent] == [(Happened.POLL_TIMEOUT, None), (Happened.LEFT, 1)]
