"""The manifest of a checkpoint: what does not fit is refused before Spark starts, with every value that differs."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from heartwheel.engine.heartbeats.plugin import heartbeat_job
from heartwheel.engine.operations_job.plugin import operations_job
from heartwheel.engine.runtime.driver.checkpoint import (
    FORMAT,
    MANIFEST,
    RUNS_MAX,
    CheckpointError,
    Manifest,
    add_count,
    add_run,
    open_checkpoint,
    read_manifest,
)
from heartwheel.settings import Settings, load_settings


def _settings(checkpoint: Path, *flags: str) -> Settings:
    return load_settings(None, {}, [f"checkpoint.location={checkpoint}", "spark.master=local[4]", *flags]).settings


def test_a_new_checkpoint_remembers_what_it_was_made_with(tmp_path: Path) -> None:
    """The first start writes the manifest; later starts find the state partitions there, whatever the machine."""
    made = open_checkpoint(_settings(tmp_path / "c", "engine.shards=16"))
    assert made == Manifest(format=FORMAT, shards=16, shuffle_partitions=4, topic="consumer-heartbeats")
    assert open_checkpoint(_settings(tmp_path / "c", "engine.shards=16", "spark.master=local[2]")) == made
    assert read_manifest(str(tmp_path / "c")) == made


def test_there_are_no_more_state_partitions_than_shards(tmp_path: Path) -> None:
    """On a machine with many cores no state partition stays without a shard."""
    assert open_checkpoint(_settings(tmp_path / "c", "engine.shards=3")).shuffle_partitions == 3


@pytest.mark.parametrize(("shards", "partitions"), [(4, 1), (5, 2), (16, 2)])
def test_two_cores_have_one_state_partition_for_few_shards(tmp_path: Path, shards: int, partitions: int) -> None:
    """A job with members for more shards needs both cores when all of them come, or fall silent."""
    flags = (f"engine.shards={shards}", "spark.master=local[2]")
    assert open_checkpoint(_settings(tmp_path / "c", *flags)).shuffle_partitions == partitions


def test_f6_another_configuration_is_refused_with_all_that_differs(tmp_path: Path) -> None:
    """F6: shards, topic and state partitions of another configuration are reported at once."""
    open_checkpoint(_settings(tmp_path / "c"))
    flags = ("engine.shards=9", "kafka.topics.heartbeats=other", "spark.shuffle_partitions=3")
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(_settings(tmp_path / "c", *flags))
    for words in (
        "engine.shards is 9, the checkpoint has 4",
        "is other, the checkpoint has",
        "is 3, the checkpoint has 4",
    ):
        assert words in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "cannot be read"),
        (b'{"format":1}', "cannot be read"),
        (
            msgspec.json.encode({"format": FORMAT + 1, "shards": 8, "shuffle_partitions": 2, "topic": "t"}),
            f"has format {FORMAT + 1}",
        ),
        (
            msgspec.json.encode({"format": 1, "shards": 8, "shuffle_partitions": 2, "topic": "t"}),
            "has format 1, whose state cannot be carried on",
        ),
    ],
)
def test_f6_a_manifest_that_is_broken_or_newer_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    """F6: a damaged manifest, or that of a newer release, is refused by name."""
    (tmp_path / MANIFEST).write_bytes(content)
    with pytest.raises(CheckpointError, match=words):
        open_checkpoint(_settings(tmp_path))


def test_f6_state_without_a_manifest_is_never_taken_for_a_new_checkpoint(tmp_path: Path) -> None:
    """F6: a folder that holds something and no manifest is refused; nothing is written into it."""
    (tmp_path / "offsets").mkdir()
    with pytest.raises(CheckpointError, match="not empty"):
        open_checkpoint(_settings(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["offsets"]


def test_a_place_that_can_not_be_written_is_named(tmp_path: Path) -> None:
    """A checkpoint below a file cannot be made: the error says where and why."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be written"):
        open_checkpoint(_settings(tmp_path / "file" / "checkpoint"))


