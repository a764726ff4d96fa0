"""The commands that talk to a broker, against a real one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from heartwheel.engine.runtime.driver.checkpoint import open_checkpoint
from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore, open_store
from heartwheel.engine.runtime.driver.skip import read_request
from heartwheel.front.cli.app import run
from heartwheel.front.cli.run import require_topics
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.topic_specs import TopicSpec
from heartwheel.kafka.topics import ensure_topics
from heartwheel.proof.members.truth import LifeLine, Summary, read_truth
from heartwheel.settings import load_settings
from support.bombs import MIB, blow_up, bomb
from support.planned import write_plan
from support.record_batch import encode_batch

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


def test_p6_topics_that_let_a_bomb_in_are_warned_of(
    flags: list[str],
    kafka_broker: EmbeddedKafka,
    topics: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """P6: `doctor`, and the job at its start, warn of a topic whose broker looks at no batch, and give the command."""
    name = topics("heartbeats")
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 1, {"message.timestamp.type": "LogAppendTime"})])
    assert run(["topics", "--create", *flags]) == 0
    assert "--add-config compression.type=uncompressed" in " ".join(capsys.readouterr().err.split())
    assert run(["doctor", "--json", *flags]) == 0
    (check,) = [row for row in json.loads(capsys.readouterr().out) if row["name"] == "compression"]
    assert check["status"] == "warn"
    assert f"{name}: compression.type is producer" in check["detail"]
    command = f"--entity-name {name} --add-config compression.type=uncompressed"
    assert command in check["hint"]
    require_topics(load_settings(None, {}, flags[1::2]).settings)
    assert command in caplog.text


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


def test_p6_skip_asks_for_the_whole_of_what_is_not_unpacked(
    flags: list[str],
    kafka_broker: EmbeddedKafka,
    topics: Callable[[str], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """P6: `skip` finds how far a record batch goes that nobody can unpack, and refuses what is no record or a part."""
    name, checkpoint = topics("heartbeats"), tmp_path / "checkpoint"
    ensure_topics(kafka_broker.bootstrap, [TopicSpec(name, 1, {"message.timestamp.type": "LogAppendTime"})])
    blow_up(kafka_broker.bootstrap, name, 0, encode_batch([(b"k", b"v")], 0))
    blow_up(kafka_broker.bootstrap, name, 0, bomb("zstd", 80 * MIB, records_more=2))
    open_checkpoint(load_settings(None, {}, [*flags[1::2], f"checkpoint.location={checkpoint}"]).settings)
    write_plan(checkpoint, 0, {0: 4}, finished=False, topic=name)

    def skip(*words: str) -> tuple[int, str]:
        code = run(["skip", "--partition", "0", *words, *flags])
        done = capsys.readouterr()
        return code, done.out + done.err

    because = ("--reason", "INC-7")
    assert "there is no record at" in skip("--offset", "9", *because)[1]
    assert "the reason must have 1 to 300 characters, and has 0" in skip("--offset", "1", "--reason", " ")[1]
    code, said = skip("--offset", "1", "--to", "2", *because)
    assert code == 1
    assert "hint: --to 3" in said
    assert read_request(_folder(checkpoint)) is None
    code, said = skip("--offset", "1", *because)
    assert (code, f"batch 0 will pass over {name} partition 0 offsets 1 to 3" in " ".join(said.split())) == (0, True)
    request = read_request(_folder(checkpoint))
    assert request is not None
    ((partition, first, last, append_ms, reason),) = map(msgspec.structs.astuple, request.skips)
    assert (partition, first, last, reason) == (0, 1, 3, "INC-7")
    assert append_ms > 1_700_000_000_000
    assert run(["skip", "--operations", "--partition", "0", "--offset", "1", *because, *flags]) == 1


def _folder(location: Path) -> CheckpointStore:
    store = open_store(str(location), None)
    assert store is not None
    return store
