"""Judges the verdicts on one member by its own heartbeats in the log.

The member knows when its heartbeats were appended, for the broker says so in its answers. So it knows by itself which
silences there were, and when each of them had to end in an expiration. All times of the log are the broker's.

What the judge cannot know is not judged: if the fate of a heartbeat is unknown, or the brokers were away meanwhile, an
expiration that does not come in time is `void` and neither missed nor late.
"""

from __future__ import annotations

import bisect
import collections
import enum
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

_BEATS_MAX: Final = 4_096
_CLAIMS_MAX: Final = 256


class CanaryOutcome(enum.StrEnum):
    """How a silence, or an expiration without one, ended."""

    IN_TIME = "in_time"
    LATE = "late"
    MISSED = "missed"
    FALSE = "false"
    VOID = "void"


class JudgedOutcome(NamedTuple):
    """One outcome.

    Args:
        deadline_ms: when the member had to be expired, or was expired falsely; epoch ms.
        lateness_ms: how long after its deadline the expiration was in Kafka, ms; `None` if it never was.
        reason: why it cannot be judged, or what is wrong.
    """

    outcome: CanaryOutcome
    deadline_ms: int
    lateness_ms: int | None = None
    reason: str | None = None


class Claim(NamedTuple):
    """What an expiration claims.

    Args:
        last_seen_ms: the time of the member's last event, epoch ms.
        deadline_ms: when it had to be expired, epoch ms.
        append_ms: when the expiration was appended, epoch ms.
    """

    id: str
    last_seen_ms: int
    deadline_ms: int
    append_ms: int


class _Silence(msgspec.Struct):
    """A silence whose expiration has not been seen.

    `doubt` is a reason why it may never be, `slow` one why it may be late.
    """

    last_ms: int
    deadline_ms: int
    doubt: str | None
    slow: str | None = None


