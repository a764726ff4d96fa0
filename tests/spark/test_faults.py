"""What ends a query is said in words for people, and only what may pass is tried again."""

from __future__ import annotations

import pytest

from heartwheel.spark.faults import explain


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
        ("heartwheel.shard.frame.CorruptBlobError: the state blob is not base64", "the state in the checkpoint", 0),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update", "another job runs on the same checkpoint", 0),
        ("java.io.IOException: No space left on device", "the disk of the checkpoint is full", None),
        ("java.lang.IllegalStateException: nobody has seen this before", "the job failed: java.lang.Illegal", 3),
    ],
)
def test_a_fault_is_explained(words: str, message: str, tries_max: int | None) -> None:
    """Each known cause has its words; what may pass is tried for ever, what can not never, the rest three times."""
    fault = explain(RuntimeError(f"Job aborted due to stage failure\n{words}\n\tat Some.java"))
    assert fault.tries_max == tries_max
    assert message in fault.message
    assert fault.hint


def test_long_errors_are_cut_to_the_line_that_matters() -> None:
    """A stack trace of a thousand lines becomes one line of bearable length."""
    fault = explain(RuntimeError("x" * 5_000 + "\nTimeoutException: Timed out\n" + "\tat Some.java\n" * 1_000))
    assert "\n" not in fault.message
    assert len(fault.message) < 400
