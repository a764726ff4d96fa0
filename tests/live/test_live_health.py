"""Health: each state, from the signs that lead to it, with a sentence and something to do."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.readers.live.health import Signs, health_of
from heartwheel.readers.live.health_states import Health, HealthState
from heartwheel.readers.live.now import View, now_of
from heartwheel.readers.live.picture import Picture
from heartwheel.wire.job import JobRow, OutageFigures, Phase, SilentPartition, TopicProblem
from heartwheel.wire.status import StatusRow
from support.output_rows import T0, expired, job, status, topic_rows

MINUTE_MS = 60_000


def judged(
    job_row: JobRow | None = None, *shards: StatusRow, now_ms: int = T0, linked: bool | None = True, since_ms: int = 0
) -> Health:
    """Judge by a few signs."""
    return health_of(Signs(linked, since_ms, "kafka:9092", job_row, shards), now_ms=now_ms)


def test_healthy() -> None:
    """A job that is live and whose batches come is healthy, and nothing is to be done."""
    health = judged(job(), status())
    assert (health.state, health.hint, health.ready) == (HealthState.HEALTHY, "", True)


def test_who_warns_is_not_simply_healthy() -> None:
    """The first sentence says that there is more to read; a state that is worse speaks for itself."""
    assert judged(job()).sentence == "Healthy: every shard decides as its members fall silent."
    signs = Signs(True, 0, "kafka:9092", job(), (), reasons=("One.", "Two."))
    warned = health_of(signs, now_ms=T0)
    assert (warned.state, warned.ready) == (HealthState.HEALTHY, True)
    assert warned.sentence == "Healthy, with 2 warnings: every shard decides as its members fall silent."
    stalled = health_of(signs._replace(linked=False), now_ms=T0)
    assert "warning" not in stalled.sentence


def test_waiting_says_how_to_start() -> None:
    """Before any job was seen the page says how to start one."""
    health = judged()
    assert health.state is HealthState.WAITING
    assert "heartwheel run --bootstrap-servers kafka:9092" in health.hint


def test_unreachable_names_the_address_and_since_when() -> None:
    """When Kafka does not answer that comes first; a moment of it is not worth a word."""
    assert judged(job(), linked=False, since_ms=T0 - 2_999).state is HealthState.HEALTHY
    health = judged(job(), linked=False, since_ms=T0 - 65_000)
    assert (health.state, health.since_ms) == (HealthState.UNREACHABLE, T0 - 65_000)
    assert "kafka:9092 has not answered for 1 min 5 s" in health.sentence


def test_catching_up_says_how_far() -> None:
    """While a backlog is read the page says how many records are left and for how long already."""
    batch = job().last_batch
    assert batch is not None
    row = job(phase=Phase.CATCHING_UP, last_batch=msgspec.structs.replace(batch, behind=12_345))
    health = judged(row)
    assert (health.state, health.ready) == (HealthState.CATCHING_UP, True)
    assert "12,345 records behind" in health.sentence
    assert health.sentence.endswith(", for 50 s.")


def test_starting_is_no_backlog() -> None:
    """While Spark comes up there is nothing to be behind of, and the sentence says what happens."""
    health = judged(job(phase=Phase.STARTING, phase_since_ms=T0 - 7_000, last_batch=None))
    assert (health.state, health.ready) == (HealthState.CATCHING_UP, True)
    assert health.sentence.startswith("Starting for 7 s")
    assert "Nothing is to be done" in health.hint
    stuck = judged(job(phase=Phase.STARTING, phase_since_ms=T0 - 300_000, last_batch=None))
    assert "the job's log" in stuck.hint


def test_held_shards_of_an_older_job_are_catching_up() -> None:
    """A job that writes no rows of its own is judged by its shards."""
    held = msgspec.structs.replace(status(), held=True)
    assert judged(None, held).state is HealthState.CATCHING_UP


def test_stopped_and_retrying_are_stalled_with_the_reason() -> None:
    """A job that was stopped, and one that meets a fault again and again, say so in their own words."""
    stopped = judged(job(phase=Phase.STOPPED, phase_since_ms=T0 - MINUTE_MS), now_ms=T0)
    assert (stopped.state, stopped.since_ms) == (HealthState.STALLED, T0 - MINUTE_MS)
    assert "was stopped" in stopped.sentence
    retrying = judged(job(phase=Phase.RETRYING, fault="no space left on device"))
    assert retrying.state is HealthState.STALLED
    assert "no space left on device" in retrying.sentence


def test_job_that_has_ended_says_what_ended_it() -> None:
    """A job that was killed is not one that was stopped: the cause that its last row has is on the page."""
    killed = judged(job(phase=Phase.STOPPED, phase_since_ms=T0, fault="Spark's JVM was ended by signal 9"))
    assert killed.sentence == (
        "Stalled for 0 s: the job has ended: Spark's JVM was ended by signal 9. No member expires during that time."
    )
    assert killed.topic == "no-batch"


def test_figures_of_a_dead_job_are_as_of_its_last_batch() -> None:
    """What is shown of members is as of the last batch once no batch comes: at the job's end, while Kafka is away."""
    dead = job(phase=Phase.STOPPED)
    assert judged(dead, status(batch_ms=T0 - 500)).as_of_ms == T0
    assert judged(job(T0), status(), now_ms=T0 + MINUTE_MS).as_of_ms == T0
    stuck = msgspec.structs.replace(job(T0), at_ms=T0 + 6_000)
    assert judged(stuck, status(), now_ms=T0 + 6_000).as_of_ms == T0
    assert judged(job(), linked=False, since_ms=T0 - 65_000).as_of_ms == T0
    assert (
        judged(job(phase=Phase.STARTING, last_batch=None), status(batch_ms=T0 - MINUTE_MS)).as_of_ms == T0 - MINUTE_MS
    )
    assert judged(job(phase=Phase.STARTING, last_batch=None)).as_of_ms is None
    assert judged(job(), status()).as_of_ms is None
    standing = judged(msgspec.structs.replace(job(), standing=1))
    assert (standing.state, standing.as_of_ms) == (HealthState.STALLED, None)


