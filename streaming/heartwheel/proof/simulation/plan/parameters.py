"""The parameters of one history: sizes, clocks, timeouts, faults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.proof.simulation.plan.clocks import HostClock
from heartwheel.proof.simulation.plan.feeds import FeedsPlan
from heartwheel.proof.simulation.plan.groups import GroupPlan

VALUE_BYTES_MAX: Final = 1_500
"""Longest value that the simulated job accepts, bytes; small, so that a longer record is cheap to make."""


@dataclass(frozen=True)
class PlannedOutage:
    """A time in which a partition (-1: every one) cannot be written, has an open transaction or no times; true ms."""

    from_ms: int
    to_ms: int
    partition: int


@dataclass(frozen=True)
class TickerFault:
    """A time in which the ticker fails or lags in a partition, true ms.

    Args:
        partition: the partition; -1 is every one.
        lag_ms: how much later ticks are appended; with 0 none are written.
    """

    from_ms: int
    to_ms: int
    partition: int
    lag_ms: int

    def hits(self, partition: int, true_ms: int) -> bool:
        """Return whether a tick for a partition is affected."""
        return self.partition in (-1, partition) and self.from_ms <= true_ms < self.to_ms


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One history's parameters; times are true milliseconds.

    Args:
        state_partitions: the number of tasks after the shuffle, which write to the sink in parallel.
        partitions: the number of partitions of the heartbeat topic at first.
        grown: (when the topic grows, to how many partitions), or `None`.
        tick_ms: tick of the wheel; the job may also be started with a finer one.
        wheel_size: buckets a level of the wheel.
        outage_min_ms: a longer gap may be an outage.
        brokers: the clocks of the brokers; the first one leads partition 0.
        leader_changes: (when, which partition, which broker leads it from then on).
        driver: the driver's clock, which gives batches their timestamps and is used for nothing else.
        outages: when partitions cannot be written.
        transactions: when a transaction is open in a partition.
        untimed: when records of a partition have their producers' times, as with another timestamp type.
        liar: whether another client writes false ticks.
        rival_rate: probability that a replaced process goes on ticking for a while.
        copy_rate: probability, for each tick, that a client copies one.
        grain_ms: waits are multiples of it; with a coarse one, events happen in the same millisecond.
        groups: the groups whose members send to the topic.
        relayed: the feeds, and the groups that they relay.
        unrest: probability, for each heartbeat, that a member does something else instead.
        garbage: the number of broken records.
        duplicates: probability that a record is appended twice.
        feed_ms: when members stop sending.
        start_ms: when the job is first started.
        latest: whether it starts at the end of the topic.
        stop_ms: when faults end; after that it runs undisturbed until all timers have ended.
        crash_rate: probability that it dies at a step.
        retry_rate: probability that a job that died is started again in the same process, with the same ticker.
        stall_rate: probability that it stalls at a step.
    """

    seed: int
    shards: int
    state_partitions: int
    partitions: int
    grown: tuple[int, int] | None
    tick_ms: int
    wheel_size: int
    interval_ms: int
    tick_interval_ms: int
    outage_min_ms: int
    records_max: int
    coordinator: CoordinatorConfig
    limits: ShardLimits
    brokers: tuple[HostClock, ...]
    leader_changes: tuple[tuple[int, int, int], ...]
    driver: HostClock
    outages: tuple[PlannedOutage, ...]
    transactions: tuple[PlannedOutage, ...]
    untimed: tuple[PlannedOutage, ...]
    troubles: tuple[TickerFault, ...]
    liar: bool
    rival_rate: float
    copy_rate: float
    grain_ms: int
    groups: tuple[GroupPlan, ...]
    relayed: FeedsPlan
    unrest: float
    garbage: int
    duplicates: float
    feed_ms: int
    start_ms: int
    latest: bool
    stop_ms: int
    crash_rate: float
    crashes_max: int
    retry_rate: float
    stall_rate: float
