"""`heartwheel audit --broker-log`: what the job wrote, compared with the log of Kafka's own coordinator."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from heartwheel.base.errors import HeartwheelError
from heartwheel.front.cli.console import figures_table, plain_table, print_json, stderr, stdout

if TYPE_CHECKING:
    from heartwheel.proof.audit.match.broker_log import BrokerReport
    from heartwheel.proof.audit.match.pairs import Removal
    from heartwheel.settings import Settings
    from heartwheel.sources.explain.local_zone import LocalZone
    from heartwheel.wire.explained import ExplainedEvent
    from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

T = TypeVar("T")


def audit_broker_log(
    logs: list[str],
    settings: Settings,
    *,
    expirations: Path | None,
    triggers: Path | None,
    zone: LocalZone,
    tolerance_ms: int | None,
    examples: int,
    as_json: bool,
) -> bool:
    """Compare the engine's expirations with a broker's log, and show the result.

    Args:
        logs: of all brokers that may have coordinated the groups; `-` is the standard input.
        settings: where Kafka is and the names of the topics.
        expirations: a file of rows in place of the topic of expirations.
        triggers: a file of rows in place of the topic of triggers.
        zone: the zone of times in the log that name none.
        tolerance_ms: how far apart two times that agree may be, ms; `None` takes it from the settings.
        examples: most rows that are shown of those that agree.
        as_json: whether to print JSON.

    Returns:
        Whether both agree.

    Raises:
        HeartwheelError: a log or a file cannot be read, or has nothing of groups in it; or no time is covered by both.
    """
    from heartwheel.proof.audit.match.broker_log import compare, tolerance_of
    from heartwheel.sources.explain.run import explain_logs
    from heartwheel.sources.explain.scan import Scanned
    from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

    scanned = Scanned()
    events = list(explain_logs(logs, scanned, stdin=sys.stdin.buffer, zone=zone))
    if scanned.first_ms is None or scanned.last_ms is None:
        hint = "give the logs of all brokers; heartwheel explain shows what is in them"
        raise HeartwheelError(f"no line of a group coordinator in {', '.join(logs)}", hint=hint)
    topics = settings.kafka.topics
    expired: list[ExpirationRow] = list(_rows(settings, topics.expirations, expirations, ExpirationRow))
    changed: list[TriggerRow] = list(_rows(settings, topics.triggers, triggers, TriggerRow))
    rows: list[ExpirationRow | TriggerRow] = [*expired, *changed]
    if not rows:
        raise HeartwheelError(
            "nothing to compare: the engine has written no row about any group",
            hint=f"is this the cluster of the job? heartwheel run writes {topics.expirations} and {topics.triggers}",
        )
    begin_ms = min(row.detected_ms for row in rows)
    if begin_ms > scanned.last_ms:
        ends, begins = _clock(scanned.last_ms), _clock(begin_ms)
        raise HeartwheelError(
            f"nothing to compare: the logs end at {ends}, the engine's first row is of {begins}",
            hint="give logs of a longer time; if their times name no zone, --utc-offset says which it is",
        )
    if tolerance_ms is None:
        engine, wheel = settings.engine, settings.wheel
        tolerance_ms = tolerance_of(wheel_tick_ms=wheel.tick_ms, tick_interval_ms=engine.tick_interval_ms)
    report = compare(
        expired,
        logged_removals(events),
        groups={row.group_id for row in rows},
        from_ms=max(scanned.first_ms, begin_ms),
        to_ms=_decided_ms(settings, expirations, scanned.last_ms),
        tolerance_ms=tolerance_ms,
    )
    _show(report, examples=examples, as_json=as_json)
    return report.ok


def logged_removals(events: Iterable[ExplainedEvent]) -> Iterator[Removal]:
    """Return the removals among the events of a coordinator's log."""
    from heartwheel.proof.audit.match.pairs import Removal, same_reasons
    from heartwheel.wire.explained import REASON_OF

    for event in events:
        reason = REASON_OF.get(event.kind)
        if reason is not None:
            yield Removal(
                event.group_id,
                event.member_id or "",
                event.kind,
                event.time_ms,
                agrees_with=same_reasons(reason),
                evidence=f"{event.evidence.file}:{event.evidence.line}",
            )


def _decided_ms(settings: Settings, file: Path | None, end_ms: int) -> int:
    """Return up to when the engine has decided, epoch ms, by the status row of the shard that is furthest behind.

    The result is at most `end_ms`, the end of the logs. Without status rows, or with a file of rows in place of the
    topics, it is that end.
    """
    from heartwheel.wire.status import StatusRow

    rows = [] if file is not None else list(_rows(settings, settings.kafka.topics.status, None, StatusRow))
    newest: dict[int, StatusRow] = {}
    for row in rows:
        if row.shard not in newest or row.batch_ms >= newest[row.shard].batch_ms:
            newest[row.shard] = row
    return min([end_ms, *(row.clock_ms for row in newest.values() if row.clock_ms >= 0)])


def _rows(settings: Settings, topic: str, file: Path | None, kind: type[T]) -> Iterator[T]:
    import msgspec

    for value in _values(settings, topic, file):
        try:
            yield msgspec.json.decode(value, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # the other audit reports values that are no rows of their topic


def _values(settings: Settings, topic: str, file: Path | None) -> Iterable[bytes]:
    if file is None:
        from heartwheel.kafka.readback import read_topic

        records = read_topic(settings.kafka.bootstrap_servers, topic, properties=settings.kafka.client)
        yield from (record.value for record in records if record.value is not None)
        return
    try:
        lines = file.read_bytes().splitlines()
    except OSError as error:
        raise HeartwheelError(f"{file} cannot be read: {error.strerror}", hint="name a file of JSON lines") from error
    yield from (line[line.find(b"{") :] for line in lines if b"{" in line)


def _show(report: BrokerReport, *, examples: int, as_json: bool) -> None:
    from msgspec import to_builtins

    from heartwheel.proof.audit.match.pairs import PairOutcome

    if as_json:
        print_json(to_builtins(report))
        return
    figures = {name.replace("_", " "): number for name, number in report.counts.items()}
    figures["of groups that the engine does not know"] = report.other_groups
    stdout().print(figures_table("compared", figures, justify="right"))
    agree = [row for row in report.rows if row.held is PairOutcome.AGREE][:examples]
    shown = [row for row in report.rows if row.held is not PairOutcome.AGREE] + agree
    if shown:
        stdout().print()
        table = plain_table("", "group", "member", "here", "there", "apart ms", "where")
        for row in shown:
            table.add_row(
                row.held.replace("_", " "),
                row.group_id,
                row.member_id,
                _side(row.here, row.here_ms),
                _side(row.there, row.there_ms),
                "" if row.apart_ms is None else f"{row.apart_ms:+}",
                row.evidence or "",
            )
        stdout().print(table)
    words = f"from {_clock(report.from_ms)} to {_clock(report.to_ms)}, which both cover"
    stderr().print(f"{words}; times within {report.tolerance_ms} ms agree")
    if report.unsettled:
        words = "not compared, because the other side may have them before or after this time"
        stderr().print(f"{report.unsettled} near an end {words}")


def _side(name: str | None, at_ms: int | None) -> str:
    return "" if name is None or at_ms is None else f"{name} {_clock(at_ms)}"


def _clock(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}Z"


def parsed_zone(text: str) -> LocalZone:
    """Return the zone that `--utc-offset` names."""
    from heartwheel.sources.explain.local_zone import parse_zone

    try:
        return parse_zone(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--utc-offset") from None
