"""The commands that talk to a broker, against a real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.broker.embedded import EmbeddedKafka
from heartwheel.cli.app import run
from heartwheel.feed.truth import LifeLine, Summary, read_truth

pytestmark = pytest.mark.kafka

NAMES = ("heartbeats", "expirations", "triggers", "status", "rejects")


@pytest.fixture
def flags(
    kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Give the flags that point a command at the test's broker, topics and checkpoint."""
    monkeypatch.setenv("HEARTWHEEL_CHECKPOINT__LOCATION", str(tmp_path / "checkpoint"))
    names = [f"kafka.topics.{name}={topics(name)}" for name in NAMES]
    settings = [f"kafka.bootstrap_servers={kafka_broker.bootstrap}", *names]
    return [word for setting in settings for word in ("--set", setting)]


def statuses(capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Give the statuses that a command printed as JSON."""
    return {row["status"] for row in json.loads(capsys.readouterr().out)}


def test_topics_are_made_once(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Missing topics are a failure with a hint, `--create` makes them, and then all is well."""
    words = flags
    assert run(["topics", "--json", *words]) == 1
    assert statuses(capsys) == {"missing"}
    assert run(["topics", "--create", "--json", *words]) == 0
    assert statuses(capsys) == {"created"}
    assert run(["topics", "--json", *words]) == 0
    assert statuses(capsys) == {"ok"}


def test_doctor_finds_missing_topics(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """`doctor` is bad without topics, and good once they are there."""
    words = flags
    assert run(["doctor", "--json", *words]) == 1
    assert "bad" in statuses(capsys)
    run(["topics", "--create", *words])
    capsys.readouterr()
    assert run(["doctor", "--json", *words]) == 0
    assert "bad" not in statuses(capsys)


def test_feed_needs_its_topic(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Feeding a topic that is not there fails at once and names the command that makes it."""
    assert run(["feed", "--duration", "1s", *flags]) == 1
    assert "hint: heartwheel topics --create" in capsys.readouterr().err


def test_feed_writes_the_truth(flags: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A feed sends what it says, and its file holds the start of every member and the same summary."""
    words, truth = flags, tmp_path / "truth.jsonl"
    run(["topics", "--create", *words])
    capsys.readouterr()
    scale = ["--groups", "2", "--members", "3", "--set", "feed.heartbeat_interval=200ms"]
    assert run(["feed", "--duration", "1s", "--json", "--truth", str(truth), *scale, *words]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["sent"] == summary["acknowledged"] > 6
    lines = list(read_truth(truth))
    assert len({line.member_id for line in lines if isinstance(line, LifeLine)}) == 6
    assert [line.sent for line in lines if isinstance(line, Summary)] == [summary["sent"]]


@pytest.mark.parametrize("duration", ["0s", "soon", "-1s"])
def test_wrong_duration_is_wrong_usage(duration: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A duration that is none is refused before anything is sent."""
    assert run(["feed", f"--duration={duration}"]) == 2
    assert "must be" in capsys.readouterr().err
