"""What ended a query, in words for people, and whether starting again can mend it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Fault(NamedTuple):
    """Explain the end of a query.

    Args:
        message: what happened.
        hint: what to do.
        passing: whether it may be over by itself, so that the job should try again.
    """

    message: str
    hint: str | None
    passing: bool


_KNOWN: Final = (
    (
        r"UnknownTopicOrPartition|is not present in metadata|UNKNOWN_TOPIC_OR_PARTITION",
        "a topic of the job is missing in Kafka",
        "heartwheel topics --create",
        False,
    ),
    (
        r"Some data may have been lost|KAFKA_DATA_LOSS|data loss|OffsetOutOfRange",
        "unread heartbeats are gone from the topic, by its retention or as the topic was made anew",
        "members that beat in what is lost may be expired; to go on, run with --set kafka.fail_on_data_loss=false",
        False,
    ),
    (
        r"SaslAuthentication|AuthenticationException|AuthorizationException|SslAuthentication",
        "Kafka refused the job's credentials or rights",
        "see [kafka.client] in the configuration",
        False,
    ),
    (
        r"CorruptBlobError|UnknownBlobVersionError|StateVersionError",
        "the state in the checkpoint can not be read",
        "run the release that wrote it, or restore the checkpoint from a backup",
        False,
    ),
    (
        r"concurrentStreamLogUpdate|CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently using",
        "another job runs on the same checkpoint",
        "stop one of them",
        False,
    ),
    (
        r"No space left on device|Disk quota exceeded",
        "the disk of the checkpoint is full",
        "make room; the job goes on where it stopped",
        True,
    ),
    (
        r"TimeoutException|Connection to node|Disconnect|NetworkException|NotLeader|NotEnoughReplicas|bootstrap",
        "Kafka does not answer",
        "the job goes on as soon as Kafka is back",
        True,
    ),
)


def explain(error: BaseException) -> Fault:
    """Explain an error of a streaming query by the words in it."""
    words = str(error)
    for pattern, message, hint, passing in _KNOWN:
        found = re.search(pattern, words)
        if found:
            return Fault(f"{message} ({_line_with(words, found.start())})", hint, passing)
    # Whatever it is, the log is still there, and a batch is done again from the start: trying again is always safe.
    return Fault(f"the job failed: {_line_with(words, 0)}", "the log file of Spark has the details", passing=True)


def _line_with(words: str, at: int) -> str:
    start = words.rfind("\n", 0, at) + 1
    line = words[start:].partition("\n")[0].strip()
    return line if len(line) <= 300 else line[:300] + " ..."