def test_ended_job_says_nothing_of_feeds_and_ticks() -> None:
    """Whether a feed lags is not known once nobody reads: the sentence of the last batch must not stand for ever."""
    lagging = msgspec.structs.replace(status(), feeds={"broker-1": T0 - 24_000})
    assert judged(job(), lagging).reasons != []
    assert judged(job(phase=Phase.STOPPED), lagging).reasons == []


def test_a_silent_job_is_stalled() -> None:
    """A job that was killed says nothing: its rows stop, and the page tells for how many triggers."""
    health = judged(job(T0), status(), now_ms=T0 + MINUTE_MS)
    assert (health.state, health.ready) == (HealthState.STALLED, False)
    assert "reports nothing any more; no batch for 60 triggers" in health.sentence


@pytest.mark.parametrize(("now_ms", "state"), [(5_999, HealthState.HEALTHY), (6_000, HealthState.STALLED)])
def test_no_batch_is_stalled_though_the_process_lives(now_ms: int, state: HealthState) -> None:
    """Five triggers and one without a batch are too many, also while the job still says that it lives."""
    row = msgspec.structs.replace(job(T0), at_ms=T0 + now_ms)
    assert judged(row, status(batch_ms=T0), now_ms=T0 + now_ms).state is state


@pytest.mark.parametrize(("after_ms", "state"), [(5_999, HealthState.HEALTHY), (6_000, HealthState.STALLED)])
def test_a_long_batch_that_writes_verdicts_is_no_stall(after_ms: int, state: HealthState) -> None:
    """While verdicts of a batch come the job is at work, however long it takes; once none come any more it is not."""
    picture, written_ms = Picture(), T0 + MINUTE_MS
    row = msgspec.structs.replace(job(T0), at_ms=written_ms)
    gone = expired("g", "m", written_ms, detected_ms=written_ms)
    picture.apply(topic_rows(row, status(), gone), now_ms=written_ms)
    picture.link(True, now_ms=T0)
    assert now_of(picture, View(), now_ms=written_ms + after_ms).health.state is state


