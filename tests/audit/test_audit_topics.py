"""`heartwheel audit` over the topics of a real broker: two runs, the second carries on where the first stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from audit.engine_runs import SETTINGS, engine_run
from audit.rich_log import CONFIG
from heartwheel.front.cli.app import run as heartwheel
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.sender import Sender
from heartwheel.proof.audit import AuditConfig
from heartwheel.proof.testing import LogBuilder, ProducedRecord
from heartwheel.wire.events import Event
from heartwheel.wire.tick import Tick, encode_tick
from heartwheel.wire.verdict_rows import ExpirationRow
from support.job import Topics, wait_for

pytestmark = pytest.mark.kafka

SESSION_MS = 1_000
GROUPS = ("g0", "g1", "g2")


def _send(topics: Topics, name: str, rows: list[tuple[str, bytes]]) -> None:
    sender = Sender(topics.bootstrap, topics.names[name], linger_ms=0)
    for key, value in rows:
        sender.send(key.encode(), value)
    sender.close()


def _log_of(topics: Topics) -> LogBuilder:
    """Read the heartbeats and ticks back, at the times that the broker has stamped."""
    log = LogBuilder()
    records = read_topic(topics.bootstrap, topics.names["heartbeats"])
    log.records = sorted(
        (ProducedRecord(r.append_ms, r.value, r.partition, r.offset) for r in records),
        key=lambda r: (r.append_ms, r.partition),
    )
    return log


def _let_time_pass(topics: Topics, until_ms: int) -> int:
    """Send ticks until the broker has stamped one after a moment in the partition of every group.

    Returns:
        Up to when all of these partitions are known then, epoch ms.
    """
    newest: dict[str, int] = {}

    def is_later() -> bool:
        _send(topics, "heartbeats", [(group, encode_tick(Tick())) for group in GROUPS])
        for record in read_topic(topics.bootstrap, topics.names["heartbeats"]):
            newest[(record.key or b"").decode()] = record.append_ms
        return all(newest[group] > until_ms for group in GROUPS)

    wait_for(is_later, "ticks after the deadlines")
    return min(newest[group] for group in GROUPS)


def _tell(topics: Topics, log: LogBuilder, clock_ms: int, already: set[str]) -> list[str]:
    """Write what an engine tells of the log up to a clock, and status rows that prove it."""
    known = LogBuilder()
    known.records = [record for record in log.records if record.append_ms <= clock_ms]
    run = engine_run(known, clock_ms=clock_ms, config=CONFIG)
    fresh = [each for each in run.written if each.row.id not in already]
    for name, wanted in (("expirations", True), ("triggers", False)):
        rows = [each.row for each in fresh if isinstance(each.row, ExpirationRow) == wanted]
        _send(topics, name, [(row.group_id, msgspec.json.encode(row)) for row in rows])
    status: list[dict[str, Any]] = [
        # One row proves what the row before it says, but for the clock's own millisecond.
        {"shard": 0, "batch_ms": clock_ms + more, "clock_ms": clock_ms + more - 599, "held": False}
        for more in (600, 1_600)
    ]
    _send(topics, "status", [("0", json.dumps(row).encode()) for row in status])
    rejects = [
        {
            "topic": topics.names["heartbeats"],
            "partition": r.partition,
            "offset": r.offset,
            "cause": r.cause,
            "append_ms": 0,
        }
        for r in run.rejected
    ]
    _send(topics, "rejects", [("", json.dumps(row).encode()) for row in rejects])
    return [each.row.id for each in fresh]


def _audit(topics: Topics, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, Any]:
    names = [f"kafka.topics.{name}={real}" for name, real in topics.names.items()]
    rules = [f"coordinator.{name.removesuffix('_ms')}={getattr(CONFIG, name)}" for name in SETTINGS]
    # A deadline is noticed at the end of a tick of the wheel, and the engine of these tests has not the default wheel.
    rules += ["engine.shards=1", f"wheel.tick={AuditConfig().tick_ms}ms"]
    settings = [word for flag in (*names, *rules) for word in ("--set", flag)]
    code = heartwheel(["audit", "--bootstrap-servers", topics.bootstrap, "--json", *settings, *flags])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == (0 if report["ok"] else 1)
    return report


def test_topics_are_audited_in_step_and_carried_on(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Topics of a real broker are clean run after run; a row too many, and one that is not there, are found."""
    there = Topics(kafka_broker.bootstrap, topics)
    beats = [Event(group_id=GROUPS[n % 3], member_id=f"m{n}", session_timeout_ms=SESSION_MS) for n in range(30)]
    there.send([*beats, b"garbage", *beats])
    log = _log_of(there)
    end_ms = log.records[-1].append_ms
    # The first clock is before the deadlines, unless the machine stood still: what is due later is not missed yet.
    newest = {record.partition: record.append_ms for record in log.records}
    written = set(_tell(there, log, min(newest.values()), set()))
    state = str(tmp_path / "state")
    first = _audit(there, capsys, "--state", state)
    assert (first["ok"], first["confirmed"], first["events"]) == (True, len(written), len(log.records))
    clock_ms = _let_time_pass(there, end_ms + SESSION_MS + AuditConfig().tick_ms)
    rest = _tell(there, _log_of(there), clock_ms, written)
    last = _audit(there, capsys, "--state", state)
    events = last["events"] - last["ticks"]
    assert (last["ok"], last["confirmed"], events) == (True, len(written) + len(rest), len(log.records))
    assert _audit(there, capsys)["confirmed"] == last["confirmed"]

    expired = _expirations(there)
    assert len(expired) == len(beats)
    stolen = msgspec.structs.replace(expired[0], id="0" * 32)
    _send(there, "expirations", [(stolen.group_id, msgspec.json.encode(stolen)), ("g0", b"{}")])
    found = _audit(there, capsys, "--state", state)
    assert found["faults"] == {"forged": 2}
    assert {finding["topic"] for finding in found["findings"]} == {"expirations"}


def _expirations(topics: Topics) -> list[ExpirationRow]:
    return [msgspec.json.decode(r.value or b"", type=ExpirationRow) for r in topics.read("expirations")]
