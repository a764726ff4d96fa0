"""Records are passed over exactly: what is before and behind them is read, once, wherever a crash comes in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.engine.runtime.driver.checkpoint_store import CheckpointStore, open_store
from heartwheel.engine.runtime.driver.planned_batch import READ_AHEAD_MAX, offsets_in, planned_batch
from heartwheel.engine.runtime.driver.skip import (
    OFFSETS_MAX,
    SKIP,
    Skip,
    SkipError,
    SkipRequest,
    ask,
    finish,
    prepare,
    read_request,
)
from support.planned import TOPIC, finish_plan, plan_text, write_plan

BOMB = Skip(partition=1, first=17, last=19, append_ms=1_700, reason="INC-7")


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    """Leave a batch unfinished."""
    write_plan(tmp_path, 6, {0: 5, 1: 10}, finished=True)
    write_plan(tmp_path, 7, {0: 9, 1: 30}, finished=False)
    found = open_store(str(tmp_path), None)
    assert found is not None
    return found


def _ask(store: CheckpointStore, skip: Skip = BOMB) -> SkipRequest:
    return ask(store, planned_batch(store, TOPIC), skip)


def _ends(store: CheckpointStore) -> dict[int, int] | None:
    return offsets_in(store.read("offsets/7"), TOPIC)


def test_p6_every_other_offset_is_read_once(store: CheckpointStore, tmp_path: Path) -> None:
    """P6: the batch reads up to the skipped offsets, the next begins behind them; other partitions are as planned."""
    _ask(store)
    assert store.read("offsets/7") == plan_text({0: 9, 1: 30}), "the command itself leaves Spark's logs alone"
    request = prepare(store)
    assert request is not None
    assert store.read("offsets/7") == plan_text({0: 9, 1: 17})
    assert not (tmp_path / "offsets" / ".7.crc").exists()
    batch = planned_batch(store, TOPIC)
    assert batch is not None
    assert batch.spans() == {0: (5, 9), 1: (10, 17)}
    finish_plan(tmp_path, 7)
    finish(store, request)
    assert store.read("offsets/7") == plan_text({0: 9, 1: 20})
    write_plan(tmp_path, 8, {0: 12, 1: 40}, finished=False)
    after = planned_batch(store, TOPIC)
    assert after is not None
    assert after.spans() == {0: (9, 12), 1: (20, 40)}
    assert store.read(SKIP) is None
    assert prepare(store) is None


def test_p6_a_crash_at_any_point_changes_nothing(store: CheckpointStore, tmp_path: Path) -> None:
    """P6: every step can be done again, and the next start knows from the logs which are still to be done."""
    _ask(store)
    first = prepare(store)
    assert prepare(store) == first, "killed before the batch"
    (tmp_path / "offsets" / "7").unlink()
    assert prepare(store) == first, "killed while the plan was replaced"
    assert _ends(store) == {0: 9, 1: 17}
    finish_plan(tmp_path, 7)
    assert prepare(store) == first, "killed before the rejects were written"
    assert first is not None
    pending = store.read(SKIP)
    finish(store, first)
    assert pending is not None
    store.replace(SKIP, pending)
    assert prepare(store) is None, "killed before the request was deleted"
    assert store.read(SKIP) is None
    assert _ends(store) == {0: 9, 1: 20}


def test_a_batch_that_was_finished_after_all_is_left_alone(
    store: CheckpointStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If the job got through before it was started anew, everything has been read: nothing is skipped or rejected."""
    _ask(store)
    finish_plan(tmp_path, 7)
    assert prepare(store) is None
    assert store.read("offsets/7") == plan_text({0: 9, 1: 30})
    assert store.read(SKIP) is None
    assert "batch 7 was finished before anything was skipped" in caplog.text


def test_several_partitions_of_a_batch_can_be_asked_for(store: CheckpointStore) -> None:
    """A batch with two bombs in two partitions takes two requests; of one partition a second one waits."""
    _ask(store)
    request = _ask(store, Skip(partition=0, first=5, last=5, append_ms=0, reason="too"))
    assert offsets_in(request.shortened(), TOPIC) == {0: 5, 1: 17}
    assert offsets_in(request.passed(), TOPIC) == {0: 6, 1: 20}
    with pytest.raises(SkipError, match="of partition 1 is asked for already"):
        _ask(store)
    assert read_request(store) == request
    prepare(store)
    assert offsets_in(request.plan.encode(), TOPIC) == {0: 9, 1: 30}, "the plan of a later request is Spark's own"


def test_a_record_batch_may_reach_beyond_the_plan(store: CheckpointStore) -> None:
    """Spark may plan to the middle of a record batch: the next batch begins behind the whole of it."""
    request = _ask(store, Skip(partition=1, first=28, last=35, append_ms=0, reason="x"))
    assert offsets_in(request.passed(), TOPIC) == {0: 9, 1: 36}


def test_what_is_unpacked_ahead_of_the_plan_is_passed_over_too(store: CheckpointStore) -> None:
    """A record behind the planned end may end the job: the batch is lengthened up to it, so that nothing is lost."""
    request = _ask(store, Skip(partition=1, first=33, last=33, append_ms=0, reason="x"))
    assert offsets_in(request.shortened(), TOPIC) == {0: 9, 1: 33}
    assert offsets_in(request.passed(), TOPIC) == {0: 9, 1: 34}


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (9, 9, "partition 1 offsets 9 to 9 are not in what is planned and not finished: batch 7"),
        (30 + READ_AHEAD_MAX, 30 + READ_AHEAD_MAX, "not in what is planned"),
        (17, 16, "are not between 1 and 10,000 offsets"),
        (17, 17 + OFFSETS_MAX, "are not between 1 and 10,000 offsets"),
    ],
)
def test_offsets_that_are_not_unfinished_are_refused(store: CheckpointStore, first: int, last: int, words: str) -> None:
    """What was read already, or is not planned, or is too much, is refused by name, and nothing is written."""
    with pytest.raises(SkipError, match=words):
        _ask(store, Skip(partition=1, first=first, last=last, append_ms=0, reason="x"))
    assert store.read(SKIP) is None


def test_without_an_unfinished_batch_nothing_can_be_skipped(store: CheckpointStore, tmp_path: Path) -> None:
    """A job that is stopped as it should be has no unfinished batch: the error says so."""
    finish_plan(tmp_path, 7)
    with pytest.raises(SkipError, match="every planned batch is finished"):
        _ask(store)


def test_each_offset_is_a_reject_under_the_id_of_its_place(store: CheckpointStore) -> None:
    """One reject an offset, with cause and reason, and without a value, as nobody has read one."""
    rejects = list(_ask(store).rejects())
    assert [(reject.partition, reject.offset, reject.append_ms) for reject in rejects] == [
        (1, 17, 1_700),
        (1, 18, 1_700),
        (1, 19, 1_700),
    ]
    assert {(r.topic, r.cause, r.key_base64, r.value_base64, r.value_bytes) for r in rejects} == {
        (TOPIC, "skipped", None, None, None)
    }
    assert rejects[0].detail == "passed over by heartwheel skip, unread: INC-7"


def test_a_request_that_can_not_be_read_is_told(store: CheckpointStore) -> None:
    """A damaged request stops the start with what to do."""
    store.replace(SKIP, b"{")
    with pytest.raises(SkipError, match="cannot be read"):
        prepare(store)
