"""The command on a real broker: what it prints into a pipe."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest

from heartwheel.base.wall_clock import wall_ms
from heartwheel.front.cli.app import run
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.broker.node_process import free_port
from heartwheel.kafka.sender import Sender
from heartwheel.readers.top import watch
from support.job import Topics
from support.output_rows import expired, job, status


@pytest.mark.kafka
def test_a_pipe_gets_one_snapshot(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a terminal it reads what is there, prints it once, and ends with 0; `--json` for machines."""
    place, now_ms = Topics(kafka_broker.bootstrap, topics), wall_ms()
    rows = {"expirations": expired("orders", "orders-1", now_ms), "job": job(now_ms), "status": status(batch_ms=now_ms)}
    for name, row in rows.items():
        sender = Sender(place.bootstrap, place.names[name], linger_ms=0)
        sender.send(b"key", msgspec.json.encode(row))
        sender.close()
    flags = ["--bootstrap-servers", place.bootstrap]
    flags += [word for name, real in place.names.items() for word in ("--set", f"kafka.topics.{name}={real}")]
    assert run(["top", "--json", *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["now"]["health"]["state"] == "healthy"
    assert [row["member_id"] for row in found["expirations"]] == ["orders-1"]
    assert run(["top", *flags]) == 0
    assert "orders-1" in capsys.readouterr().out


def test_a_pipe_is_told_that_kafka_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A snapshot of nothing would look like a quiet cluster: it fails instead, and says what to look at."""
    monkeypatch.setattr(watch, "_PATIENCE_S", 0.1)
    assert run(["top", "--once", "--bootstrap-servers", f"127.0.0.1:{free_port()}"]) == 1
    assert "hint: is the broker up" in capsys.readouterr().err
