"""A real broker's log, in every layout: everything that was done to its clients is found, and nothing is invented."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest

from heartwheel.sources.explain.local_zone import parse_zone
from heartwheel.sources.explain.scan import Scanned
from support.broker_logs import REAL, expectations, explained, judge

_LINE = re.compile(r"^\[(?P<time>[^\]]+)\] (?P<level>[A-Z]+) (?P<message>.*) \((?P<logger>[\w.$]+)\)$")


class Entry:
    """Hold a log entry, to be written in another layout; what follows it without a time stamp belongs to it."""

    def __init__(self, line: str) -> None:
        match = _LINE.match(line)
        self.line, self.timed = line, match is not None
        self.level, self.message, self.logger = (
            (match["level"], match["message"], match["logger"]) if match else ("", line, "")
        )
        time = match["time"] if match else "1970-01-01 00:00:00,000"
        self.at = datetime.strptime(time, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC)

    @property
    def ms(self) -> int:
        """Give the time as epoch ms."""
        return round(self.at.timestamp() * 1000)

    def stamp(self, pattern: str = "%Y-%m-%d %H:%M:%S,", *, hours: int = 0) -> str:
        """Write the time, milliseconds last, in a zone so many hours ahead of UTC."""
        moment = self.at.astimezone(timezone(timedelta(hours=hours)))
        return moment.strftime(pattern) + (f"{moment.microsecond // 1000:03d}" if pattern.endswith((",", ".")) else "")


def _entries() -> Iterator[Entry]:
    last: datetime | None = None
    for line in (REAL / "server.log").read_text().splitlines():
        entry = Entry(line)
        if not entry.timed and last is not None:
            entry.at = last
        last = entry.at
        yield entry


def _iso(entry: Entry) -> str:
    return entry.at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{entry.at.microsecond:06d}123Z"


def _lagging(entry: Entry) -> str:
    """Write the line with the broker's own clock an hour off, which whoever carried it did not believe."""
    return entry.line.replace(entry.stamp(), entry.stamp(hours=1))


