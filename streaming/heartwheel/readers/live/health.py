"""Whether the engine can be trusted right now: one state, one sentence, and what to do."""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from heartwheel.base.phrases import ago, count
from heartwheel.readers.live.health_states import Health, HealthState
from heartwheel.readers.live.log_clock import standstill
from heartwheel.readers.live.warnings import feed_warnings, ticker_warnings
from heartwheel.wire.job import JobRow, Phase, TickerState
from heartwheel.wire.status import StatusRow

STALLED_TRIGGERS: Final = 5
"""After how many trigger intervals without a batch the job counts as stalled."""

SILENT_MS_MIN: Final = 15_000
"""The shortest silence that counts as stalled, whatever the interval: the job reports at least every five seconds."""

UNREACHABLE_MS: Final = 3_000
"""How long Kafka may not answer before that is reported."""


_START_USUAL_MS: Final = 120_000  # four times the half minute that the hint names


class Signs(NamedTuple):
    """The signs that health is judged by.

    Args:
        linked: whether Kafka answers; `None` before the first request.
        linked_since_ms: since when, epoch ms.
        bootstrap: the brokers' address.
        job: the newest row of the job, if any.
        shards: the newest row of each shard.
        reasons: other problems, in sentences.
        log: what was read of brokers' logs, in a sentence, if these are shown.
        log_is_behind: whether these have lines that were not read yet when they were opened.
        written_ms: append time of the newest verdict, epoch ms; a batch writes while it runs.
    """

    linked: bool | None
    linked_since_ms: int
    bootstrap: str
    job: JobRow | None
    shards: tuple[StatusRow, ...]
    reasons: tuple[str, ...] = ()
    log: str = ""
    log_is_behind: bool = False
    written_ms: int = -1


def health_of(signs: Signs, *, now_ms: int) -> Health:
    """Return the health for these signs."""
    health = _judged(signs, now_ms)
    as_of_ms = _as_of_ms(signs, health, now_ms)
    reasons = list(signs.reasons)
    job = signs.job
    if job is not None and job.phase is not Phase.STOPPED and now_ms - job.at_ms < _silent_ms(signs):
        reasons += ticker_warnings(job)
    if as_of_ms is None:
        # Once the job has stopped reading, it is not known whether a feed lags: the last batch's figures would stay for
        # ever.
        reasons += feed_warnings(signs.shards)
    sentence = health.sentence
    if reasons and health.state is HealthState.HEALTHY:
        sentence = sentence.replace("Healthy", f"Healthy, with {count(len(reasons), 'warning')}")
    return msgspec.structs.replace(health, as_of_ms=as_of_ms, reasons=reasons, sentence=sentence)


def _judged(signs: Signs, now_ms: int) -> Health:
    for judge in _JUDGES:
        health = judge(signs, now_ms)
        if health is not None:
            return health
    since_ms = signs.job.phase_since_ms if signs.job else None
    return _health(HealthState.HEALTHY, since_ms, "Healthy: every shard decides as its members fall silent.")


def _logged(signs: Signs, _now_ms: int) -> Health | None:
    state = HealthState.WAITING if signs.log_is_behind else HealthState.LOG
    return _health(state, None, signs.log) if signs.log else None


def _health(state: HealthState, since_ms: int | None, sentence: str, hint: str = "", *, topic: str = "") -> Health:
    return Health(state=state, since_ms=since_ms, sentence=sentence, hint=hint, reasons=[], topic=topic)


def _as_of_ms(signs: Signs, health: Health, now_ms: int) -> int | None:
    """Return when members and groups were last processed, if that is no longer going on."""
    batches = [row.batch_ms for row in signs.shards]
    if signs.job is not None and signs.job.last_batch is not None:
        batches.append(signs.job.last_batch.ended_ms)
    phase = signs.job.phase if signs.job is not None else Phase.LIVE
    if not batches or health.state is HealthState.LOG:
        return None
    is_over = phase in {Phase.STOPPED, Phase.STARTING, Phase.RETRYING} or health.state is HealthState.UNREACHABLE
    # Where time stands still in one partition, batches continue, and so do the figures of all others.
    silence_ms = now_ms - max(batches)
    is_silent = health.state is HealthState.STALLED and silence_ms >= STALLED_TRIGGERS * _interval_ms(signs)
    return max(batches) if is_over or is_silent else None


