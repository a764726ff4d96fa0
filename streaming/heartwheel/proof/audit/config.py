"""The settings of an audit: the rules and limits of the audited job, and how late it may be."""

from __future__ import annotations

import msgspec


class AuditConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the audited job, and of the audit itself; times are milliseconds.

    Settings that the job has too have the same names and defaults as there (`conf/heartwheel.toml`).

    Args:
        group_min_session_timeout_ms: shortest session timeout that a member may ask for.
        group_max_session_timeout_ms: longest session timeout that a member may ask for.
        presence_max_session_timeout_ms: the same for members of presence groups; a job asks for the time until its next
            success is due.
        group_initial_rebalance_delay_ms: how long the first join phase of an empty group waits for more members.
        new_member_join_timeout_ms: how long the first join of a new member may wait for the join phase to end.
        default_session_timeout_ms: for members that give no session timeout.
        default_rebalance_timeout_ms: for members that give no rebalance timeout.
        empty_group_retention_ms: how long a group without members is remembered.
        group_consumer_session_timeout_ms: session timeout of the members of consumer groups.
        group_consumer_assignment_interval_ms: least time between two target assignments of a consumer group.
        group_consumer_max_size: most members of a consumer group.
        group_consumer_migration_policy: which way a group may change between the classic and the consumer protocol.
        group_share_session_timeout_ms: session timeout of the members of share groups.
        group_share_assignment_interval_ms: least time between two target assignments of a share group.
        group_share_max_size: most members of a share group.
        group_streams_session_timeout_ms: session timeout of the members of streams groups.
        group_streams_assignment_interval_ms: least time between two target assignments of a streams group.
        group_streams_max_size: most members of a streams group.
        group_streams_initial_rebalance_delay_ms: how long a streams group's first target assignment waits.
        group_overrides: settings of single groups, by `GROUP/NAME` with Kafka's name, such as
            `orders/consumer.session.timeout.ms`.
        kafka_version: the brokers' version, `4.3` or `4.4`.
        members_per_group_max: most members of one group that the engine keeps, its own limit.
        value_bytes_max: longest value that the job decodes.
        tick_ms: resolution of the job's timing wheel: a deadline is detected at the end of its tick.
        late_ms_max: longest time from the moment a verdict is true until it is written (P2); `None` judges no lateness.
        outage_min_ms: a longer gap between records of a partition may be an outage.
        runs: ticker runs of the audited job; only their ticks are evidence of an outage. Empty believes every run, each
            for itself, which is right as long as only one job writes ticks.
        remembered_max: number of confirmed verdicts that are remembered, to tell a repetition from a forgery.
        judge_rejects: whether every record that cannot be used must be on the rejects topic.
        judge_strays: whether to judge groups that are in several partitions although the topic has not grown. When a
            job reads the second partition depends on its batches, so findings about such groups are put aside by
            default.
        feeds: feeds whose times the job believes (`engine.feeds`). The clock of their groups follows their marks.
        examples_max: number of findings of a kind that are kept with their place; all are counted.
    """

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    presence_max_session_timeout_ms: int = 2_073_600_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 300_000
    default_session_timeout_ms: int = 45_000
    default_rebalance_timeout_ms: int = 300_000
    empty_group_retention_ms: int = 86_400_000
    group_consumer_session_timeout_ms: int = 45_000
    group_consumer_assignment_interval_ms: int = 1_000
    group_consumer_max_size: int = 2**31 - 1
    group_consumer_migration_policy: str = "bidirectional"
    group_share_session_timeout_ms: int = 45_000
    group_share_assignment_interval_ms: int = 1_000
    group_share_max_size: int = 200
    group_streams_session_timeout_ms: int = 45_000
    group_streams_assignment_interval_ms: int = 1_000
    group_streams_max_size: int = 2**31 - 1
    group_streams_initial_rebalance_delay_ms: int = 3_000
    group_overrides: dict[str, int] = {}
    kafka_version: str = "4.4"
    members_per_group_max: int = 100_000
    value_bytes_max: int = 1 << 20
    tick_ms: int = 100
    late_ms_max: int | None = None
    outage_min_ms: int = 3_000
    runs: tuple[str, ...] = ()
    remembered_max: int = 300_000
    judge_rejects: bool = True
    judge_strays: bool = False
    feeds: tuple[str, ...] = ()
    examples_max: int = 10
