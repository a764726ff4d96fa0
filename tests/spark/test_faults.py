"""What ends a query is said in words for people, and only what may pass is tried again."""

from __future__ import annotations

from pathlib import Path

import pytest

from heartwheel.engine.heartbeats.plugin import heartbeat_job
from heartwheel.engine.runtime.state.faults import explain, explain_end
from heartwheel.settings import load_settings


@pytest.mark.parametrize(
    ("words", "message", "tries_max"),
    [
        (
            "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node",
            "Kafka does not answer",
            None,
        ),
        ("UnknownTopicOrPartitionException: This server does not host this topic", "a topic of the job is missing", 0),
        ("[KAFKA_DATA_LOSS.X] Some data may have been lost because", "unread heartbeats are gone", 0),
        ("SaslAuthenticationException: Authentication failed", "Kafka refused", 0),
        ("no Kafka answers at kafka:9092 (tried to count the partitions of a topic)", "Kafka does not answer", None),
        ("Kafka at kafka:9092 does not accept the login: denied", "Kafka refused", 0),
        ("RecordTooLargeException: The message is 1048600 bytes", "a topic that the job writes to takes no", 0),
        (
            "heartwheel.engine.shard.frame.CorruptBlobError: the state blob is not base64",
            "the state in the checkpoint",
            0,
        ),
        (
            "heartwheel.engine.shard.block_files.BlockFileError: block file /c/blocks/3/0000 of shard 3 cannot be read",
            "the state in the checkpoint",
            0,
        ),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update", "another job runs on the same checkpoint", 0),
        (
            "[CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS] An error occurred during loading state.",
            "the state in the checkpoint is damaged",
            0,
        ),
        (
            "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error\n\tat A.java\nCaused by: java.io.EOFException: ended",
            "the state in the checkpoint is damaged",
            0,
        ),
        ("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred", "the job failed: [CANNOT_LOAD", 3),
        ("java.lang.IllegalStateException: Incomplete log file", "the offsets in the checkpoint are damaged", 0),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", "a Python worker has died", 3),
        (
            "heartwheel.engine.shard.heartbeats.UnknownHeartbeatError: the heartbeat at offset 7",
            "a shard does not know",
            None,
        ),
        ("[USER_RAISED_EXCEPTION] LongRecordError: the record at offset 7", "a record is longer than most", None),
        ("No space left on device\nraise_error(LongRecordError: the record at)", "the disk of the checkpoint", None),
        ("java.io.IOException: No space left on device", "the disk of the checkpoint is full", None),
        ("java.lang.IllegalStateException: nobody has seen this before", "the job failed: java.lang.Illegal", 3),
    ],
)
def test_a_fault_is_explained(words: str, message: str, tries_max: int | None) -> None:
    """Each known cause has its words; what may pass is tried for ever, what cannot never, the rest three times."""
    fault = explain(RuntimeError(f"Job aborted due to stage failure\n{words}\n\tat Some.java"))
    assert fault.tries_max == tries_max
    assert message in fault.message
    assert fault.hint


def test_all_bytes_are_sent_once_one_was_missing(tmp_path: Path) -> None:
    """After a heartbeat that was not known without its bytes, all come with theirs; other faults change nothing."""
    job = heartbeat_job(load_settings(None, {}, [f"checkpoint.location={tmp_path / 'checkpoint'}"]).settings)
    job.adapt_to(explain(RuntimeError("No space left on device")))
    assert job.config.repeats
    job.adapt_to(
        explain(RuntimeError("heartwheel.engine.shard.heartbeats.UnknownHeartbeatError: the heartbeat at offset 7"))
    )
    assert not job.config.repeats


def test_records_of_any_length_are_taken_once_one_was_long(tmp_path: Path) -> None:
    """After a long record, and no other fault, frames are bounded by bytes; a person's bound holds from the start."""
    flags = [f"checkpoint.location={tmp_path / 'checkpoint'}"]
    job = heartbeat_job(load_settings(None, {}, flags).settings)
    job.adapt_to(explain(RuntimeError("No space left on device")))
    assert not job.config.long_records
    job.adapt_to(explain(RuntimeError("[USER_RAISED_EXCEPTION] LongRecordError: the record at offset 7")))
    assert (job.config.long_records, job.config.repeats) == (True, True)
    for name in ("maxBytesPerBatch=1m", "maxRecordsPerBatch=1000"):
        theirs = load_settings(None, {}, [*flags, f"spark.conf.spark.sql.execution.arrow.{name}"]).settings
        assert heartbeat_job(theirs).config.long_records


def test_a_cause_that_only_the_stack_trace_tells_is_found() -> None:
    """Spark says that state cannot be written, and deep below why: the disk is full, which may pass."""
    error = RuntimeError("[CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files")
    trace = "org.X: Error writing\n\tat TimeoutException.java\nCaused by: No space left on device\n"
    error._stackTrace = trace  # type: ignore[attr-defined]  # as PySpark's errors have it
    fault = explain(error)
    assert fault.tries_max is None
    assert "the disk of the checkpoint is full (Caused by: No space left on device)" in fault.message


def test_long_errors_are_cut_to_the_line_that_matters() -> None:
    """A stack trace of a thousand lines becomes one line of bearable length."""
    fault = explain(RuntimeError("x" * 5_000 + "\nTimeoutException: Timed out\n" + "\tat Some.java\n" * 1_000))
    assert "\n" not in fault.message
    assert len(fault.message) < 400


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [
        (3, "ran out of memory; it had 2GiB"),
        (52, "ran out of memory; it had 2GiB"),
        (-9, "was ended by signal 9"),
        (1, "ended with code 1"),
        (None, "does not answer"),
    ],
)
def test_the_end_of_the_jvm_is_explained(exit_code: int | None, words: str) -> None:
    """A full heap is told from a kill, and each comes with what to do."""
    fault = explain_end(exit_code, memory="2GiB", log_file=None)
    assert fault.message == f"Spark's JVM {words}"
    assert fault.hint
    assert fault.tries_max == 0
