"""Whether a topic has grown is read off Spark's offsets and Kafka's answer, and never guessed."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from heartwheel.kafka.client import admin_client
from heartwheel.settings import Settings
from heartwheel.spark import growth
from heartwheel.spark.growth import GrowthUnknownError, has_grown, partitions_read

OFFSETS = b'v1\n{"batchTimestampMs":1,"conf":{}}\n{"beats":{"0":7,"1":9}}\n{"offset":8,"timestamp":1}'
NOWHERE = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("offsets", "partitions"),
    [(OFFSETS, 2), (OFFSETS.replace(b"beats", b"other"), None), (OFFSETS[:45], None), (b"", None), (None, None)],
)
def test_the_partitions_of_a_batch_are_counted(offsets: bytes | None, partitions: int | None) -> None:
    """The line of the topic has them; what is cut, empty or of another topic tells nothing."""
    assert partitions_read(offsets, "beats") == partitions


def _settings(folder: Path) -> Settings:
    return Settings.model_validate(
        {"checkpoint": {"location": str(folder)}, "kafka": {"bootstrap_servers": NOWHERE}},
    )


@pytest.mark.parametrize("names", [(), ("beats-draft", ".3.crc")])
def test_a_new_checkpoint_has_seen_nothing_that_could_grow(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Without a batch nobody asks Kafka, and what Spark keeps beside its batches is none."""
    (tmp_path / "offsets").mkdir()
    for name in names:
        (tmp_path / "offsets" / name).write_bytes(OFFSETS)
    assert not has_grown(_settings(tmp_path), "beats", None)


@pytest.mark.parametrize(("now", "grown"), [(0, False), (1, False), (2, False), (3, True)])
def test_only_more_partitions_are_growth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: int, *, grown: bool
) -> None:
    """P1: a topic that is gone or was made anew is not this module's business; one with more partitions is."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "7").write_bytes(OFFSETS)
    monkeypatch.setattr(growth, "count_partitions", lambda *_, **__: now)
    assert has_grown(_settings(tmp_path), "beats", None) is grown


def test_what_nobody_can_tell_is_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Kafka away the start fails, to be tried again: read in parts, a grown topic would cost lives."""
    monkeypatch.setattr("heartwheel.kafka.topics.admin_client", partial(admin_client, connect_timeout_ms=300))
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "9").write_bytes(OFFSETS.replace(b"beats", b"other"))
    (offsets / "10").write_bytes(OFFSETS)
    with pytest.raises(GrowthUnknownError, match=f"no Kafka answers at {NOWHERE}"):
        has_grown(_settings(tmp_path), "beats", None)
