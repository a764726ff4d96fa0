"""What a canary says of the engine follows from its own heartbeats in the log, and each outcome is said once."""

from __future__ import annotations

import pytest

from heartwheel.readers.canary.judge import CanaryJudge, CanaryOutcome, Claim, JudgedOutcome

SESSION = 6_000
OBJECTIVE = 3_500
MISSED = 30_000
LATER = 10**9


class Log:
    """Play a log to a judge: heartbeats with their append times, expirations, and the time that passes."""

    def __init__(self) -> None:
        self.judge = CanaryJudge(session_ms=SESSION, objective_ms=OBJECTIVE, missed_after_ms=MISSED)
        self.said: list[JudgedOutcome] = []

    def beats(self, *append_ms: int | None) -> Log:
        """Send heartbeats, each answered with its append time or not at all."""
        for each in append_ms:
            self.judge.sent()
            self.judge.answered(each)
        return self

    def expires(self, last_seen_ms: int, *, late_ms: int = 1_000, session_ms: int = SESSION) -> Log:
        """Let the engine say that the member was silent after some heartbeat."""
        deadline_ms = last_seen_ms + session_ms
        self.judge.claimed(Claim(str(deadline_ms), last_seen_ms, deadline_ms, deadline_ms + late_ms))
        return self

    def at(self, now_ms: int, trouble: str | None = None) -> Log:
        """Let time pass until some moment."""
        self.said += self.judge.settle(now_ms, trouble)
        return self

    @property
    def outcomes(self) -> list[str]:
        """List what was said."""
        return [judged.outcome.value for judged in self.said]


@pytest.mark.parametrize(
    ("late_ms", "outcome"), [(0, "in_time"), (OBJECTIVE, "in_time"), (OBJECTIVE + 1, "late"), (MISSED - 1, "late")]
)
def test_p2_a_silence_is_known_in_time_or_late(late_ms: int, outcome: str) -> None:
    """P2: an expiration counts once, by the time from its deadline to its own append; the objective is in time."""
    log = Log().beats(1_000, 2_000).at(8_000).expires(2_000, late_ms=late_ms).at(8_000 + late_ms).at(LATER)
    assert log.said == [JudgedOutcome(CanaryOutcome(outcome), 8_000, late_ms)]
    assert log.judge.pending == 0


@pytest.mark.parametrize(("now_ms", "pending", "outcomes"), [(37_999, 1, []), (38_000, 0, ["missed"])])
def test_p2_a_silence_without_an_expiration_is_missed(now_ms: int, pending: int, outcomes: list[str]) -> None:
    """P2: it is missed from the moment on that it was allowed to wait for, and not before."""
    log = Log().beats(1_000, 2_000).at(now_ms)
    assert (log.judge.pending, log.outcomes) == (pending, outcomes)


def test_what_was_missed_is_not_judged_again() -> None:
    """An expiration that comes after all changes nothing: its silence was missed."""
    log = Log().beats(2_000).at(50_000).expires(2_000, late_ms=60_000).at(LATER)
    assert log.outcomes == ["missed"]


def test_p1_a_living_member_is_expired_falsely() -> None:
    """P1: an expiration is false if a heartbeat was appended before its deadline; the same id again counts no more."""
    log = Log().beats(1_000, 2_000, 3_000).expires(2_000).expires(2_000).at(9_000)
    assert log.outcomes == ["false"]
    assert log.said[0].reason == "a heartbeat was appended 5000 ms before the deadline"


@pytest.mark.parametrize(("append_ms", "outcome"), [(7_999, "false"), (8_000, "in_time"), (8_001, "in_time")])
def test_alive_while_now_is_before_the_deadline(append_ms: int, outcome: str) -> None:
    """A heartbeat just before the deadline keeps the member alive, one at the deadline is too late."""
    log = Log().beats(2_000, append_ms).expires(2_000).at(append_ms)
    assert log.outcomes == [outcome]


def test_p1_a_session_cut_short_is_false() -> None:
    """P1: nobody may be expired before its session is over, whether it would have beaten again or not."""
    log = Log().beats(2_000).expires(2_000, session_ms=SESSION - 1).at(7_999)
    assert log.outcomes == ["false"]
    log.expires(2_000).at(9_000)
    assert log.outcomes == ["false", "in_time"]


def test_nothing_is_judged_while_an_answer_is_on_its_way() -> None:
    """A heartbeat whose answer is slow may have kept the member alive: only when it has come is the verdict false."""
    log = Log().beats(2_000)
    log.judge.sent()
    log.expires(2_000).at(9_000)
    assert (log.outcomes, log.judge.pending) == ([], 0)
    log.judge.answered(7_000)
    assert log.at(9_000).outcomes == ["false"]


def test_a_verdict_may_come_before_this_clock_has_seen_the_deadline() -> None:
    """The judge's clock may be behind the engine's: a verdict that is true is known in time all the same."""
    assert Log().beats(2_000).expires(2_000).at(5_000).at(LATER).outcomes == ["in_time"]


def test_every_silence_of_the_log_counts() -> None:
    """Silences nobody planned, as when the process was paused, are judged like planned ones, each by itself."""
    log = Log().beats(1_000, 9_000, 10_000, 20_000).expires(1_000).expires(10_000).at(20_000)
    assert log.outcomes == ["in_time", "in_time"]
    assert log.at(LATER).outcomes == ["in_time", "in_time", "missed"]


def test_an_outage_is_no_miss() -> None:
    """While Kafka is away nothing can be written: what does not come then is void, with the reason, and not missed."""
    log = Log().beats(2_000).at(9_000, "Kafka did not answer").at(60_000)
    assert log.said == [JudgedOutcome(CanaryOutcome.VOID, 8_000, None, "Kafka did not answer")]


@pytest.mark.parametrize(("late_ms", "outcome"), [(OBJECTIVE, "in_time"), (OBJECTIVE + 1, "void")])
def test_what_comes_through_an_outage_counts_if_it_is_in_time(late_ms: int, outcome: str) -> None:
    """An expiration that came in time proves something whatever else happened; a late one proves nothing then."""
    log = Log().beats(2_000).at(8_500, "the job was catching up").expires(2_000, late_ms=late_ms).at(20_000)
    assert log.outcomes == [outcome]


def test_a_heartbeat_without_an_answer_is_no_miss() -> None:
    """It may be in the log or not: an expiration by either deadline is no fault, nor is none."""
    assert Log().beats(2_000, None).at(LATER).outcomes == ["void"]
    assert Log().beats(2_000, None, 20_000).expires(2_000).at(20_000).outcomes == ["in_time"]
    by_unknown = Log().beats(2_000, None, 20_000).expires(3_000).at(20_000)
    assert by_unknown.said[0].reason == "a heartbeat whose answer was lost had been appended"
    assert by_unknown.outcomes == ["void"]


def test_an_answer_after_a_lost_one_clears_the_doubt() -> None:
    """Once a heartbeat is answered, those before it no longer matter for the next silence."""
    assert Log().beats(2_000, None, 4_000).at(LATER).outcomes == ["missed"]


def test_a_clock_set_back_makes_no_silence() -> None:
    """If the broker's clock goes back, a silence that seemed to be over was none by the log."""
    log = Log().beats(2_000).at(8_000)
    assert log.judge.pending == 1
    log.beats(7_000).at(12_999)
    assert (log.judge.pending, log.outcomes) == (0, [])


def test_before_the_first_answer_nothing_is_expected() -> None:
    """A canary that could never send waits for nothing."""
    assert Log().beats(None, None).at(LATER).outcomes == []