def test_a_long_interval_is_no_stall() -> None:
    """What is too long depends on the interval: with triggers of a minute, a minute of silence is nothing."""
    row = job(T0, trigger_interval_ms=MINUTE_MS)
    assert judged(row, status(), now_ms=T0 + 4 * MINUTE_MS).state is HealthState.HEALTHY
    assert judged(row, status(), now_ms=T0 + 6 * MINUTE_MS).state is HealthState.STALLED


def test_time_that_stands_still_is_said_with_its_reason() -> None:
    """A ticker that may not write stops the time of quiet partitions: which, since when, and why."""
    healthy = job()
    assert healthy.ticker is not None
    silent = SilentPartition(3, 20_000, "ticks may not be written to the topic: their user needs the ACL Write on it")
    ticker = msgspec.structs.replace(healthy.ticker, silent_count=1, silent=(silent,))
    still = judged(msgspec.structs.replace(healthy, ticker=ticker, standing=1))
    assert (still.state, still.ready) == (HealthState.STALLED, False)
    assert still.sentence.startswith("Time has stopped in 1 partition for 20 s: partition 3: ticks may not be written")
    busy = judged(msgspec.structs.replace(healthy, ticker=ticker))
    assert busy.state is HealthState.HEALTHY
    assert any("No ticks come to 1 partition; partition 3" in reason for reason in busy.reasons)


def test_a_clock_that_was_set_back_is_said_with_how_long_time_stands() -> None:
    """Nobody is expired until the clock has caught up: the page says it, and is not ready; a little is nothing."""
    still = judged(job(stepped_back_ms=29_800))
    assert (still.state, still.ready) == (HealthState.STALLED, False)
    assert still.sentence.startswith("Time has stopped in a partition for 29.8 s more: the clock of its")
    assert judged(job(stepped_back_ms=1_999)).state is HealthState.HEALTHY


def test_wrong_settings_of_the_topic_are_said() -> None:
    """With producers' times time stands still, and the page has the command; of other settings it warns."""
    kind = TopicProblem("beats", "message.timestamp.type", "CreateTime", "LogAppendTime")
    policy = TopicProblem("beats", "cleanup.policy", "compact", "delete")
    still = judged(job(topic_problems=(policy, kind)))
    assert (still.state, still.ready) == (HealthState.STALLED, False)
    assert "beats has message.timestamp.type=CreateTime" in still.sentence
    assert "--entity-name beats --add-config message.timestamp.type=LogAppendTime" in still.hint
    warned = judged(job(topic_problems=(policy,)))
    assert warned.state is HealthState.HEALTHY
    assert warned.reasons == ["Topic beats has cleanup.policy=compact, it must be delete: heartbeats may be lost."]


def test_clocks_of_brokers_that_are_apart_are_spoken_of() -> None:
    """A second apart or more: a new leader may let time jump, though now nothing is wrong."""
    ticker = job().ticker
    assert ticker is not None
    apart = judged(job(ticker=msgspec.structs.replace(ticker, skew_ms=4_000)))
    assert (apart.state, len(apart.reasons)) == (HealthState.HEALTHY, 1)
    assert apart.reasons[0].startswith("The brokers' clocks are 4.0 s apart")
    assert judged(job(ticker=msgspec.structs.replace(ticker, skew_ms=999))).reasons == []


def test_records_with_their_producers_time_are_spoken_of_for_a_while() -> None:
    """The page names them and what to set; ten minutes after the last one it is quiet about them again."""
    row = job(untimed=3, untimed_at_ms=T0)
    reason = "3 heartbeat records carried the producer's time, which is not believed: set message.timestamp.type=Log"
    assert [each.startswith(reason) for each in judged(row).reasons] == [True]
    assert judged(msgspec.structs.replace(row, at_ms=T0 + 600_000)).reasons == []


def test_an_outage_of_kafka_is_spoken_of_for_a_while() -> None:
    """What an outage renewed is a line on the page, and gone after ten minutes."""
    outage = OutageFigures(seen_ms=T0, duration_ms=20_100, sessions_renewed=400)
    row = msgspec.structs.replace(job(), last_outage=outage, at_ms=T0)
    assert "Kafka was not writable for 20 s: 400 sessions renewed." in judged(row).reasons
    assert judged(msgspec.structs.replace(row, at_ms=T0 + 600_000)).reasons == []
