"""The checks of `heartwheel doctor` that ask the broker: its topics and its clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from heartwheel.front.cli.assumption_checks import rate_acks, rate_skew, shortest_session_ms
from heartwheel.front.cli.checks import DoctorCheck, Status, asked, failed
from heartwheel.front.cli.growth_check import check_growth
from heartwheel.front.cli.tap_checks import REQUEST_LOG, check_request_logs
from heartwheel.front.cli.topic_specs import topic_specs
from heartwheel.front.cli.version_check import KAFKA_VERSION, check_kafka_version
from heartwheel.settings import Settings

if TYPE_CHECKING:
    from heartwheel.kafka.topics import Difference, TopicsReport, TopicState
    from heartwheel.wire.job import SilentPartition, TickerState


_OF_TOPICS: Final = ("append times", "durability", "acks", "growth", "ticks", "broker clocks", "clock")
_OF_BROKER: Final = ("topics", *_OF_TOPICS, KAFKA_VERSION, REQUEST_LOG)


def check_broker(settings: Settings) -> Iterator[DoctorCheck]:
    """Check whether the broker answers, its topics, its clock, its version and its request log.

    A broker that does not answer is asked once: each further check would wait as long for it.
    """
    from heartwheel.kafka.client import WATCHED_TIMEOUT_MS, KafkaRefusedError, KafkaUnreachableError
    from heartwheel.kafka.topics import ensure_topics

    bootstrap, properties = settings.kafka.bootstrap_servers, settings.kafka.client
    try:
        report = ensure_topics(
            bootstrap,
            topic_specs(settings),
            create=False,
            properties=properties,
            connect_timeout_ms=WATCHED_TIMEOUT_MS,
        )
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        yield failed("broker", error)
        yield from (DoctorCheck(name, Status.SKIPPED, "needs the broker") for name in _OF_BROKER)
        return
    yield DoctorCheck("broker", Status.OK, f"{bootstrap} answers")
    yield from _check_topics(settings, report)
    yield check_kafka_version(settings)
    yield check_request_logs(settings)


def _check_topics(settings: Settings, report: TopicsReport) -> Iterator[DoctorCheck]:
    wrong = [f"{d.topic}: {d.setting} is {d.found or 'not set'}, must be {d.wanted}" for d in report.differences]
    if wrong:
        yield DoctorCheck(
            "topics", Status.BAD, "; ".join(wrong), "change them with kafka-configs, or name other topics"
        )
    elif report.missing:
        yield DoctorCheck("topics", Status.BAD, f"missing: {', '.join(report.missing)}", "heartwheel topics --create")
    else:
        yield DoctorCheck("topics", Status.OK, "all there, with broker append times")
    if report.advice:
        yield DoctorCheck(
            "compression",
            Status.WARN,
            "; ".join(map(unbounded, report.advice)),
            "; ".join(map(bound_it, report.advice)),
        )
    elif not report.missing:
        yield DoctorCheck("compression", Status.OK, "the broker bounds what a compressed batch unpacks to")
    if wrong or report.missing:
        yield from (DoctorCheck(name, Status.SKIPPED, "needs the topics") for name in _OF_TOPICS)
    else:
        yield asked("append times", lambda: _check_times(settings))
        yield from _check_durability(settings)
        yield asked("growth", lambda: check_growth(settings, settings.kafka.topics.heartbeats))
        yield from _check_ticks(settings)
        yield asked("clock", lambda: _check_clock(settings))


def unbounded(found: Difference) -> str:
    """Return what the compression settings of a topic allow."""
    return f"{found.topic}: {found.setting} is {found.found or 'not set'}, so a few KiB of it can unpack to gigabytes"


def bound_it(found: Difference) -> str:
    """Return the command that makes the broker check the decompressed size of batches."""
    return (
        f"kafka-configs.sh --alter --entity-type topics --entity-name {found.topic} "
        f"--add-config {found.setting}={found.wanted}"
    )


def _check_times(settings: Settings) -> DoctorCheck:
    """Check the first and the last record of each partition: a new checkpoint reads the first, the job the last."""
    from heartwheel.kafka.ends import find_untimed

    kafka, name = settings.kafka, "append times"
    found = find_untimed(kafka.bootstrap_servers, kafka.topics.heartbeats, properties=kafka.client)
    hint = "docs/troubleshooting.md#wrong-timestamp-type"
    if found.end:
        where = f"the newest record of partition {_named(found.end)} carries its producer's time"
        return DoctorCheck(name, Status.WARN, f"{where}: no time passes by it", hint)
    if found.begin:
        where = f"the first record of partition {_named(found.begin)} carries its producer's time"
        return DoctorCheck(
            name, Status.WARN, f"{where}: a new checkpoint must start with kafka.starting_offsets=latest", hint
        )
    return DoctorCheck(name, Status.OK, "the first and the last record of each partition have the broker's time")


def _named(partitions: tuple[int, ...]) -> str:
    more = f" and {len(partitions) - _NAMED_MAX} more" if len(partitions) > _NAMED_MAX else ""
    return ", ".join(map(str, partitions[:_NAMED_MAX])) + more


def _check_durability(settings: Settings) -> Iterator[DoctorCheck]:
    from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
    from heartwheel.kafka.topics import describe_topics

    kafka = settings.kafka
    topic = kafka.topics.heartbeats
    try:
        state = describe_topics(kafka.bootstrap_servers, [topic], properties=kafka.client)[topic]
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        yield failed("durability", error)
        yield DoctorCheck("acks", Status.SKIPPED, "needs the topic's settings")
        return
    yield rate_durability(state)
    yield rate_acks(state)


def rate_durability(state: TopicState) -> DoctorCheck:
    """Rate the settings that let a cluster lose acknowledged heartbeats: each may expire a member.

    Args:
        state: the cluster's description of the heartbeat topic.
    """
    from heartwheel.engine.runtime.driver.topic_guard import problems_of

    topic = state.name
    faults = [f"{each.setting} is {each.found}, should be {each.wanted}" for each in problems_of(state)]
    replicas, least = state.replication_factor, state.settings.get("min.insync.replicas", "1")
    if state.settings.get("unclean.leader.election.enable") == "true":
        faults.append("unclean.leader.election.enable is true: records that were read may be replaced by others")
    if replicas < _REPLICAS_MIN:
        faults.append(f"replication factor {replicas}: a broker that is lost takes its heartbeats with it")
    elif least.isdecimal() and not 1 < int(least) < replicas:
        at_most = "is lost with one broker" if int(least) <= 1 else "cannot be written while one broker is away"
        faults.append(f"min.insync.replicas is {least} of {replicas}: a heartbeat {at_most}")
    if faults:
        hint = "replication factor 3, min.insync.replicas=2, unclean.leader.election.enable=false"
        return DoctorCheck("durability", Status.WARN, f"{topic}: {'; '.join(faults)}", hint)
    return DoctorCheck("durability", Status.OK, f"{replicas} replicas, {least} in sync for each acknowledged heartbeat")


def _check_ticks(settings: Settings) -> Iterator[DoctorCheck]:
    """Write ticks for a moment, as the job will: they make time pass in quiet partitions."""
    from heartwheel.engine.runtime.driver.ticker import LAGS_MS, THROTTLED, Ticker

    kafka = settings.kafka
    with Ticker(
        kafka.bootstrap_servers,
        kafka.topics.heartbeats,
        run="",
        interval_ms=settings.engine.tick_interval_ms,
        properties=kafka.client,
    ) as ticker:
        give_up_s = time.monotonic() + _TICKS_S_MAX
        while (late := ticker.without_tick()) or not ticker.state().partitions:
            if time.monotonic() >= give_up_s:
                break
            time.sleep(0.05)
        state, throttled_ms = ticker.state(), ticker.throttled_ms()
    topic = kafka.topics.heartbeats
    if throttled_ms > LAGS_MS:
        yield DoctorCheck("ticks", Status.BAD, f"ticks come late: {THROTTLED}", _hint(THROTTLED, topic))
    elif state.partitions and not late:
        yield DoctorCheck("ticks", Status.OK, f"the job may write to {topic}")
    else:
        yield _no_ticks(state, late, topic)
    yield rate_skew(state.skew_ms, shortest_session_ms(settings))


def _no_ticks(state: TickerState, late: list[SilentPartition], topic: str) -> DoctorCheck:
    reason, where = state.reason or "no answer in time", "no tick could be written"
    if late:
        reason, where = late[0].reason, f"no tick could be written to partition {late[0].partition}"
    if len(late) > 1:
        where += f" and {len(late) - 1} more"
    return DoctorCheck("ticks", Status.BAD, f"{where}: {reason}", _hint(reason, topic))


def _hint(reason: str, topic: str) -> str:
    """Return what lets ticks through; without them no member in a quiet partition is expired."""
    if "ACL" in reason:
        return f"give the job's user Write on {topic}: without ticks no member in a quiet partition expires"
    if "quota" in reason:
        return "raise producer_byte_rate of the job's user: a tick takes 120 bytes a partition and interval"
    return f"look at the partition's leader: kafka-topics.sh --describe --topic {topic}"


def _check_clock(settings: Settings) -> DoctorCheck:
    from heartwheel.kafka.clock import broker_clock_offset_ms

    kafka = settings.kafka
    measured = broker_clock_offset_ms(kafka.bootstrap_servers, kafka.topics.status, properties=kafka.client)
    return rate_clock(measured.offset_ms, measured.error_ms)


_TICKS_S_MAX: Final = 5.0
_NAMED_MAX: Final = 5
_REPLICAS_MIN: Final = 2

CLOCK_OFF_MS: Final = 2_000
"""A difference of the clocks that is visible in figures: latenesses, and how far the log is behind."""


def rate_clock(offset_ms: float, error_ms: float) -> DoctorCheck:
    """Rate the difference of the clocks; no verdict depends on it.

    Args:
        offset_ms: how far the broker's clock is ahead of ours, ms.
        error_ms: how far that may be wrong either way, ms.
    """
    word = "behind" if offset_ms < 0 else "ahead of"
    detail = f"the broker is {abs(offset_ms):.1f} ms {word} this machine (within {error_ms:.1f} ms)"
    if abs(offset_ms) - error_ms > CLOCK_OFF_MS:
        hint = "synchronise the clocks; verdicts stay right, but latenesses are shown wrong"
        return DoctorCheck("clock", Status.WARN, detail, hint)
    return DoctorCheck("clock", Status.OK, detail)
