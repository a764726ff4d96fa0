"""The notifier as its user runs it: a process, a broker, a receiver on a socket, and none of them always there."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.sender import Sender
from heartwheel.readers.notify.signature import parse_secrets
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow
from support.job import Topics, wait_for
from support.output_rows import expired, joined
from support.webhook_receiver import Receiver

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()


class Process:
    """One `heartwheel notify`, and its log over all its lives.

    Args:
        topics: where it reads.
        folder: gets its state and its log.
        url: where it posts to.
    """

    def __init__(self, topics: Topics, folder: Path, url: str) -> None:
        self.state = folder / "state" / "state.json"
        self._log = folder / "notify.log"
        (folder / "secret").write_text(f"{SECRET}\n")
        settings = [
            *(f"kafka.topics.{name}={real}" for name, real in topics.names.items()),
            *("notify.gather=200ms", "notify.min_interval=200ms", f"notify.secret=file:{folder / 'secret'}"),
        ]
        self._command = [
            *(sys.executable, "-m", "heartwheel", "notify", "--state-dir", str(self.state.parent)),
            *("--bootstrap-servers", topics.bootstrap),
            *(word for text in settings for word in ("--set", text)),
        ]
        self._env = os.environ | {"HEARTWHEEL_NOTIFY__URL": url}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text()

    def start(self) -> None:
        """Start it, and wait until it reads."""
        answers = self.log.count("answers") if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, env=self._env, stdout=log, stderr=log)
        wait_for(lambda: self.log.count("answers") > answers, "the notifier to reach Kafka")

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait for the end."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(30)


def write(topics: Topics, *rows: ExpirationRow | TriggerRow) -> None:
    """Append rows to their topics, as the job does."""
    for row in rows:
        topic = "expirations" if isinstance(row, ExpirationRow) else "triggers"
        sender = Sender(topics.bootstrap, topics.names[topic], linger_ms=0)
        sender.send(row.group_id.encode(), msgspec.json.encode(row))
        sender.close()
        assert sender.unknown == 0


@pytest.mark.kafka
@pytest.mark.proof
def test_nothing_is_lost_over_crash_and_outage(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """Killed while rows come and the receiver is down: every expiration is posted once, and signed."""
    place = Topics(kafka_broker.bootstrap, topics)
    with Receiver(parse_secrets(SECRET)) as receiver:
        notifier = Process(place, tmp_path, receiver.url)
        notifier.start()
        write(place, expired("g", "a"))
        wait_for(lambda: receiver.bodies, "the first message")

        assert notifier.end(signal.SIGKILL) == -signal.SIGKILL
        receiver.status = 503
        write(place, expired("g", "b"), expired("h", "x"), expired("heartwheel-canary-1", "c"))
        notifier.start()
        wait_for(lambda: receiver.refused >= 2, "the receiver to be tried while it is down")
        receiver.status = 204
        wait_for(lambda: _expired(receiver) == {"g": 2, "h": 1}, "all expirations to be posted")

        write(place, joined("g", "a", "b"))
        wait_for(lambda: receiver.bodies[-1].incidents[0].step == "closed", "the incident to be closed")
        assert notifier.end(signal.SIGTERM) == 0

    posted = [one for body in receiver.bodies for one in body.incidents]
    assert [(one.step, one.sequence) for one in posted if one.group_id == "g"] == [
        ("opened", 1),
        ("updated", 2),
        ("closed", 3),
    ]
    assert "all are back" in receiver.bodies[-1].text
    assert json.loads(notifier.state.read_text())["counts"]["failed"] == receiver.refused
    for hidden in (SECRET, "top-secret-path"):
        assert hidden not in notifier.log + notifier.state.read_text()


def _expired(receiver: Receiver) -> dict[str | None, int]:
    return {one.group_id: one.expired for body in receiver.bodies for one in body.incidents}


@pytest.mark.kafka
def test_dry_run_prints_and_keeps_nothing(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path
) -> None:
    """`--dry-run` needs no address and no receiver, prints each message as a line, and writes no file."""
    place = Topics(kafka_broker.bootstrap, topics)
    write(place, expired("g", "a"))
    command = [
        *(sys.executable, "-m", "heartwheel", "notify", "--dry-run", "--since", "1h", "--set", "notify.gather=0ms"),
        *("--bootstrap-servers", place.bootstrap),
        *(word for name, real in place.names.items() for word in ("--set", f"kafka.topics.{name}={real}")),
    ]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        body = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert [one["group_id"] for one in body["incidents"]] == ["g"]
    assert list(tmp_path.iterdir()) == []
