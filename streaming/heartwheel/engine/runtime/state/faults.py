"""What ended a query, in words for people, and whether starting again can mend it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from heartwheel.engine.runtime.map.frames import LONG_RECORD_ERROR


class Fault(NamedTuple):
    """Explain the end of a query.

    Args:
        tries_max: how often in a row, without a batch in between, the job should try again; `None` for ever.
    """

    message: str
    hint: str | None
    tries_max: int | None


_NEVER: Final = 0
_FOR_EVER: Final = None
_TRIES_UNEXPLAINED: Final = 3


OUT_OF_MEMORY: Final = frozenset({3, 52})
"""Exit codes of a JVM that ends at once when its heap is full, and of Spark when one of its threads found it so."""

UNKNOWN_HEARTBEAT: Final = "a shard does not know a heartbeat that came without its bytes"
"""What happened where a heartbeat came so that should not have (`heartwheel.engine.shard.heartbeats`)."""

LONG_RECORD: Final = "a record is longer than most"
"""What happened where frames of short records were to hold one that is not (`heartwheel.engine.runtime.map.frames`)."""

_KNOWN: Final = (
    (
        # As an error says it: the plan of every query has the word, too, and Spark puts the plan beside any error.
        rf"\[USER_RAISED_EXCEPTION\] {LONG_RECORD_ERROR}",
        LONG_RECORD,
        "the batch is read again, and from now on the bytes of all records are counted until the job is started again",
        _FOR_EVER,
    ),
    (
        r"UnknownTopicOrPartition|is not present in metadata|UNKNOWN_TOPIC_OR_PARTITION",
        "a topic of the job is missing in Kafka",
        "heartwheel topics --create",
        _NEVER,
    ),
    (
        r"Some data may have been lost|KAFKA_DATA_LOSS|data loss|OffsetOutOfRange",
        "unread heartbeats are gone from the topic, by its retention or because the topic was made again",
        "members that beat in what is lost may be expired; to continue, run with --set kafka.fail_on_data_loss=false",
        _NEVER,
    ),
    (
        r"SaslAuthentication|AuthenticationException|AuthorizationException|SslAuthentication|not accept the login",
        "Kafka refused the job's credentials or rights",
        "see [kafka.client] in the configuration",
        _NEVER,
    ),
    (
        r"RecordTooLarge|MESSAGE_TOO_LARGE|larger than the max message size",
        "a topic that the job writes to takes no record of this size",
        "set max.message.bytes of its output topics to 1048576 or more; no row is longer",
        _NEVER,
    ),
    (
        r"BlockFileError",
        "the state in the checkpoint cannot be read",
        "restore the checkpoint from a backup, its folder blocks included, or start on a new checkpoint.location",
        _NEVER,
    ),
    (
        r"BlockStoreError",
        "the block files of the state cannot be reached",
        "the job continues once they are; each executor needs the credentials of the object store (docs/state.md)",
        _FOR_EVER,
    ),
    (
        r"CorruptBlobError|OldBlobVersionError|UnknownBlobVersionError|StateVersionError",
        "the state in the checkpoint cannot be read",
        "run the release that wrote it, restore the checkpoint from a backup, or start on a new checkpoint.location",
        _NEVER,
    ),
    (
        # Not all of CANNOT_LOAD_STATE_STORE: a store that cannot be reached for a while is no damage.
        r"LOAD_STATE_STORE(\.(CANNOT|INVALID|UNEXPECTED)_|(?s:.*)EOFException)|MISSING_(STATE_DIRECTORY|METADATA_FILE)",
        "the state in the checkpoint is damaged or lacks a part",
        "restore the checkpoint from a backup, or start on a new checkpoint.location, which reads the topic again",
        _NEVER,
    ),
    (
        r"Incomplete log file|MALFORMED_LOG_FILE|INVALID_LOG_VERSION|jackson\.core\.\S*Json\w*Exception",
        "the offsets in the checkpoint are damaged, or a newer Spark wrote them",
        "restore the checkpoint from a backup, or start on a new checkpoint.location, which reads the topic again",
        _NEVER,
    ),
    (
        r"concurrentStreamLogUpdate|CONCURRENT_STREAM_LOG_UPDATE|Multiple streaming queries are concurrently using",
        "another job runs on the same checkpoint",
        "stop one of them",
        _NEVER,
    ),
    (
        r"UnknownHeartbeatError",
        UNKNOWN_HEARTBEAT,
        "the batch is read again with all bytes, and so is all that follows until the job is started again",
        _FOR_EVER,
    ),
    (
        r"No space left on device|Disk quota exceeded",
        "the disk of the checkpoint is full",
        "make room; the job continues where it stopped",
        _FOR_EVER,
    ),
    (
        r"Python worker exited unexpectedly|Failed to connect to the Python worker|Python worker failed to connect",
        "a Python worker has died",
        "if the system's log says that memory ran short, lower spark.driver_memory or engine.catch_up_max_records",
        _TRIES_UNEXPLAINED,
    ),
    (
        (
            r"TimeoutException|Connection to node|Disconnect|NetworkException|NotLeader|NotEnoughReplicas|bootstrap|"
            r"no Kafka answers"
        ),
        "Kafka does not answer",
        "the job continues as soon as Kafka is back",
        _FOR_EVER,
    ),
)


def explain(error: BaseException) -> Fault:
    """Explain an error of a streaming query by the words in it and in what caused it."""
    words = f"{error}\n{_causes(error)}"
    for pattern, message, hint, tries_max in _KNOWN:
        found = re.search(pattern, words)
        if found:
            return Fault(f"{message} ({_line_with(words, found.start())})", hint, tries_max)
    # A batch is done again from its start, so trying again is always safe; but what fails each time must be heard of.
    named = re.search(r"^\s*(?:\[[A-Z_.]+\]|[\w.]+(?:Exception|Error)\b).*", words, re.MULTILINE)
    line = _line_with(words, named.start() if named else 0)
    return Fault(f"the job failed: {line}", "the log file of Spark has the details", _TRIES_UNEXPLAINED)


def _causes(error: BaseException) -> str:
    """Return the messages in the JVM's stack trace: a full disk is reported nowhere else."""
    trace = str(getattr(error, "_stackTrace", "") or "")
    return "\n".join(line for line in trace.splitlines() if not line.lstrip().startswith("at "))


def explain_end(exit_code: int | None, *, memory: str, log_file: Path | None) -> Fault:
    """Explain why Spark's JVM ended.

    Args:
        exit_code: its own, negative for the signal that ended it; `None` if it is not known.
        memory: the heap it had.
    """
    if exit_code in OUT_OF_MEMORY:
        return Fault(
            f"Spark's JVM ran out of memory; it had {memory}",
            "raise spark.driver_memory, or lower engine.catch_up_max_records; then start the job again",
            _NEVER,
        )
    return Fault(f"Spark's JVM {_end(exit_code)}", f"its log may say why: {log_file}; start the job again", _NEVER)


def _end(exit_code: int | None) -> str:
    if exit_code is None:
        return "does not answer"
    return f"was ended by signal {-exit_code}" if exit_code < 0 else f"ended with code {exit_code}"


def _line_with(words: str, at: int) -> str:
    start = words.rfind("\n", 0, at) + 1
    line = words[start:].lstrip().partition("\n")[0].strip()
    return line if len(line) <= 300 else line[:300] + " ..."
