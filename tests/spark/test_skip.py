"""Records are passed over exactly: what is before and behind them is read, once, wherever a crash comes in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.spark.places import Place, place_of
from heartwheel.spark.planned_batch import offsets_in, planned_batch
from heartwheel.spark.skip import OFFSETS_MAX, SKIP, Skip, SkipError, SkipRequest, ask, finish, prepare, read_request
from support.planned import TOPIC, finish_plan, plan_text, write_plan

BOMB = Skip(partition=1, first=17, last=19, append_ms=1_700, reason="INC-7")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Leave a batch unfinished."""
    write_plan(tmp_path, 6, {0: 5, 1: 10}, finished=True)
    write_plan(tmp_path, 7, {0: 9, 1: 30}, finished=False)
    found = place_of(str(tmp_path), None)
    assert found is not None
    return found


def _ask(place: Place, skip: Skip = BOMB) -> SkipRequest:
    return ask(place, planned_batch(place, TOPIC), skip)


def _ends(place: Place) -> dict[int, int] | None:
    return offsets_in(place.read("offsets/7"), TOPIC)


def test_p6_every_other_offset_is_read_once(place: Place, tmp_path: Path) -> None:
    """P6: the batch reads up to the skipped offsets, the next begins behind them; other partitions are as planned."""
    _ask(place)
    assert place.read("offsets/7") == plan_text({0: 9, 1: 30}), "the command itself leaves Spark's logs alone"
    request = prepare(place)
    assert request is not None
    assert place.read("offsets/7") == plan_text({0: 9, 1: 17})
    assert not (tmp_path / "offsets" / ".7.crc").exists()
    batch = planned_batch(place, TOPIC)
    assert batch is not None
    assert batch.spans() == {0: (5, 9), 1: (10, 17)}
    finish_plan(tmp_path, 7)
    finish(place, request)
    assert place.read("offsets/7") == plan_text({0: 9, 1: 20})
    write_plan(tmp_path, 8, {0: 12, 1: 40}, finished=False)
    after = planned_batch(place, TOPIC)
    assert after is not None
    assert after.spans() == {0: (9, 12), 1: (20, 40)}
    assert place.read(SKIP) is None
    assert prepare(place) is None


def test_p6_a_crash_at_any_point_changes_nothing(place: Place, tmp_path: Path) -> None:
    """P6: every step can be done again, and the next start knows from the logs which are still to be done."""
    _ask(place)
    first = prepare(place)
    assert prepare(place) == first, "killed before the batch"
    (tmp_path / "offsets" / "7").unlink()
    assert prepare(place) == first, "killed while the plan was replaced"
    assert _ends(place) == {0: 9, 1: 17}
    finish_plan(tmp_path, 7)
    assert prepare(place) == first, "killed before the rejects were written"
    assert first is not None
    pending = place.read(SKIP)
    finish(place, first)
    assert pending is not None
    place.replace(SKIP, pending)
    assert prepare(place) is None, "killed before the request was deleted"
    assert place.read(SKIP) is None
    assert _ends(place) == {0: 9, 1: 20}


def test_a_batch_that_was_finished_after_all_is_left_alone(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """If the job got through before it was started anew, everything has been read: nothing is skipped or rejected."""
    _ask(place)
    finish_plan(tmp_path, 7)
    assert prepare(place) is None
    assert place.read("offsets/7") == plan_text({0: 9, 1: 30})
    assert place.read(SKIP) is None
    assert "batch 7 was finished before anything was skipped" in caplog.text


def test_several_partitions_of_a_batch_can_be_asked_for(place: Place) -> None:
    """A batch with two bombs in two partitions takes two requests; of one partition a second one waits."""
    _ask(place)
    request = _ask(place, Skip(partition=0, first=5, last=5, append_ms=0, reason="too"))
    assert offsets_in(request.shortened(), TOPIC) == {0: 5, 1: 17}
    assert offsets_in(request.passed(), TOPIC) == {0: 6, 1: 20}
    with pytest.raises(SkipError, match="of partition 1 is asked for already"):
        _ask(place)
    assert read_request(place) == request
    prepare(place)
    assert offsets_in(request.plan.encode(), TOPIC) == {0: 9, 1: 30}, "the plan of a later request is Spark's own"


def test_a_record_batch_may_reach_beyond_the_plan(place: Place) -> None:
    """Spark may plan to the middle of a record batch: the next batch begins behind the whole of it."""
    request = _ask(place, Skip(partition=1, first=28, last=35, append_ms=0, reason="x"))
    assert offsets_in(request.passed(), TOPIC) == {0: 9, 1: 36}


def test_what_is_unpacked_ahead_of_the_plan_is_passed_over_too(place: Place) -> None:
    """A record behind the planned end may end the job: the batch is lengthened up to it, so that nothing is lost."""
    request = _ask(place, Skip(partition=1, first=33, last=33, append_ms=0, reason="x"))
    assert offsets_in(request.shortened(), TOPIC) == {0: 9, 1: 33}
    assert offsets_in(request.passed(), TOPIC) == {0: 9, 1: 34}


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        (9, 9, "partition 1 offsets 9 to 9 are not in what is planned and not finished: batch 7"),
        (5_030, 5_030, "not in what is planned"),
        (17, 16, "are not between 1 and 10,000 offsets"),
        (17, 17 + OFFSETS_MAX, "are not between 1 and 10,000 offsets"),
    ],
)
def test_offsets_that_are_not_unfinished_are_refused(place: Place, first: int, last: int, words: str) -> None:
    """What was read already, or is not planned, or is too much, is refused by name, and nothing is written."""
    with pytest.raises(SkipError, match=words):
        _ask(place, Skip(partition=1, first=first, last=last, append_ms=0, reason="x"))
    assert place.read(SKIP) is None


def test_without_an_unfinished_batch_nothing_can_be_skipped(place: Place, tmp_path: Path) -> None:
    """A job that is stopped as it should be has no unfinished batch: the error says so."""
    finish_plan(tmp_path, 7)
    with pytest.raises(SkipError, match="every planned batch is finished"):
        _ask(place)


def test_each_offset_is_a_reject_under_the_id_of_its_place(place: Place) -> None:
    """One reject an offset, with cause and reason, and without a value, as nobody has read one."""
    rejects = list(_ask(place).rejects())
    assert [(reject.partition, reject.offset, reject.append_ms) for reject in rejects] == [
        (1, 17, 1_700),
        (1, 18, 1_700),
        (1, 19, 1_700),
    ]
    assert {(r.topic, r.cause, r.key_base64, r.value_base64, r.value_bytes) for r in rejects} == {
        (TOPIC, "skipped", None, None, None)
    }
    assert rejects[0].detail == "passed over by heartwheel skip, unread: INC-7"


def test_a_request_that_can_not_be_read_is_told(place: Place) -> None:
    """A damaged request stops the start with what to do."""
    place.replace(SKIP, b"{")
    with pytest.raises(SkipError, match="cannot be read"):
        prepare(place)