class CanaryJudge:
    """A judge of the verdicts on one member.

    Args:
        objective_ms: an expiration known later after its deadline than that is late, ms.
        missed_after_ms: one that is not known so long after its deadline is missed, ms.
    """

    def __init__(self, *, session_ms: int, objective_ms: int, missed_after_ms: int) -> None:
        self._session_ms, self.objective_ms, self._missed_after_ms = session_ms, objective_ms, missed_after_ms
        self._sent = self._answered = 0
        # Append times by the answers of the broker, sorted.
        self._beats: collections.deque[int] = collections.deque(maxlen=_BEATS_MAX)
        self._doubt: str | None = None
        self._opened_ms = -1
        self._open: dict[int, _Silence] = {}
        self._claims: collections.deque[tuple[int, Claim]] = collections.deque(maxlen=_CLAIMS_MAX)
        self._false: collections.deque[str] = collections.deque(maxlen=_CLAIMS_MAX)

    @property
    def pending(self) -> int:
        """How many silences are over and wait for their expiration."""
        return len(self._open)

    def sent(self) -> None:
        """Note that a heartbeat is on its way; answers come in the order of sending."""
        self._sent += 1

    def answered(self, append_ms: int | None) -> None:
        """Note the fate of the oldest heartbeat on its way.

        Args:
            append_ms: when it was appended, epoch ms; `None` if nobody knows whether it was.
        """
        self._answered += 1
        if append_ms is None:
            self._doubt = "a heartbeat went without an answer"
            return
        if self._beats:
            # The engine lets time of a group never go back, and neither does this.
            append_ms = max(append_ms, self._beats[-1])
            self._close_gap(append_ms)
        self._beats.append(append_ms)
        self._doubt = None

    def claimed(self, claim: Claim) -> None:
        """Note an expiration of the member; it is judged when the fate of all heartbeats sent before is known."""
        self._claims.append((self._sent, claim))

    def settle(self, now_ms: int, trouble: str | None = None, slow: str | None = None) -> Iterator[JudgedOutcome]:
        """Judge what can be judged by now, each outcome once.

        Args:
            now_ms: the broker's clock, or a time that is surely before it; epoch ms.
            trouble: why no expiration can be written or seen for now, whose absence therefore means nothing.
            slow: why an expiration may be late for now; one that never comes is missed all the same.
        """
        if self._answered == self._sent and self._beats and now_ms >= self._beats[-1] + self._session_ms:
            self._expect(self._beats[-1])
        for silence in self._open.values():
            silence.doubt = silence.doubt or trouble
            silence.slow = silence.slow or slow
        while self._claims and self._claims[0][0] <= self._answered:
            yield from self._judge(self._claims.popleft()[1])
        overdue = [each for each in self._open.values() if now_ms >= each.deadline_ms + self._missed_after_ms]
        for silence in overdue:
            del self._open[silence.last_ms]
            outcome = CanaryOutcome.VOID if silence.doubt else CanaryOutcome.MISSED
            yield JudgedOutcome(outcome, silence.deadline_ms, None, silence.doubt)

    def _close_gap(self, append_ms: int) -> None:
        last_ms = self._beats[-1]
        if append_ms >= last_ms + self._session_ms:
            self._expect(last_ms)
        elif self._opened_ms == last_ms:
            # The broker's clock was set back: by the log there was no silence.
            self._open.pop(last_ms, None)

    def _expect(self, last_ms: int) -> None:
        if last_ms > self._opened_ms:
            self._opened_ms = last_ms
            self._open[last_ms] = _Silence(last_ms, last_ms + self._session_ms, self._doubt)

    def _judge(self, claim: Claim) -> Iterator[JudgedOutcome]:
        wrong = self._wrong(claim)
        if wrong is not None:
            if claim.id not in self._false:
                self._false.append(claim.id)
                yield JudgedOutcome(CanaryOutcome.FALSE, claim.deadline_ms, claim.append_ms - claim.deadline_ms, wrong)
            return
        if self._beats and claim.last_seen_ms == self._beats[-1] and claim.deadline_ms >= claim.last_seen_ms:
            self._expect(claim.last_seen_ms)  # known before this side's clock had come so far
        silence = self._silence_of(claim)
        if silence is not None:
            del self._open[silence.last_ms]
            yield self._known(silence, claim)

    def _wrong(self, claim: Claim) -> str | None:
        """Return what is false about an expiration: alive while now < deadline, expired at now >= deadline."""
        after = bisect.bisect_right(self._beats, claim.last_seen_ms)
        if after < len(self._beats) and self._beats[after] < claim.deadline_ms:
            return f"a heartbeat was appended {claim.deadline_ms - self._beats[after]} ms before the deadline"
        if claim.deadline_ms < claim.last_seen_ms + self._session_ms:
            return f"the session was {claim.deadline_ms - claim.last_seen_ms} ms long, not {self._session_ms} ms"
        return None

    def _silence_of(self, claim: Claim) -> _Silence | None:
        before = bisect.bisect_right(self._beats, claim.last_seen_ms)
        return self._open.get(self._beats[before - 1]) if before else None

    def _known(self, silence: _Silence, claim: Claim) -> JudgedOutcome:
        if claim.last_seen_ms != silence.last_ms:
            return JudgedOutcome(
                CanaryOutcome.VOID, claim.deadline_ms, None, "a heartbeat whose answer was lost had been appended"
            )
        lateness_ms = claim.append_ms - claim.deadline_ms
        if lateness_ms <= self.objective_ms:
            return JudgedOutcome(CanaryOutcome.IN_TIME, claim.deadline_ms, lateness_ms)
        if silence.doubt or silence.slow:
            return JudgedOutcome(CanaryOutcome.VOID, claim.deadline_ms, None, silence.doubt or silence.slow)
        return JudgedOutcome(CanaryOutcome.LATE, claim.deadline_ms, lateness_ms)