LAYOUTS: dict[str, Callable[[Entry], str]] = {
    "stock log4j": lambda e: e.line,
    "level first": lambda e: f"{e.level:<5} {e.stamp()} {e.message} ({e.logger}) [data-plane-kafka-request-handler-3]",
    "log4j ISO8601 with thread last": lambda e: f"{e.stamp()} {e.level}  {e.message} ({e.logger}) [executor-Heartbeat]",
    "class and line number before": lambda e: (
        f"{e.stamp()} {e.level} [group-metadata-manager-0] {e.logger.rpartition('.')[2]}:66 - {e.message}"
    ),
    "log4j DATE": lambda e: f"{e.stamp('%d %b %Y %H:%M:%S,')} [main] {e.level} {e.logger} - {e.message}",
    "log4j2 ISO8601 with T and offset": lambda e: (
        f"{e.stamp('%Y-%m-%dT%H:%M:%S,', hours=2)}+02:00 {e.level} {e.message}"
    ),
    "time last": lambda e: f"{e.level} {e.message} ({e.logger}) {e.stamp()}",
    "date without separators": lambda e: f"{e.stamp('%Y%m%d %H:%M:%S.')} {e.level} {e.message} ({e.logger})",
    "log4j2 COMPACT": lambda e: f"{e.stamp('%Y%m%d%H%M%S')}{e.ms % 1000:03d} {e.level} {e.message} ({e.logger})",
    "epoch ms": lambda e: f"{e.ms} {e.level} {e.message} ({e.logger})",
    "pipes": lambda e: f"{e.stamp()}|{e.level}|{e.logger}|{e.message}|data-plane-kafka-request-handler-1",
    "logfmt": lambda e: f'ts={_iso(e)} level={e.level} msg="{e.message}" logger={e.logger}',
    "colours": lambda e: f"\x1b[32m{e.stamp()}\x1b[0;39m \x1b[1m{e.level}\x1b[m {e.message} \x1b[2m({e.logger})\x1b[m",
    "kubectl logs --timestamps": lambda e: f"{_iso(e)} {_lagging(e)}",
    "CRI": lambda e: f"{_iso(e)} stdout F {_lagging(e)}",
    "kubectl logs --prefix": lambda e: f"[pod/kafka-0/kafka] {_iso(e)} {e.line}",
    "docker compose logs": lambda e: f"kafka-1  | {e.line}",
    "docker json-file": lambda e: json.dumps({"log": _lagging(e) + "\n", "stream": "stdout", "time": _iso(e)}),
    "JSON layout": lambda e: json.dumps(
        {
            "instant": {"epochSecond": e.ms // 1000, "nanoOfSecond": e.ms % 1000 * 1_000_000},
            "thread": "main",
            "level": e.level,
            "loggerName": e.logger,
            "message": e.message,
        }
    ),
    "ECS": lambda e: json.dumps(
        {"@timestamp": _iso(e), "log.level": e.level, "message": e.message, "log.logger": e.logger}
    ),
    "JSON with local time": lambda e: json.dumps({"timestamp": e.stamp(), "level": e.level, "message": e.message}),
    "JSON layout in docker": lambda e: json.dumps(
        {"log": json.dumps({"timeMillis": e.ms, "message": e.message}) + "\n", "stream": "stdout", "time": _iso(e)}
    ),
    "Fluent Bit": lambda e: json.dumps(
        {"date": e.ms / 1000, "log": f"{_iso(e)} stdout F {e.line}", "kubernetes": {"pod_name": "kafka-0"}}
    ),
    "Vector": lambda e: json.dumps({"file": "server.log", "host": "b1", "message": e.line, "timestamp": _iso(e)}),
    "journald": lambda e: f"{e.at:%b} {e.at.day:>2} {e.at:%H:%M:%S} broker1 kafka[812]: {e.line}",
    "journald short-iso": lambda e: f"{e.at:%Y-%m-%dT%H:%M:%S}+0000 broker1 kafka[812]: {e.line}",
    "journald short-iso-precise without inner time": lambda e: (
        f"{e.stamp('%Y-%m-%dT%H:%M:%S.')}000+0000 broker1 kafka-server-start.sh[812]: {e.level} {e.message} ({e.logger})"
    ),
    "journald short-unix": lambda e: f"{e.ms / 1000:.6f} broker1 kafka[812]: {e.level} {e.message}",
    "journald -o json": lambda e: json.dumps(
        {"__REALTIME_TIMESTAMP": str(e.ms * 1000), "MESSAGE": _lagging(e), "_PID": "812", "_HOSTNAME": "broker1"}
    ),
    "journald -o json, message in bytes": lambda e: json.dumps(
        {"MESSAGE": list(e.line.encode()), "__REALTIME_TIMESTAMP": str(e.ms * 1000)}
    ),
    "aws logs tail": lambda e: f"{e.stamp('%Y-%m-%dT%H:%M:%S.')}000+00:00 broker-1 {e.line}",
    "CloudWatch in S3": lambda e: f"{e.stamp('%Y-%m-%dT%H:%M:%S.')}Z {e.line}",
    "CloudWatch Insights in CSV": lambda e: (
        f'{e.stamp("%Y-%m-%d %H:%M:%S.")},"{e.line.replace(chr(34), chr(34) * 2)}",broker-1,123:msk'
    ),
    "get-log-events as text": lambda e: f"EVENTS\t{e.ms + 9_000}\t{e.line}\t{e.ms}",
    "OpenTelemetry": lambda e: json.dumps(
        {
            "resourceLogs": [
                {
                    "scopeLogs": [
                        {"logRecords": [{"timeUnixNano": str(e.ms * 1_000_000), "body": {"stringValue": e.message}}]}
                    ]
                }
            ]
        }
    ),
    "JSON with a time of another name": lambda e: json.dumps(
        {"ingestTime": "2026-11-22T09:00:00Z", "log_time": _iso(e), "msg": e.message, "uptimeMs": 1795313000000}
    ),
    "syslog RFC 5424": lambda e: f"<14>1 {_iso(e)} broker1 kafka 812 - - {_lagging(e)}",
    "CRLF": lambda e: e.line + "\r",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_tells_the_same(layout: str) -> None:
    """Every line that was done to a client is found within its window of time and once, whatever carried the log."""
    scanned = Scanned()
    log = "\n".join(LAYOUTS[layout](entry) for entry in _entries())
    assert judge(explained(log, scanned=scanned), expectations()) == []
    assert (scanned.unknown, scanned.untimed, scanned.coarse) == ({}, 0, 0)


BY_THE_SECOND: dict[str, Callable[[Entry], str]] = {
    "Strimzi log4j2": lambda e: (
        f"{e.at:%Y-%m-%d %H:%M:%S} {e.level:<5} [kafka-0] {e.logger.rpartition('.')[2]}:66 - {e.message}"
    ),
    "journald alone": lambda e: f"{e.at:%b} {e.at.day:>2} {e.at:%H:%M:%S} broker1 kafka[812]: {e.level} {e.message}",
}


@pytest.mark.parametrize("layout", BY_THE_SECOND)
def test_times_by_the_second_are_said_to_be(layout: str) -> None:
    """Where a layout has no milliseconds, everything is found within a second, and each event says so."""
    events = explained("\n".join(BY_THE_SECOND[layout](entry) for entry in _entries()))
    assert judge(events, expectations(), error_ms=1_000) == []
    assert {event.time_error_ms for event in events} == {1_000}


def test_time_zones_without_a_name_are_given() -> None:
    """A layout without a zone is that of `--utc-offset`; one with its own is not moved by it."""
    ahead = "\n".join(f"[{entry.stamp(hours=5)}] INFO {entry.message} ({entry.logger})" for entry in _entries())
    assert judge(explained(ahead, zone=parse_zone("+05:00")), expectations()) == []
    named = "\n".join(LAYOUTS["log4j2 ISO8601 with T and offset"](entry) for entry in _entries())
    assert judge(explained(named, zone=parse_zone("+05:00")), expectations()) == []


def _cloudwatch(entries: list[Entry]) -> dict[str, object]:
    events = [
        {
            "logStreamName": "b1",
            "timestamp": each.ms,
            "message": each.line,
            "ingestionTime": each.ms + 5_000,
            "eventId": "3",
        }
        for each in entries
    ]
    return {"events": events, "searchedLogStreams": []}


@pytest.mark.parametrize("indent", [None, 4])
def test_what_aws_prints_as_json(indent: int | None) -> None:
    """`aws logs filter-log-events` prints one object, in one line or over many."""
    whole = json.dumps(_cloudwatch([entry for entry in _entries() if entry.timed]), indent=indent)
    assert judge(explained(whole), expectations()) == []


def test_firehose_puts_objects_side_by_side() -> None:
    """Records of a subscription come without a line's end between them."""
    entries = [entry for entry in _entries() if entry.timed]
    parts = [
        json.dumps(
            {
                "messageType": "DATA_MESSAGE",
                "logEvents": [{"id": "1", "timestamp": e.ms, "message": e.message} for e in some],
            }
        )
        for some in (entries[:500], entries[500:900], entries[900:])
    ]
    assert judge(explained("".join(parts)), expectations()) == []


def test_compressed_and_redirected_logs() -> None:
    """Gzip is read as it is, and so is UTF-16, which PowerShell makes of `kubectl logs > file`."""
    log = (REAL / "server.log").read_bytes()
    assert judge(explained(gzip.compress(log)), expectations()) == []
    assert judge(explained(log.decode().encode("utf-16")), expectations()) == []


def test_rotated_and_joined_logs_are_put_in_order() -> None:
    """Rotated files come in any order, also joined into one stream; a line that is in two of them counts once."""
    lines = (REAL / "server.log").read_text().splitlines(keepends=True)
    new, old = "".join(lines[900:]), "".join(lines[:960])
    assert judge(explained(new, old), expectations()) == []
    assert judge(explained(new + old), expectations()) == []


def test_evidence_is_where_the_log_says_it() -> None:
    """Each event names the line that says it, in rotated and gzipped files, too."""
    lines = (REAL / "server.log").read_text().splitlines()
    for event in explained("\n".join(lines)):
        text = lines[event.evidence.line - 1]
        assert event.group_id in text
        assert event.member_id is None or event.member_id in text