def _unreachable(signs: Signs, now_ms: int) -> Health | None:
    if signs.linked is not False or now_ms - signs.linked_since_ms < UNREACHABLE_MS:
        return None
    since_ms = signs.linked_since_ms
    return _health(
        HealthState.UNREACHABLE,
        since_ms,
        f"Unreachable: Kafka at {signs.bootstrap} has not answered for {ago(since_ms, now_ms)}.",
        "What is shown is as of then. Is the broker up, is the address right, does it ask for TLS or a login?",
        topic="kafka-is-unreachable",
    )


def _waiting(signs: Signs, _now_ms: int) -> Health | None:
    if signs.job is not None or signs.shards:
        return None
    return _health(
        HealthState.WAITING,
        None,
        f"Waiting: no job has written anything at {signs.bootstrap} yet.",
        f"Start it: heartwheel run --bootstrap-servers {signs.bootstrap}",
    )


def _stalled(since_ms: int, now_ms: int, why: str, hint: str) -> Health:
    sentence = f"Stalled for {ago(since_ms, now_ms)}: {why}"
    return _health(HealthState.STALLED, since_ms, sentence, hint, topic="no-batch")


def _stopped(signs: Signs, now_ms: int) -> Health | None:
    if signs.job is None or signs.job.phase is not Phase.STOPPED:
        return None
    hint = "Start it again on the same checkpoint: members that send heartbeats until then are not expired."
    how = f"the job has ended: {signs.job.fault.rstrip('.')}" if signs.job.fault else "the job was stopped"
    return _stalled(signs.job.phase_since_ms, now_ms, f"{how}. No member expires during that time.", hint)


def _retrying(signs: Signs, now_ms: int) -> Health | None:
    if signs.job is None or signs.job.phase is not Phase.RETRYING:
        return None
    why = f"the job met a fault and tries again: {signs.job.fault or 'it names no reason'}."
    return _stalled(signs.job.phase_since_ms, now_ms, why, "It comes back by itself if the fault goes away.")


def _silent(signs: Signs, now_ms: int) -> Health | None:
    """Return a problem if no batch has ended for too long, or the job reports nothing any more."""
    batch_end_ms = _newest_batch_ms(signs)
    interval_ms = _interval_ms(signs)
    reported_ms = signs.job.at_ms if signs.job else batch_end_ms
    if now_ms - reported_ms >= _silent_ms(signs):
        missed = (now_ms - batch_end_ms) // interval_ms
        why = f"the job reports nothing any more; no batch for {count(missed, 'trigger')}."
        hint = "Is its process alive, and does it reach Kafka? After a crash start it again on the same checkpoint."
        return _stalled(batch_end_ms, now_ms, why, hint)
    live = signs.job is not None and signs.job.phase is Phase.LIVE
    batch_ms = signs.job.last_batch.duration_ms if signs.job and signs.job.last_batch else 0
    # When very many members fall silent at once a batch takes long, and its verdicts are there before it ends.
    batch_end_ms = max(batch_end_ms, signs.written_ms)
    if live and now_ms - batch_end_ms >= STALLED_TRIGGERS * max(interval_ms, batch_ms) + interval_ms:
        if signs.job and signs.job.ticker and (signs.job.ticker.silent or signs.job.ticker.reason):
            # Nothing is written, so nothing is read; or a partition has no leader, and Spark waits for its end offset.
            return _time_standstill(signs.job, signs.job.ticker, now_ms, partitions=0)
        missed = (now_ms - batch_end_ms) // interval_ms
        why = f"no batch for {count(missed, 'trigger')}, though the job's process is alive."
        return _stalled(batch_end_ms, now_ms, why, "Look at the job's log: a batch may wait for Kafka or for memory.")
    return None