CLUSTER = ("spark.master=spark://m:7077", "spark.conf.spark.authenticate=false", "spark.shuffle_partitions=2")


def test_a_folder_can_be_written_as_an_address(tmp_path: Path) -> None:
    """`file:///path` is the folder, blanks and all, and not a folder named `file:`."""
    folder = tmp_path / "a b"
    made = open_checkpoint(_settings(tmp_path, f"checkpoint.location={folder.as_uri()}"))
    assert read_manifest(str(folder)) == made


def test_a_cluster_needs_a_checkpoint_that_all_machines_reach(tmp_path: Path) -> None:
    """The job of delayed operations has a checkpoint of its own; a folder of one machine is refused there too."""
    address = "checkpoint.location=hdfs://name/heartwheel"
    folder = f"operations.checkpoint_location={tmp_path / 'operations'}"
    with pytest.raises(CheckpointError, match="is a folder of one machine"):
        operations_job(_settings(tmp_path, *CLUSTER, address, folder))
    assert not (tmp_path / "operations").exists()
    operations_job(_settings(tmp_path, *CLUSTER, address, folder, "checkpoint.shared=true"))
    assert (tmp_path / "operations" / MANIFEST).exists()


def test_an_address_is_not_looked_at_before_there_is_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a session an address cannot be read: nothing is written in its place, and nothing is assumed of it."""
    monkeypatch.chdir(tmp_path)
    job = heartbeat_job(_settings(tmp_path, *CLUSTER, "checkpoint.location=hdfs://name/heartwheel"))
    assert job.manifest == Manifest(format=FORMAT, shards=4, shuffle_partitions=2, topic="consumer-heartbeats")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CheckpointError, match="is not a local folder"):
        read_manifest("hdfs://name/heartwheel")


def test_the_runs_of_the_ticker_are_written_down(tmp_path: Path) -> None:
    """A checkpoint remembers the newest runs of the ticker: ticks of others are no evidence of an outage."""
    open_checkpoint(_settings(tmp_path / "c"))
    for number in range(RUNS_MAX + 2):
        runs = add_run(str(tmp_path / "c"), f"run-{number}", None)
    assert runs == tuple(f"run-{number}" for number in range(2, RUNS_MAX + 2))


def test_a_new_checkpoint_asks_how_many_partitions_there_were_before(tmp_path: Path) -> None:
    """Only the first start has to find that out: later ones have it written down, and may be amidst the topic."""
    folder = tmp_path / "c"
    open_checkpoint(_settings(folder))
    assert add_count(str(folder), 4, None, former=lambda: [1, 3]) == ((1, 0), (3, 0), (4, 0))
    assert add_count(str(folder), 6, None, former=lambda: [2, 5]) == ((1, 0), (3, 0), (4, 0), (6, 0))
    planned = tmp_path / "planned"
    open_checkpoint(_settings(planned))
    (planned / "offsets").mkdir()
    (planned / "offsets" / "0").touch()
    assert add_count(str(planned), 4, None, former=lambda: [1]) == ((4, 1),)


def test_how_many_partitions_there_were_is_written_down(tmp_path: Path) -> None:
    """A checkpoint remembers every count that a start has found, but for those that are not known or not new.

    A batch that was planned by then may have written rows without knowing it, so the next one is the first that does.
    """
    folder = tmp_path / "c"
    open_checkpoint(_settings(folder))
    found = [add_count(str(folder), count, None) for count in (4, 4, 0, 6)]
    assert found == [((4, 0),), ((4, 0),), ((4, 0),), ((4, 0), (6, 0))]
    (folder / "offsets").mkdir()
    (folder / "offsets" / "7").touch()
    assert [add_count(str(folder), count, None) for count in (12, 12, 5)] == [((4, 0), (6, 0), (12, 8))] * 3
    assert len(list((folder / "partitions").iterdir())) == 3
