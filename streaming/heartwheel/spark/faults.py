"""What ended a query, in words for people, and whether starting again can mend it."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Fault(NamedTuple):
    """Explain the end of a query.

    Args:
        message: what happened.
        hint: what to do.
        tries_max: how often in a row, without a batch in between, the job should try again; `None` for ever.
    """

    message: str
    hint: str | None
    tries_max: int | None


_NEVER: Final = 0
_FOR_EVER: Final = None
_TRIES_UNEXPLAINED: Final = 3


_KNOWN: Final = (
    (
        r"UnknownTopicOrPartition|is not present in metadata|UNKNOWN_TOPIC_OR_PARTITION",
        "a topic of the job is missing in Kafka",
        "heartwheel topics --create",
        _NEVER,
    ),
    (
        r"Some data may have been lost|KAFKA_DATA_LOSS|data loss|OffsetOutOfRange",
        "unread heartbeats are gone from the topic, by its retention or as the topic was made anew",
        "members that beat in what is lost may be expired; to go on, run with --set kafka.fail_on_data_loss=false",
        _NEVER,
    ),
    (
        r"SaslAuthentication|AuthenticationException|AuthorizationException|SslAuthentication",
        "Kafka refused the job's credentials or rights",
        "see [kafka.client] in the configuration",
        _NEVER,
    ),
    (
        r"CorruptBlobError|UnknownBlobVersionError|StateVersionError",
        "the state in the checkpoint can not be read",
        "run the release that wrote it, or restore the checkpoint from a backup",
        _NEVER,
    ),
    (
        r"concurrentStreamLogUpdate|CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently using",
        "another job runs on the same checkpoint",
        "stop one of them",
        _NEVER,
    ),
    (
        r"No space left on device|Disk quota exceeded",
        "the disk of the checkpoint is full",
        "make room; the job goes on where it stopped",
        _FOR_EVER,
    ),
    (
        r"TimeoutException|Connection to node|Disconnect|NetworkException|NotLeader|NotEnoughReplicas|bootstrap",
        "Kafka does not answer",
        "the job goes on as soon as Kafka is back",
        _FOR_EVER,
    ),
)


def explain(error: BaseException) -> Fault:
    """Explain an error of a streaming query by the words in it."""
    words = str(error)
    for pattern, message, hint, tries_max in _KNOWN:
        found = re.search(pattern, words)
        if found:
            return Fault(f"{message} ({_line_with(words, found.start())})", hint, tries_max)
    # A batch is done again from its start, so trying again is always safe; but what fails each time must be heard of.
    named = re.search(r"^\s*(?:\[[A-Z_.]+\]|[\w.]+(?:Exception|Error)\b).*", words, re.MULTILINE)
    line = _line_with(words, named.start() if named else 0)
    return Fault(f"the job failed: {line}", "the log file of Spark has the details", _TRIES_UNEXPLAINED)


def _line_with(words: str, at: int) -> str:
    start = words.rfind("\n", 0, at) + 1
    line = words[start:].lstrip().partition("\n")[0].strip()
    return line if len(line) <= 300 else line[:300] + " ..."