def _newest_batch_ms(signs: Signs) -> int:
    """Return when the newest batch was, epoch ms."""
    batches = [row.batch_ms for row in signs.shards]
    if signs.job is not None:
        batches.append(signs.job.last_batch.ended_ms if signs.job.last_batch else signs.job.phase_since_ms)
    return max(batches)


def _silent_ms(signs: Signs) -> int:
    return max(SILENT_MS_MIN, STALLED_TRIGGERS * _interval_ms(signs))


def _interval_ms(signs: Signs) -> int:
    return max(1, signs.job.trigger_interval_ms if signs.job else 1_000)


def _starting(signs: Signs, now_ms: int) -> Health | None:
    if signs.job is None or signs.job.phase is not Phase.STARTING:
        return None
    since_ms = signs.job.phase_since_ms
    sentence = f"Starting for {ago(since_ms, now_ms)}: Spark starts; then it reads what was sent during that time."
    usual = now_ms - since_ms < _START_USUAL_MS
    hint = "Half a minute is usual. Nothing is to be done." if usual else "That is long: look at the job's log."
    return _health(HealthState.CATCHING_UP, since_ms, sentence, hint)


def _catching_up(signs: Signs, now_ms: int) -> Health | None:
    job = signs.job
    says_so = job is not None and job.phase is Phase.CATCHING_UP
    # The shards' own report is used only if the job gives none: it is older by up to one batch.
    if not says_so and (job is not None or not any(row.held for row in signs.shards)):
        return None
    since_ms = job.phase_since_ms if job else None
    behind = job.last_batch.behind if job and job.last_batch else None
    far = "" if behind is None else f": {count(behind, 'record')} behind"
    held = f", for {ago(since_ms, now_ms)}" if since_ms is not None else ""
    return _health(
        HealthState.CATCHING_UP,
        since_ms,
        f"Catching up{far}{held}.",
        "No member expires before all that was sent so far has been read. Nothing is to be done.",
        topic="clock-held",
    )


def _no_time(signs: Signs, now_ms: int) -> Health | None:
    """Return a problem if the log gives no time: no member expires where nothing is written, not even a tick."""
    job = signs.job
    if job is None or job.ticker is None or not (job.standing or job.ticker.reason):
        return None
    return _time_standstill(job, job.ticker, now_ms, partitions=job.standing)


def _wrong_clock(signs: Signs, _now_ms: int) -> Health | None:
    """Return a problem if records give no time: a clock was set back, or the topic keeps its producers' times."""
    found = standstill(signs.job) if signs.job is not None else None
    return _health(HealthState.STALLED, None, found.sentence, found.hint, topic=found.topic) if found else None


_JUDGES: Final = (
    _logged,
    _unreachable,
    _waiting,
    _stopped,
    _retrying,
    _silent,
    _starting,
    _catching_up,
    _wrong_clock,
    _no_time,
)
"""The checks in their order; the first that finds a problem decides."""


def _time_standstill(job: JobRow, ticker: TickerState, now_ms: int, *, partitions: int) -> Health:
    if ticker.reason:
        why, since_ms = ticker.reason, job.at_ms - ticker.lag_ms
    else:
        named = ticker.silent[0] if ticker.silent else None
        why = f"partition {named.partition}: {named.reason}" if named else "records of it cannot be read yet"
        since_ms = job.at_ms - (named.since_ms if named else 0)
    where = f" in {count(partitions, 'partition')}" if partitions else ""
    return _health(
        HealthState.STALLED,
        since_ms,
        f"Time has stopped{where} for {ago(since_ms, now_ms)}: {why}.",
        "No member there expires during that time. An open transaction stops time, too. heartwheel doctor says more.",
        topic="time-has-stopped",
    )
