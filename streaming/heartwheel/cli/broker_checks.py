"""The checks of `heartwheel doctor` that ask the broker: its topics and its clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from heartwheel.cli.checks import Check, Status, failed
from heartwheel.cli.topics import topic_specs
from heartwheel.settings import Settings

if TYPE_CHECKING:
    from heartwheel.kafka.topics import Difference


def check_broker(settings: Settings) -> Iterator[Check]:
    """Look whether the broker answers, what its topics are like, and how far its clock is off."""
    from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
    from heartwheel.kafka.topics import ensure_topics

    bootstrap, properties = settings.kafka.bootstrap_servers, settings.kafka.client
    try:
        report = ensure_topics(bootstrap, topic_specs(settings), create=False, properties=properties)
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        yield failed("broker", error)
        yield from (Check(name, Status.SKIPPED, "needs the broker") for name in ("topics", "ticks", "clock"))
        return
    yield Check("broker", Status.OK, f"{bootstrap} answers")
    wrong = [f"{d.topic}: {d.setting} is {d.found or 'not set'}, must be {d.wanted}" for d in report.differences]
    if wrong:
        yield Check("topics", Status.BAD, "; ".join(wrong), "change them with kafka-configs, or name other topics")
    elif report.missing:
        yield Check("topics", Status.BAD, f"missing: {', '.join(report.missing)}", "heartwheel topics --create")
    else:
        yield Check("topics", Status.OK, "all there, with broker append times")
    if report.advice:
        yield Check(
            "compression",
            Status.WARN,
            "; ".join(map(unbounded, report.advice)),
            "; ".join(map(bound_it, report.advice)),
        )
    elif not report.missing:
        yield Check("compression", Status.OK, "the broker bounds what a compressed batch unpacks to")
    if wrong or report.missing:
        yield from (Check(name, Status.SKIPPED, "needs the topics") for name in ("ticks", "clock"))
    else:
        yield _check_ticks(settings)
        yield _check_clock(settings)


def unbounded(found: Difference) -> str:
    """Return what the compression of a topic lets in."""
    return f"{found.topic}: {found.setting} is {found.found or 'not set'}, so a few KiB of it can unpack to gigabytes"


def bound_it(found: Difference) -> str:
    """Return the command that lets the broker look at what a batch unpacks to."""
    return (
        f"kafka-configs.sh --alter --entity-type topics --entity-name {found.topic} "
        f"--add-config {found.setting}={found.wanted}"
    )


def _check_ticks(settings: Settings) -> Check:
    """Write ticks for a moment, as the job will: they carry the time of quiet partitions."""
    from heartwheel.spark.ticker import LAGS_MS, THROTTLED, Ticker

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
        return Check("ticks", Status.BAD, f"ticks come late: {THROTTLED}", _hint(THROTTLED, topic))
    if state.partitions and not late:
        return Check("ticks", Status.OK, f"the job may write to {topic}, which takes its time from it")
    reason, where = state.reason or "no answer in time", "no tick could be written"
    if late:
        reason, where = late[0].reason, f"no tick could be written to partition {late[0].partition}"
    if len(late) > 1:
        where += f" and {len(late) - 1} more"
    return Check("ticks", Status.BAD, f"{where}: {reason}", _hint(reason, topic))


def _hint(reason: str, topic: str) -> str:
    """Say what lets ticks through; without them nobody in a quiet partition is expired."""
    if "ACL" in reason:
        return f"give the job's user Write on {topic}: without ticks nobody in a quiet partition is expired"
    if "quota" in reason:
        return "raise producer_byte_rate of the job's user: a tick takes 120 bytes a partition and interval"
    return f"look at the partition's leader: kafka-topics.sh --describe --topic {topic}"


def _check_clock(settings: Settings) -> Check:
    from heartwheel.kafka.client import KafkaRefusedError, KafkaUnreachableError
    from heartwheel.kafka.clock import broker_clock_offset_ms

    kafka = settings.kafka
    try:
        measured = broker_clock_offset_ms(kafka.bootstrap_servers, kafka.topics.status, properties=kafka.client)
    except (KafkaUnreachableError, KafkaRefusedError) as error:
        return failed("clock", error)
    return rate_clock(measured.offset_ms, measured.error_ms)


_TICKS_S_MAX: Final = 5.0

CLOCK_OFF_MS: Final = 2_000
"""A difference of the clocks that figures show: latenesses, and how far the log is behind."""


def rate_clock(offset_ms: float, error_ms: float) -> Check:
    """Rate the difference of the clocks; no verdict depends on it.

    Args:
        offset_ms: how far the broker's clock is ahead of ours, ms.
        error_ms: how far that may be wrong either way, ms.
    """
    word = "behind" if offset_ms < 0 else "ahead of"
    detail = f"the broker is {abs(offset_ms):.1f} ms {word} this machine (within {error_ms:.1f} ms)"
    if abs(offset_ms) - error_ms > CLOCK_OFF_MS:
        hint = "synchronise the clocks; verdicts stay right, but latenesses are shown wrong"
        return Check("clock", Status.WARN, detail, hint)
    return Check("clock", Status.OK, detail)
