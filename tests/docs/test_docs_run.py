"""The commands by which a person starts heartwheel beside a cluster, run in their order as the pages show them."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.client import admin_client
from heartwheel.kafka.readback import read_topic
from heartwheel.proof.audit.clocks import Clocks
from heartwheel.settings import Settings
from support.group_members import GroupMember
from support.job import PATIENCE_S, wait_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.proof]

ROOT = Path(__file__).parents[2]
READY = {"run": " members in ", "dashboard": "http://", "tap": ""}
"""Commands that run until they are stopped, and what they print once they work; a tap prints figures now and then."""


def commands_of(page: str, heading: str) -> list[list[str]]:
    """Return the commands of heartwheel in the first block of a section, as words."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text[re.search(rf"^#+ {heading}$", text, re.MULTILINE).end() :]  # type: ignore[union-attr]  # or it fails
    (block,) = re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[:1]
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("heartwheel ")]


@contextmanager
def started(words: list[str], folder: Path, env: dict[str, str]) -> Iterator[None]:
    """Run a command for the length of a `with` block, wait until it works, and end it as a supervisor does."""
    log = folder / f"{words[0]}.log"
    with log.open("wb") as file:
        command = [sys.executable, "-m", "heartwheel", *words]
        process = subprocess.Popen(command, cwd=folder, env=env, stdout=file, stderr=file)
    try:
        wait_for(lambda: process.poll() is not None or READY[words[0]] in log.read_text(), f"{words[0]} to work")
        assert process.poll() is None, log.read_text()
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(PATIENCE_S)
        finally:
            process.kill()
    assert code == 0, log.read_text()


def _has_decided(bootstrap: str) -> bool:
    clocks = Clocks()
    for record in read_topic(bootstrap, "heartwheel-status"):
        if record.value is not None:
            row = msgspec.json.decode(record.value)
            clocks.batch(row["shard"], row["batch_ms"], row["clock_ms"])
    return clocks.proven_ms(Settings().engine.shards) > 0


@pytest.mark.parametrize("page", ["README.md", "docs/cluster.md"])
def test_what_a_person_copies_works(page: str, tmp_path: Path) -> None:
    """On a Kafka of its own each command ends well, or works until it is stopped, in the order of the page."""
    env = os.environ | {"HEARTWHEEL_DASHBOARD__PORT": "0"}  # the page's port may be taken on this machine
    with EmbeddedKafka(tmp_path / "broker") as broker, ExitStack() as running:
        commands = commands_of(page, "Run it beside a cluster")
        assert [words[0] for words in commands][:3] == ["topics", "doctor", "run"]
        for words in commands:
            placed = [word.replace("kafka:9092", broker.bootstrap).replace("/var/lib", str(tmp_path)) for word in words]
            if placed[0] in READY:
                running.enter_context(started(placed, tmp_path, env))
                continue
            if placed[0] == "audit":
                wait_for(lambda: _has_decided(broker.bootstrap), "two batches of each shard")
            command = [sys.executable, "-m", "heartwheel", *placed]
            done = subprocess.run(
                command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=200
            )
            assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"


def test_a_tap_is_started_as_its_page_says(tmp_path: Path) -> None:
    """Job and tap, with nothing added but where things are: a real consumer is passed on, and the job takes it."""
    with EmbeddedKafka(tmp_path / "broker", request_log=True) as broker, ExitStack() as running:
        env = os.environ | {
            "HEARTWHEEL_KAFKA__BOOTSTRAP_SERVERS": broker.bootstrap,
            "HEARTWHEEL_CHECKPOINT__LOCATION": str(tmp_path / "checkpoint"),
        }
        create = [sys.executable, "-m", "heartwheel", "topics", "--create"]
        subprocess.run(create, env=env, check=True, capture_output=True, timeout=200)
        with admin_client(broker.bootstrap) as admin:
            admin.create_topics({"work": {"num_partitions": 1}})
        places = {
            "/var/log/kafka/kafka-request.log": str(broker.request_log),
            "/var/log/kafka/server.log": str(broker.log_file),
            "/var/lib/heartwheel/broker-1": str(tmp_path / "broker-1"),
        }
        for words in commands_of("docs/tap.md", "Run it"):
            placed = [places.get(word, word) for word in words if word != "..."]
            running.enter_context(started(placed, tmp_path, env))
        member = GroupMember(broker, "work", "orders", "c0", session_ms=6_000)
        running.callback(member.end)
        member.wait_joined()

        def values(topic: str) -> list[bytes]:
            return [record.value or b"" for record in read_topic(broker.bootstrap, topic)]

        def named(topic: str) -> list[bytes]:
            return [value for value in values(topic) if b'"orders"' in value]

        wait_for(lambda: any(b'"broker-1"' in value for value in named("consumer-heartbeats")), "the tap to pass on")
        wait_for(lambda: named("heartwheel-status"), "the job to know the group")
        assert values("heartbeat-rejects") == []
    assert "events passed on" in (tmp_path / "tap.log").read_text()
