"""What ends the job on the same batch twice is named at the third start."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.engine.heartbeats.plugin import heartbeat_job
from heartwheel.engine.runtime.driver import unfinished
from heartwheel.engine.runtime.driver.checkpoint import open_checkpoint
from heartwheel.engine.runtime.driver.planned_batch import READ_AHEAD_MAX
from heartwheel.engine.runtime.driver.starts import STARTS
from heartwheel.engine.runtime.driver.unfinished import Unfinished
from heartwheel.kafka.bounded import OversizedBatch
from heartwheel.kafka.client import KafkaUnreachableError
from heartwheel.settings import Settings, load_settings
from support.planned import TOPIC, finish_plan, write_plan

MEMORY = "spark.driver_memory=1GiB"
BOMB = OversizedBatch(TOPIC, 1, 17, 19, 0, 32_862)


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leave a batch unfinished, in which nothing is too large."""
    folder = tmp_path / "checkpoint"
    open_checkpoint(_job_settings(folder))
    write_plan(folder, 6, {0: 5, 1: 10}, finished=True)
    write_plan(folder, 7, {0: 5, 1: 30}, finished=False)
    monkeypatch.setattr(unfinished, "find_oversized", lambda *_, **__: [])
    return folder


def _job_settings(folder: Path, memory: str = MEMORY) -> Settings:
    return load_settings(None, {}, [f"checkpoint.location={folder}", memory]).settings


def _start(folder: Path, memory: str = MEMORY) -> Unfinished:
    return Unfinished(heartbeat_job(_job_settings(folder, memory)))


def test_p6_the_third_start_names_what_is_too_large(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P6: the run that planned it and one start have ended on a batch: the next looks into it, names it and stops."""
    asked: list[object] = []

    def found(_bootstrap: str, topic: str, spans: object, **_: object) -> list[OversizedBatch]:
        asked.append((topic, spans))
        return [BOMB]

    monkeypatch.setattr(unfinished, "find_oversized", found)
    assert _start(checkpoint).look(None) is None
    assert asked == []
    fault = _start(checkpoint).look(None)
    assert asked == [(TOPIC, {1: (10, 30 + READ_AHEAD_MAX)})]
    assert fault is not None
    assert fault.message.startswith(
        f"the job has ended 2 times on the same batch 7, {TOPIC} partition 1 offsets 10 to 29"
    )
    assert "partition 1 offsets 17 to 19: a record batch of 32,862 bytes that unpacks to more than 64" in fault.message
    command = f"heartwheel skip --checkpoint {checkpoint} --partition 1 --offset 17 --to 19 --reason"
    assert fault.hint is not None
    assert fault.hint.startswith(command)
    again = _start(checkpoint).look(None)
    assert again is not None
    assert again == fault, "a start that is refused runs nothing, and does not count"


def test_a_batch_that_ends_the_job_for_another_reason_is_tried_again(
    checkpoint: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Killed again and again, the job goes on at every start: it only says on which batch it was."""
    for _ in range(5):
        assert _start(checkpoint).look(None) is None
    assert f"the job has ended 4 times on the same batch 7, {TOPIC} partition 1 offsets 10 to 29" in caplog.text


def test_a_batch_without_a_bomb_that_takes_all_memory_twice_is_not_tried_for_ever(checkpoint: Path) -> None:
    """Twice out of memory on the same batch with the same memory: stopped, with a hint; more memory is tried."""
    _start(checkpoint).note_out_of_memory()
    assert _start(checkpoint).look(None) is None
    _start(checkpoint).note_out_of_memory()
    fault = _start(checkpoint).look(None)
    assert fault is not None
    assert "2 times out of memory" in fault.message
    assert "raise spark.driver_memory, which is 1GiB" in str(fault.hint)
    assert _start(checkpoint, "spark.driver_memory=2GiB").look(None) is None


def test_another_batch_begins_the_count_anew(checkpoint: Path) -> None:
    """Starts on one batch say nothing of the next; a count that cannot be read begins anew."""
    assert _start(checkpoint).look(None) is None
    finish_plan(checkpoint, 7)
    assert _start(checkpoint).look(None) is None
    write_plan(checkpoint, 8, {0: 6, 1: 31}, finished=False)
    assert _start(checkpoint).look(None) is None
    before = (checkpoint / STARTS).read_bytes()
    (checkpoint / STARTS).write_bytes(b'{"plan"')
    assert _start(checkpoint).look(None) is None
    assert (checkpoint / STARTS).read_bytes() == before


def test_a_broker_that_is_away_keeps_nothing_from_starting(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is planned cannot be looked into without Kafka: that is said, and the job waits for Kafka as always."""

    def away(*_: object, **__: object) -> list[OversizedBatch]:
        raise KafkaUnreachableError("no Kafka answers")

    monkeypatch.setattr(unfinished, "find_oversized", away)
    assert [_start(checkpoint).look(None) for _ in range(3)] == [None] * 3
    assert "what is planned cannot be looked at: no Kafka answers" in caplog.text
