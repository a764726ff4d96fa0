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
"""Longest value that the simulated job accepts, bytes: small, so that a record over it is cheap to make."""


@dataclass(frozen=True)
class PlannedOutage:
    """When a partition cannot be written, or has a transaction open, or no times; true ms; -1 is every partition."""

    from_ms: int
    to_ms: int
    partition: int


@dataclass(frozen=True)
class TickerFault:
    """When the ticker has trouble with a partition, true ms.

    Args:
        from_ms: its begin.
        to_ms: its end.
        partition: which; -1 is every one.
        lag_ms: how much later ticks land; 0 writes none at all.
    """

    from_ms: int
    to_ms: int
    partition: int
    lag_ms: int

    def hits(self, partition: int, true_ms: int) -> bool:
        """Return whether a tick for a partition is hit by it."""
        return self.partition in (-1, partition) and self.from_ms <= true_ms < self.to_ms


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One history's parameters; times are true milliseconds.

    Args:
        seed: where all of it comes from.
        shards: coordinator partitions.
        state_partitions: tasks after the shuffle, which write to the sink side by side.
        partitions: of the heartbeat topic, at first.
        grown: (when, to how many partitions), or `None`.
        tick_ms: of the wheel; the job may also be started with a finer one.
        wheel_size: of the wheel.
        interval_ms: from one trigger to the next.
        tick_interval_ms: from one tick to the next.
        outage_min_ms: a longer gap may be an outage.
        records_max: records a batch.
        coordinator: the rules' configuration.
        limits: of a shard.
        brokers: the clocks of the brokers; partition 0 is led by the first.
        leader_changes: (when, which partition, by which broker).
        driver: the driver's clock, by which batches are stamped, and nothing else.
        outages: when partitions cannot be written.
        transactions: when a transaction is open in a partition.
        untimed: when records of a partition carry their producers' times, as its topic is of another type.
        troubles: of the ticker.
        liar: whether somebody else ticks, too, and lies.
        rival_rate: how likely a process that is replaced goes on ticking for a while.
        copy_rate: how likely somebody copies a tick, each time one lands.
        grain_ms: waits are multiples of it; coarse grains make things happen at the same millisecond.
        groups: who sends.
        passed_on: the feeds, and whom they pass on.
        unrest: how likely a member does something else than beat, a beat.
        garbage: how many broken records there are.
        duplicates: how likely a record is appended twice.
        feed_ms: until when members send.
        start_ms: when the job is first started.
        latest: whether it starts at the end of the topic.
        stop_ms: until when it meets faults; later it runs undisturbed to the end of all timers.
        crash_rate: how likely it dies at a step.
        crashes_max: how often at most.
        retry_rate: how likely a job that died is started again within its process, so that the ticker lives on.
        stall_rate: how likely it stalls at a step.
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
    passed_on: FeedsPlan
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
