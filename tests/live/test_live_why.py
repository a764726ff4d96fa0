"""Why somebody was expired: every reason has its words, its setting and something to do."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.base.phrases import ago, count, length, setting
from heartwheel.readers.live.why import why
from heartwheel.wire.events import JOB, JOB_RUN
from heartwheel.wire.verdicts import ENGINE_REASONS, ExpiryReason
from support.output_rows import expired

WORDS = {
    ExpiryReason.SESSION_TIMEOUT: ["No heartbeat", "7.2 s", "6 s", "session.timeout.ms", "heartbeat.interval.ms"],
    ExpiryReason.REBALANCE_TIMEOUT: ["did not join again", "max.poll.interval.ms", "max.poll.records"],
    ExpiryReason.SYNC_TIMEOUT: ["generation 3", "SyncGroup", "leader"],
    ExpiryReason.PENDING_TIMEOUT: ["handed a member id", "session.timeout.ms", "restarts in a loop"],
    ExpiryReason.POLL_TIMEOUT: ["took itself out", "max.poll.interval.ms", "max.poll.records"],
    ExpiryReason.REVOCATION_TIMEOUT: ["give them up", "max.poll.interval.ms", "rebalance listener"],
    ExpiryReason.WORKER_FAILED: ["It failed", "6.0 s after its last heartbeat", "its own log"],
    ExpiryReason.NEW_MEMBER_TIMEOUT: ["new in its group", "join phase", "max.poll.interval.ms"],
}


@pytest.mark.parametrize("reason", ENGINE_REASONS)
def test_every_reason_is_explained(reason: ExpiryReason) -> None:
    """What was missing, for how long, Kafka's setting that governs it, what to look at, how late it was known."""
    sentences = why(expired("g", "m", reason=reason.value))
    text = " ".join(sentences)
    assert [word for word in WORDS[reason] if word not in text] == []
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in sentences)
    assert "1.2 s after that" in sentences[-1]


def test_a_deadline_that_an_outage_put_off_is_explained() -> None:
    """Why the deadline is later than the last heartbeat and the timeout say."""
    row = expired("g", "m")
    assert not any("Kafka could not be written to" in sentence for sentence in why(row))
    renewed = msgspec.structs.replace(row, renewed_ms=row.last_seen_ms + 21_000)
    assert any("could not be written to" in each and "21.0 s after its last heartbeat" in each for each in why(renewed))


def test_a_reason_of_a_newer_release_is_named() -> None:
    """A reason that is not known is said as it is, not hidden."""
    assert "bored_timeout" in why(expired("g", "m", reason="bored_timeout"))[0]


def test_a_failure_is_said_first() -> None:
    """How it failed comes first, in the words of whoever watched it, and one that never beat was never heard."""
    row = expired("g", "m", reason=ExpiryReason.WORKER_FAILED, failure="ended by SIGKILL, exit code 137")
    assert why(row)[0] == ("It failed: ended by SIGKILL, exit code 137. That was said 6.0 s after its last heartbeat.")
    unheard = msgspec.structs.replace(row, failure="", last_seen_ms=row.deadline_ms)
    assert why(unheard)[0] == "It failed; no reason given. It had sent no heartbeat before that."


@pytest.mark.parametrize(
    ("failure", "words", "others"),
    [
        ("exit code 3", ["--ok-exit"], ["SIGKILL", "memory"]),
        ("ended by SIGKILL, exit code 137", ["memory ran out"], ["--ok-exit"]),
        ("disk full", [], ["SIGKILL", "--ok-exit"]),
    ],
)
def test_the_advice_fits_the_failure(failure: str, words: list[str], others: list[str]) -> None:
    """A worker that ended with exit code 3 was killed by nobody, and a failure by curl has no exit code."""
    text = " ".join(why(expired("g", "m", reason=ExpiryReason.WORKER_FAILED, failure=failure)))
    assert all(word in text for word in [*words, "Look at its own log"])
    assert not any(word in text for word in others)


def test_a_job_that_is_overdue_is_explained() -> None:
    """A job is spoken of by its period and its last success; a run that did not end, by its limit."""
    day_ms, hour_ms = 86_400_000, 3_600_000
    row = expired("backup", "job", group_kind="presence", client_id=JOB, session_timeout_ms=day_ms + hour_ms)
    overdue = msgspec.structs.replace(row, last_seen_ms=row.deadline_ms - row.session_timeout_ms)
    text = " ".join(why(overdue))
    assert "expected within 1 d 1 h, period and grace together; the last one was 1 d 1 h before" in text
    assert "cron" in text
    running = " ".join(why(msgspec.structs.replace(row, client_id=JOB_RUN, session_timeout_ms=2 * hour_ms)))
    assert "within 2 h it must end" in running
    assert "--limit" in running
    assert "session.timeout.ms" not in text + running


def test_a_worker_has_settings_of_its_own() -> None:
    """A plain worker is told how it names its session, and nothing of Kafka's settings for consumers."""
    text = " ".join(why(expired("g", "m", group_kind="presence")))
    assert all(word in text for word in ("?session=30s", "--session", "session_timeout_ms", "is 6 s (named"))
    assert "session.timeout.ms" not in text.replace("session_timeout_ms", "")


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_949, "59.9 s"),
        (60_000, "1 min"),
        (750_000, "12 min 30 s"),
        (3_600_000, "1 h"),
        (90_000_000, "1 d 1 h"),
        (-1_500, "-1.5 s"),
    ],
)
def test_lengths_read_well(duration_ms: int, words: str) -> None:
    """A length is said as exactly as a person wants it at its size."""
    assert length(duration_ms) == words


def test_other_words() -> None:
    """Settings have no digits that say nothing, a moment ahead is no time ago, and one thing is no things."""
    assert (setting(6_000), setting(1_500)) == ("6 s", "1.5 s")
    assert (ago(5, 0), ago(0, 8_700), ago(0, 70_000)) == ("0 s", "8 s", "1 min 10 s")
    assert (count(1, "trigger"), count(12_345, "trigger")) == ("1 trigger", "12,345 triggers")
