"""What can be set: one frozen model a section, with the default and the reason for every key.

A key in the file names no unit, its value does (`trigger_interval = "1s"`); the attribute in code ends with the unit
(`trigger_interval_ms`), and `model_dump(mode="json", by_alias=True)` writes it back. `conf/heartwheel.toml` shows every
key; tests/cli/test_settings_reference.py keeps both equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field

from heartwheel.settings.section import BootstrapServers, FeedNames, Rate, Section, Share, TopicName
from heartwheel.settings.servers import (
    CanarySettings,
    DashboardSettings,
    GatewaySettings,
    McpSettings,
    MetricsSettings,
    NotifySettings,
    WatchSettings,
)
from heartwheel.settings.units import AutoPartitions, DurationMs, KafkaVersion, SizeBytes

_INT32_MAX: Final = 2**31 - 1


class TopicSettings(Section):
    """Name the topics in Kafka."""

    heartbeats: TopicName = "consumer-heartbeats"
    expirations: TopicName = "member-expirations"
    triggers: TopicName = "rebalance-triggers"
    status: TopicName = "heartwheel-status"
    rejects: TopicName = "heartbeat-rejects"
    job: TopicName = "heartwheel-job"


class KafkaSettings(Section):
    """Where Kafka is, and how to connect to it.

    Args:
        bootstrap_servers: `host:port`, several with commas.
        partitions: of each topic that is created.
        starting_offsets: where a new checkpoint starts to read.
        fail_on_data_loss: whether the job ends when records were deleted before it could read them.
        topics: their names.
        client: client properties under Kafka's dotted names, such as `security.protocol`; kept out of `repr`, as it
            holds passwords.
    """

    bootstrap_servers: BootstrapServers = "localhost:9092"
    partitions: Annotated[int, Field(ge=1, le=10_000)] = 8
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    fail_on_data_loss: bool = True
    topics: TopicSettings = TopicSettings()
    client: Mapping[str, str] = Field(default={}, repr=False)


class EngineSettings(Section):
    """Set the engine's pace and its limits.

    Args:
        shards: coordinator partitions; fixed at the first start of a checkpoint.
        trigger_interval_ms: time from one batch to the next.
        tick_interval_ms: time from one tick to the next in every partition of the topic.
        outage_min_ms: shortest gap in a partition that may be an outage of Kafka.
        catch_up_max_records: most records a batch reads.
        waiting_records_max: most records that may wait for a partition that stands still before reading stops.
        at_risk_count: members nearest to expiry that a status row names.
        value_bytes_max: longest value that is decoded.
        members_per_shard_max: most members that one shard holds.
        groups_per_shard_max: most groups that one shard holds, those without members counted too.
        members_per_group_max: most members that one group holds.
        output_per_batch_max: most rows that one shard writes in one batch.
        state_bytes_max: size of a shard's encoded state from which on it takes nobody new.
        block_files_from_bytes: size of what a shard seldom changes from which on it is in files; 0 for never.
        feeds: names of the feeds whose times are believed, such as that of a tap, with commas between them.
    """

    shards: Annotated[int, Field(ge=1, le=1024)] = 4
    trigger_interval_ms: Annotated[DurationMs, Field(ge=100, le=600_000)] = 200
    tick_interval_ms: Annotated[DurationMs, Field(ge=50, le=60_000)] = 200
    outage_min_ms: Annotated[DurationMs, Field(ge=1_000, le=600_000)] = 3_000
    catch_up_max_records: Annotated[int, Field(ge=1_000)] = 1_000_000
    waiting_records_max: Annotated[int, Field(ge=1_000)] = 1_000_000
    at_risk_count: Annotated[int, Field(ge=0, le=1_000)] = 10
    value_bytes_max: Annotated[SizeBytes, Field(ge=1_024, le=2**26)] = 2**20
    members_per_shard_max: Annotated[int, Field(ge=1, le=10_000_000)] = 250_000
    groups_per_shard_max: Annotated[int, Field(ge=1, le=10_000_000)] = 250_000
    members_per_group_max: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    output_per_batch_max: Annotated[int, Field(ge=1)] = 100_000
    # Spark cannot hold a text of 2 GiB, and one batch may still add to what is below the limit.
    state_bytes_max: Annotated[SizeBytes, Field(ge=2**20, le=2**30)] = 2**28
    block_files_from_bytes: Annotated[SizeBytes, Field(ge=0, le=2**30)] = 2**20
    feeds: FeedNames = ""


class WheelSettings(Section):
    """Set the geometry of the timing wheels.

    Args:
        tick_ms: resolution of the lowest level; a verdict is late by less than one tick.
        size: buckets a level.
    """

    tick_ms: Annotated[DurationMs, Field(ge=1, le=60_000)] = 25
    size: Annotated[int, Field(ge=2, le=4_096)] = 20


class CoordinatorSettings(Section):
    """Set the group rules; the names and defaults are those of Kafka's broker and consumer.

    Args:
        group_min_session_timeout_ms: shortest session timeout a member may ask for.
        group_max_session_timeout_ms: longest session timeout a member may ask for.
        presence_max_session_timeout_ms: longest one of plain workers and jobs, the members of presence groups.
        group_initial_rebalance_delay_ms: how long the first join phase of an empty group waits for more members.
        group_max_size: most members of a classic group.
        new_member_join_timeout_ms: longest that a new member may hang in a join phase.
        default_session_timeout_ms: for members that name none.
        default_rebalance_timeout_ms: for members that name none.
        empty_group_retention_ms: how long a group without members is remembered.
        group_consumer_session_timeout_ms: of the members of consumer groups (KIP-848); a group may have its own.
        group_consumer_assignment_interval_ms: least time between two target assignments of a consumer group.
        group_consumer_max_size: most members of a consumer group.
        group_consumer_migration_policy: which way a group may change between the classic and the consumer protocol.
        group_share_session_timeout_ms: of the members of share groups (KIP-932); a group may have its own.
        group_share_assignment_interval_ms: least time between two target assignments of a share group.
        group_share_max_size: most members of a share group.
        group_streams_session_timeout_ms: of the members of streams groups (KIP-1071); a group may have its own.
        group_streams_assignment_interval_ms: least time between two target assignments of a streams group.
        group_streams_max_size: most members of a streams group.
        group_streams_initial_rebalance_delay_ms: how long a streams group's first target assignment waits.
        group_overrides: what groups have of their own, `GROUP/NAME` and a duration; Kafka's names without the unit.
        kafka_version: the brokers' version: `4.3` for 4.3 and older, `4.4` for 4.4 and newer.
    """

    group_min_session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 6_000
    group_max_session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 1_800_000
    presence_max_session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 2_073_600_000
    group_initial_rebalance_delay_ms: Annotated[DurationMs, Field(ge=0, le=_INT32_MAX)] = 3_000
    group_max_size: Annotated[int, Field(ge=1, le=_INT32_MAX)] = _INT32_MAX
    new_member_join_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 300_000
    default_session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 45_000
    default_rebalance_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 300_000
    empty_group_retention_ms: Annotated[DurationMs, Field(ge=1)] = 86_400_000
    group_consumer_session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 45_000
    group_consumer_assignment_interval_ms: Annotated[DurationMs, Field(ge=0, le=_INT32_MAX)] = 1_000
    group_consumer_max_size: Annotated[int, Field(ge=1, le=_INT32_MAX)] = _INT32_MAX
    group_consumer_migration_policy: Literal["bidirectional", "upgrade", "downgrade", "disabled"] = "bidirectional"
    group_share_session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 45_000
    group_share_assignment_interval_ms: Annotated[DurationMs, Field(ge=0, le=_INT32_MAX)] = 1_000
    group_share_max_size: Annotated[int, Field(ge=1, le=_INT32_MAX)] = 200
    group_streams_session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 45_000
    group_streams_assignment_interval_ms: Annotated[DurationMs, Field(ge=0, le=_INT32_MAX)] = 1_000
    group_streams_max_size: Annotated[int, Field(ge=1, le=_INT32_MAX)] = _INT32_MAX
    group_streams_initial_rebalance_delay_ms: Annotated[DurationMs, Field(ge=0, le=_INT32_MAX)] = 3_000
    group_overrides: Mapping[str, Annotated[DurationMs, Field(ge=0, le=_INT32_MAX)]] = {}
    kafka_version: KafkaVersion = "4.4"


class CheckpointSettings(Section):
    """Where the job keeps its offsets and its state.

    Args:
        location: a folder, or an address that Spark can write to.
        shared: whether a folder is the same one on every machine of a cluster.
    """

    location: Annotated[str, Field(min_length=1)] = "checkpoints/default"
    shared: bool = False


class OperationTopics(Section):
    """Name the topics of delayed operations in Kafka; what cannot be used goes to the rejects topic of all."""

    requests: TopicName = "delayed-operations"
    outcomes: TopicName = "operation-outcomes"


class OperationSettings(Section):
    """Set up delayed operations; shards, pace and rules of reading are those of `[engine]` and `[kafka]`.

    Args:
        topics: their names.
        checkpoint_location: where this job keeps its offsets and its state; not that of the heartbeat job.
        timeout_max_ms: longest timeout that a watch may ask for.
        remember_ms: how long the id of an operation that ended, and a high watermark, are remembered.
        operations_per_shard_max: most operations of one shard, those that ended and are remembered counted too.
        watermarks_per_shard_max: most high watermarks that one shard remembers.
        unordered_per_shard_max: most records of one shard that wait until what comes before them has been read.
    """

    topics: OperationTopics = OperationTopics()
    checkpoint_location: Annotated[str, Field(min_length=1)] = "checkpoints/operations"
    timeout_max_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 86_400_000
    remember_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 3_600_000
    operations_per_shard_max: Annotated[int, Field(ge=1, le=10_000_000)] = 250_000
    watermarks_per_shard_max: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    unordered_per_shard_max: Annotated[int, Field(ge=1)] = 1_000_000


class SparkSettings(Section):
    """Set up Spark.

    Args:
        master: where the job runs; `submitted` takes what `spark-submit` was given, or the session of this process.
        driver_memory_bytes: heap of the driver, which in local mode does all the work.
        executor_python: the Python that a cluster's executors start; empty means `python3`, or what `spark-submit` was
            given. With a local master it is the one that runs this.
        shuffle_partitions: partitions of the state, fixed at the first start; `None` means one a core, and one in all
            for two cores and at most four shards.
        auth_secret: what the processes of a cluster share, `spark.authenticate.secret`; YARN and Kubernetes make one.
        conf: more Spark properties; kept out of `repr`, as they may hold passwords.
    """

    master: Annotated[str, Field(pattern=r"^(local(\[.+\])?|spark://.+|k8s://.+|yarn|submitted)$")] = "local[*]"
    driver_memory_bytes: Annotated[SizeBytes, Field(ge=512 * 2**20)] = 2 * 2**30
    executor_python: str = ""
    shuffle_partitions: AutoPartitions = None
    auth_secret: Annotated[str, Field(repr=False)] = ""
    conf: Mapping[str, str] = Field(default={}, repr=False)


class FeedSettings(Section):
    """Describe the simulated members of `feed` and `demo`; rates are probabilities a member and minute.

    Args:
        groups: how many groups.
        members_per_group: members of each.
        protocol: `presence` heartbeats know no generation; `classic` members join, sync and carry one; `mix` has both,
            and groups with a storm, a held up rebalance, static members and a poll timeout.
        heartbeat_interval_ms: time between two heartbeats of a member.
        jitter: how far each interval may differ from that, as a share of it.
        session_timeout_ms: what each member asks for.
        kill_rate: how often a member falls silent, for good or until it returns.
        pause_rate: how often a member pauses.
        long_pause_share: part of the pauses that outlast the session, so that the member must be expired.
        leave_rate: how often a member leaves and says so.
        return_share: part of those gone that come back.
        garbage_share: part of the records that are broken on purpose.
        group_prefix: what group ids begin with, to keep two feeds of one topic apart.
        seed: one seed, one schedule.
    """

    groups: Annotated[int, Field(ge=1, le=100_000)] = 20
    members_per_group: Annotated[int, Field(ge=1, le=100_000)] = 10
    protocol: Literal["presence", "classic", "mix"] = "presence"
    heartbeat_interval_ms: Annotated[DurationMs, Field(ge=50)] = 2_000
    jitter: Share = 0.1
    session_timeout_ms: Annotated[DurationMs, Field(ge=1, le=_INT32_MAX)] = 6_000
    kill_rate: Rate = 0.1
    pause_rate: Rate = 0.1
    long_pause_share: Share = 0.5
    leave_rate: Rate = 0.02
    return_share: Share = 0.5
    garbage_share: Share = 0.0
    group_prefix: Annotated[str, Field(max_length=100)] = ""
    seed: Annotated[int, Field(ge=0)] = 1


class GroupSettings(Section):
    """What is known about groups in advance, for the commands and pages that show them.

    Args:
        expected_members: how many members groups should have, by the group's id.
    """

    expected_members: Mapping[str, Annotated[int, Field(ge=1, le=_INT32_MAX)]] = {}


class DemoSettings(Section):
    """Set up the demo: how long it runs, `0` until it is stopped."""

    duration_ms: Annotated[DurationMs, Field(ge=0)] = 0


class Settings(Section):
    """The whole configuration, checked."""

    kafka: KafkaSettings = KafkaSettings()
    engine: EngineSettings = EngineSettings()
    wheel: WheelSettings = WheelSettings()
    coordinator: CoordinatorSettings = CoordinatorSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    operations: OperationSettings = OperationSettings()
    spark: SparkSettings = SparkSettings()
    feed: FeedSettings = FeedSettings()
    notify: NotifySettings = NotifySettings()
    dashboard: DashboardSettings = DashboardSettings()
    gateway: GatewaySettings = GatewaySettings()
    groups: GroupSettings = GroupSettings()
    demo: DemoSettings = DemoSettings()
    metrics: MetricsSettings = MetricsSettings()
    canary: CanarySettings = CanarySettings()
    watch: WatchSettings = WatchSettings()
    mcp: McpSettings = McpSettings()
