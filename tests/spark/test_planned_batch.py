"""The batch that Spark has planned and not finished is read from its logs, whatever sources the query has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore, open_store
from heartwheel.engine.runtime.driver.planned_batch import offsets_in, planned_batch, with_end
from support.planned import METADATA, TOPIC, plan_text, write_beginning, write_plan


def _store(folder: Path) -> CheckpointStore:
    store = open_store(str(folder), None)
    assert store is not None
    return store


def test_a_batch_reads_from_where_the_one_before_ended(tmp_path: Path) -> None:
    """What was planned last and has no commit, from the ends of the batch before; a new partition from 0."""
    write_plan(tmp_path, 8, {0: 5, 1: 10}, finished=True)
    write_plan(tmp_path, 9, {0: 5, 1: 30, 2: 4}, finished=False)
    batch = planned_batch(_store(tmp_path), TOPIC)
    assert batch is not None
    assert (batch.number, batch.text) == (9, plan_text({0: 5, 1: 30, 2: 4}))
    assert batch.spans() == {1: (10, 30), 2: (0, 4)}
    assert str(batch) == f"batch 9, {TOPIC} partition 1 offsets 10 to 29, partition 2 offsets 0 to 3"


def test_the_first_batch_reads_from_where_its_source_began(tmp_path: Path) -> None:
    """Batch 0 has none before it: the source wrote down its beginning, behind a zero byte."""
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_bytes(b"0")
    write_beginning(tmp_path, {0: 100}, source=1)
    write_plan(tmp_path, 0, {0: 150}, finished=False)
    batch = planned_batch(_store(tmp_path), TOPIC)
    assert batch is not None
    assert batch.spans() == {0: (100, 150)}


def test_nothing_is_unfinished_once_the_newest_batch_is_done(tmp_path: Path) -> None:
    """A new checkpoint, a finished batch, a damaged plan and the plan of another topic are no unfinished batch."""
    store = _store(tmp_path)
    assert planned_batch(store, TOPIC) is None
    write_plan(tmp_path, 3, {0: 5}, finished=True)
    assert planned_batch(store, TOPIC) is None
    write_plan(tmp_path, 4, {0: 7}, finished=False)
    assert planned_batch(store, "another") is None
    (tmp_path / "offsets" / "4").write_bytes(b"v1\n{")
    assert planned_batch(store, TOPIC) is None


@pytest.mark.parametrize("topic", [TOPIC, "conf"])
def test_a_plan_differs_in_one_number_only(topic: str) -> None:
    """Another end in one partition leaves every other line as it was, be the topic named as metadata is."""
    text = plan_text({0: 5, 1: 30}, topic=topic)
    changed = with_end(text, topic, 1, 12)
    assert offsets_in(changed, topic) == {0: 5, 1: 12}
    before, after = text.split(b"\n"), changed.split(b"\n")
    assert [at for at, line in enumerate(after) if line != before[at]] == [3]
    assert json.loads(after[1]) == METADATA
    assert with_end(changed, topic, 1, 30) == text
