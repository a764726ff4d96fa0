"""The embedded broker starts, survives a crash with its data, hangs on demand, and leaves nothing behind."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heartwheel.kafka.broker import java
from heartwheel.kafka.broker.embedded import EmbeddedKafka, KafkaStartError
from heartwheel.kafka.broker.node_config import properties_text
from heartwheel.kafka.broker.node_process import NodeCommands, wait_until_stopped
from heartwheel.kafka.broker.probe import serves_requests
from heartwheel.kafka.readback import read_topic
from heartwheel.kafka.sender import Sender
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics

APPEND_TIME = {"message.timestamp.type": "LogAppendTime"}


def put(bootstrap: str, topic: str, *values: bytes) -> Sender:
    """Send values and wait for their fate."""
    sender = Sender(bootstrap, topic)
    for value in values:
        sender.send(b"k", value)
    sender.close()
    return sender


@pytest.mark.kafka
@pytest.mark.proof
def test_data_survives_kill_nine_and_serves_the_next_broker(tmp_path: Path) -> None:
    """After SIGKILL a start has every acknowledged record, at the same address; the folder outlives an orderly stop."""
    values = [b"%d" % n for n in range(100)]
    with EmbeddedKafka(tmp_path) as broker:
        ensure_topics(broker.bootstrap, [TopicSpec("t", 1, APPEND_TIME)])
        assert put(broker.bootstrap, "t", *values).acknowledged == len(values)
        address = broker.bootstrap
        assert broker.kill() == -9
        assert not broker.running
        assert not serves_requests("127.0.0.1", broker.port)
        broker.start()
        assert broker.bootstrap == address
        assert [record.value for record in read_topic(broker.bootstrap, "t")] == values
        assert broker.stop() == 143
    with EmbeddedKafka(tmp_path) as other:
        assert [record.value for record in read_topic(other.bootstrap, "t")] == values


@pytest.mark.skipif(sys.platform != "linux", reason="waits in Linux's way")
def test_a_stopped_process_is_waited_for() -> None:
    """Whoever stops a process goes on when it stands still, asks again for nothing, and may find it dead."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        child.send_signal(signal.SIGSTOP)
        for _ in range(2):
            wait_until_stopped(child.pid)
            assert Path(f"/proc/{child.pid}/stat").read_text().rpartition(") ")[2][0] == "T"
        child.kill()
        wait_until_stopped(child.pid)
        assert child.wait() == -signal.SIGKILL


@pytest.mark.proof
@pytest.mark.kafka
def test_sender_survives_a_hung_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of a broker that hangs longer than the delivery timeout count as unknown, and later ones arrive again."""
    monkeypatch.setattr("heartwheel.kafka.sender._DELIVERY_TIMEOUT_MS", 2000)
    monkeypatch.setattr("heartwheel.kafka.sender._REQUEST_TIMEOUT_MS", 1000)
    with EmbeddedKafka() as broker:
        ensure_topics(broker.bootstrap, [TopicSpec("t", 1, APPEND_TIME)])
        sender = Sender(broker.bootstrap, "t")
        sender.send(b"k", b"before")
        sender.flush()
        broker.pause()
        fates: list[object] = []
        sender.send(b"k", b"during", fates.append)
        while not fates:
            sender.flush(500)
        assert fates == [None]
        sender.send(b"k", b"while nobody answers", fates.append)
        assert fates == [None, None]
        broker.resume()
        while fates[-1] is None:
            sender.poll()
            sender.send(b"k", b"after", fates.append)
            sender.flush()
        sender.close()
        assert sender.acknowledged == 2
        assert sender.unknown == sender.sent - 2
        assert set(sender.errors) == {"KafkaTimeoutError"}
        values = [record.value for record in read_topic(broker.bootstrap, "t")]
    assert {b"before", b"after"} <= set(values)


@pytest.mark.kafka
@pytest.mark.proof
def test_broker_dies_with_its_parent(tmp_path: Path) -> None:
    """A process that is killed takes its broker along."""
    program = (
        "import sys\nfrom heartwheel.kafka.broker.embedded import EmbeddedKafka\n"
        "broker = EmbeddedKafka(sys.argv[1]).start()\nprint(broker.pid, broker.port, flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        _, port = map(int, parent.stdout.readline().split())
        assert serves_requests("127.0.0.1", port)
        parent.kill()
    while serves_requests("127.0.0.1", port):
        pass  # the kernel's signal is under way; the test's own time limit bounds this


@pytest.mark.kafka
def test_taken_port_is_told_with_the_brokers_own_words() -> None:
    """A broker that cannot start says why in the error, not only in a file."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(KafkaStartError, match=r"(?s)exited with code 1; it logs to .*Address already in use"):
            EmbeddedKafka(port=taken.getsockname()[1]).__enter__()


@pytest.mark.kafka
def test_started_twice_is_refused(kafka_broker: EmbeddedKafka) -> None:
    """One object owns one process."""
    with pytest.raises(KafkaStartError, match="runs already"):
        kafka_broker.start()


def test_probe_wants_an_answer_not_a_connection() -> None:
    """A port that accepts and then says nothing, as a container's proxy does, is not a broker."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        assert not serves_requests("127.0.0.1", mute.getsockname()[1], timeout_ms=100)
    assert not serves_requests("127.0.0.1", 1, timeout_ms=100)


def test_an_archive_of_classes_is_used_if_nobody_else_may_change_it(tmp_path: Path) -> None:
    """A broker starts with the archive of its jars where there is one; one that others may write is not loaded."""
    jars = [tmp_path / "jars" / "kafka.jar"]
    archive = java.class_archive_file(jars)

    def options() -> list[str]:
        words = NodeCommands(Path("java"), jars, tmp_path).run_broker("384m")
        return [word for word in words if "SharedArchiveFile" in word]

    assert options() == []
    archive.parent.mkdir(mode=0o700)
    archive.touch(0o644)
    assert options() == [f"-XX:SharedArchiveFile={archive}"]
    archive.chmod(0o666)
    assert options() == []


def test_properties_file_keeps_backslashes() -> None:
    """A value is read back as it was given, where Java would eat a backslash."""
    assert properties_text({"a": r"x\d", "b": "1"}) == "a=x\\\\d\nb=1\n"


def test_old_or_absent_java_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The error names what was found and what is needed."""
    fake = tmp_path / "bin" / "java"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(java.JavaError, match="is Java 11, 17 or newer is needed"):
        java.find_java()
    fake.unlink()
    with pytest.raises(java.JavaError, match="does not run: No such file"):
        java.find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(java.JavaError, match="no Java found"):
        java.find_java()
