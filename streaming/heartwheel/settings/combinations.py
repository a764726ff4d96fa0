"""Combinations that cannot work, though each value alone is fine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from heartwheel.base.addresses import is_loopback
from heartwheel.settings.cluster import client_secrets, lacks_secret, turned_off
from heartwheel.settings.locations import is_local, runs_elsewhere
from heartwheel.settings.models import Settings
from heartwheel.settings.units import format_duration, format_size
from heartwheel.wire.group_settings import OVERRIDES, least_of, split_override


class Rule(NamedTuple):
    """A rule over several keys.

    Args:
        path: the key that is blamed.
        others: the other keys it looks at; a rule is left out while one of its keys is wrong by itself.
        broken: returns whether a configuration breaks it.
        message: what is wrong, in words that may depend on the configuration.
        hint: what to do about it.
    """

    path: str
    others: tuple[str, ...]
    broken: Callable[[Settings], bool]
    message: Callable[[Settings], str]
    hint: str


def _sessions(settings: Settings) -> range:
    rules = settings.coordinator
    return range(rules.group_min_session_timeout_ms, rules.group_max_session_timeout_ms + 1)


def _session_words(settings: Settings) -> str:
    rules = settings.coordinator
    least, most = rules.group_min_session_timeout_ms, rules.group_max_session_timeout_ms
    return f"must be a session timeout from {format_duration(least)} to {format_duration(most)}"


_SESSION_KEYS: Final = ("coordinator.group_min_session_timeout", "coordinator.group_max_session_timeout")

_LOGIN_KEYS: Final = ("dashboard.users_file", "dashboard.token", "dashboard.user_header", "dashboard.trusted_proxies")


def _has_login(settings: Settings) -> bool:
    wanted = settings.dashboard
    return bool(wanted.users_file or wanted.token or wanted.user_header)


RULES: Final = (
    Rule(
        "coordinator.group_min_session_timeout",
        ("coordinator.group_max_session_timeout",),
        lambda s: s.coordinator.group_min_session_timeout_ms > s.coordinator.group_max_session_timeout_ms,
        lambda s: f"is above the maximum of {format_duration(s.coordinator.group_max_session_timeout_ms)}",
        "raise coordinator.group_max_session_timeout",
    ),
    Rule(
        "coordinator.group_min_session_timeout",
        ("coordinator.presence_max_session_timeout",),
        lambda s: s.coordinator.group_min_session_timeout_ms > s.coordinator.presence_max_session_timeout_ms,
        lambda s: (
            f"is above {format_duration(s.coordinator.presence_max_session_timeout_ms)}, the most of a plain worker"
        ),
        "raise coordinator.presence_max_session_timeout",
    ),
    Rule(
        "coordinator.default_session_timeout",
        _SESSION_KEYS,
        lambda s: bool(_sessions(s)) and s.coordinator.default_session_timeout_ms not in _sessions(s),
        _session_words,
        "members that name no session timeout would all be refused",
    ),
    Rule(
        "feed.session_timeout",
        _SESSION_KEYS,
        lambda s: bool(_sessions(s)) and s.feed.session_timeout_ms not in _sessions(s),
        _session_words,
        "lower coordinator.group_min_session_timeout to feed shorter sessions",
    ),
    Rule(
        "feed.heartbeat_interval",
        ("feed.session_timeout", "feed.jitter"),
        lambda s: s.feed.heartbeat_interval_ms * (1 + s.feed.jitter) >= s.feed.session_timeout_ms,
        lambda s: f"with its jitter is no shorter than the session of {format_duration(s.feed.session_timeout_ms)}",
        "every member would expire; a third of the session timeout is usual",
    ),
    Rule(
        "demo.duration",
        (),
        lambda s: 0 < s.demo.duration_ms < 1_000,
        lambda _: "is shorter than a second",
        "write 60s for seconds, or 0 to run until Ctrl-C",
    ),
    Rule(
        "wheel.tick",
        ("engine.trigger_interval",),
        lambda s: s.wheel.tick_ms > s.engine.trigger_interval_ms,
        lambda s: f"is longer than the trigger interval of {format_duration(s.engine.trigger_interval_ms)}",
        "verdicts would be later than promise P2 allows; a sixteenth of the interval is usual",
    ),
    Rule(
        "engine.outage_min",
        ("engine.tick_interval",),
        lambda s: s.engine.outage_min_ms <= 4 * s.engine.tick_interval_ms,
        lambda s: f"is not longer than four tick intervals of {format_duration(s.engine.tick_interval_ms)}",
        "a late tick would be taken for an outage; fifteen intervals are usual",
    ),
    Rule(
        "spark.shuffle_partitions",
        ("engine.shards",),
        lambda s: (s.spark.shuffle_partitions or 1) > s.engine.shards,
        lambda s: f"is more than the {s.engine.shards} shards there are",
        "each shard lies in one partition, and every partition costs time in every batch; take fewer",
    ),
    Rule(
        "spark.shuffle_partitions",
        ("spark.master",),
        lambda s: runs_elsewhere(s.spark.master) and s.spark.shuffle_partitions is None,
        lambda s: f"must be a number with spark.master {s.spark.master}",
        "the cores of a cluster are not known before it runs; take as many as its executors have, at most one a shard",
    ),
    Rule(
        "checkpoint.location",
        ("spark.master", "checkpoint.shared"),
        lambda s: runs_elsewhere(s.spark.master) and is_local(s.checkpoint.location) and not s.checkpoint.shared,
        lambda s: f"is a folder of one machine, and spark.master {s.spark.master} runs on several",
        "name an address that all of them reach, such as hdfs://... or s3a://...; "
        "set checkpoint.shared if the folder is the same one on every machine",
    ),
    Rule(
        "spark.auth_secret",
        ("spark.master", "spark.conf"),
        lacks_secret,
        lambda s: f"must be set with spark.master {s.spark.master}, which makes no secret of its own",
        "put what master and workers have as spark.authenticate.secret into a file, and set file:PATH; "
        "where the network is for the cluster alone, spark.conf.spark.authenticate=false goes without",
    ),
    Rule(
        "kafka.client",
        ("spark.master", "spark.conf"),
        lambda s: bool(client_secrets(s) and turned_off(s)),
        lambda s: f"has secrets, and {', '.join(turned_off(s))} is off: its executors would get them in the clear",
        "leave them out of spark.conf: both are on by themselves",
    ),
    Rule(
        "dashboard.host",
        (*_LOGIN_KEYS, "dashboard.insecure"),
        lambda s: not (is_loopback(s.dashboard.host) or s.dashboard.insecure or _has_login(s)),
        lambda _: "lets others look, and the dashboard asks for no login",
        "set dashboard.users_file, dashboard.token, or dashboard.user_header with dashboard.trusted_proxies; "
        "where others may look without a login: --insecure, or dashboard.insecure = true",
    ),
    Rule(
        "dashboard.user_header",
        ("dashboard.trusted_proxies",),
        lambda s: bool(s.dashboard.user_header) and not s.dashboard.trusted_proxies.strip(", "),
        lambda _: "is believed from no proxy",
        "name the proxy's address in dashboard.trusted_proxies: anybody else could claim to be anybody",
    ),
    Rule(
        "dashboard.tls_certificate",
        ("dashboard.tls_key",),
        lambda s: bool(s.dashboard.tls_certificate) and not s.dashboard.tls_key,
        lambda _: "has no key",
        "set dashboard.tls_key to the PEM file of its key",
    ),
    Rule(
        "dashboard.tls_key",
        ("dashboard.tls_certificate",),
        lambda s: bool(s.dashboard.tls_key) and not s.dashboard.tls_certificate,
        lambda _: "has no certificate",
        "set dashboard.tls_certificate to the PEM file of its certificate",
    ),
    Rule(
        "gateway.host",
        ("gateway.access_file", "gateway.insecure"),
        lambda s: not (is_loopback(s.gateway.host) or s.gateway.insecure or s.gateway.access_file),
        lambda _: "lets others beat, and the gateway asks for no token",
        "set gateway.access_file; where everybody may beat who reaches it: --insecure, or gateway.insecure = true",
    ),
    Rule(
        "gateway.tls_certificate",
        ("gateway.tls_key",),
        lambda s: bool(s.gateway.tls_certificate) != bool(s.gateway.tls_key),
        lambda _: "goes together with gateway.tls_key",
        "set both to PEM files, or neither",
    ),
    Rule(
        "mcp.host",
        ("mcp.token",),
        lambda s: not (is_loopback(s.mcp.host) or s.mcp.token),
        lambda _: "lets others ask, and the server asks for no token",
        "set mcp.token, such as to file:/etc/heartwheel/mcp-token",
    ),
    Rule(
        "gateway.records_per_request_max",
        ("gateway.waiting_records_max",),
        lambda s: s.gateway.records_per_request_max > s.gateway.waiting_records_max,
        lambda s: f"is more than the {s.gateway.waiting_records_max} records that may wait",
        "such a request could never be accepted; raise gateway.waiting_records_max",
    ),
    Rule(
        "gateway.body_bytes_max",
        ("gateway.bodies_bytes_max",),
        lambda s: s.gateway.body_bytes_max > s.gateway.bodies_bytes_max,
        lambda s: f"is more than the {format_size(s.gateway.bodies_bytes_max)} that all bodies together may have",
        "such a body could never be accepted; raise gateway.bodies_bytes_max",
    ),
    Rule(
        "engine.members_per_group_max",
        ("engine.members_per_shard_max",),
        lambda s: s.engine.members_per_group_max > s.engine.members_per_shard_max,
        lambda s: f"is more than the {s.engine.members_per_shard_max} members a shard may hold",
        "a group lies in one shard; raise engine.members_per_shard_max",
    ),
)
"""Every rule over several keys with fixed names."""

OWNED: Final = {
    "kafka.client.bootstrap.servers": "set kafka.bootstrap_servers",
    "kafka.client.group.id": "the job reads by offsets of its checkpoint, not by a group",
    "kafka.client.auto.offset.reset": "the job reads by offsets of its checkpoint",
    "kafka.client.enable.auto.commit": "the job reads by offsets of its checkpoint",
    "kafka.client.isolation.level": "the job reads committed records only",
    "kafka.client.key.serializer": "the job writes bytes",
    "kafka.client.key.deserializer": "the job reads bytes",
    "kafka.client.value.serializer": "the job writes bytes",
    "kafka.client.value.deserializer": "the job reads bytes",
    "spark.conf.spark.master": "set spark.master",
    "spark.conf.spark.driver.memory": "set spark.driver_memory",
    "spark.conf.spark.authenticate.secret": "set spark.auth_secret",
    "spark.conf.spark.pyspark.python": "set spark.executor_python",
    "spark.conf.spark.sql.shuffle.partitions": "set spark.shuffle_partitions",
}
"""Entries of the free tables that would work against a setting or a rule of the engine, each with what to do."""


def duplicate_topics(settings: Settings) -> Iterator[tuple[str, str]]:
    """List the topics whose name was given to another one before, as pairs of the two keys."""
    seen: dict[str, str] = {}
    tables = {"kafka.topics": settings.kafka.topics, "operations.topics": settings.operations.topics}
    names = ((f"{table}.{key}", name) for table, topics in tables.items() for key, name in topics.model_dump().items())
    for path, name in names:
        if name in seen:
            yield path, seen[name]
        seen.setdefault(name, path)


def wrong_overrides(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Return the mistakes in groups' own settings: the key, the fault, what to do."""
    names = ", ".join(name.removesuffix(".ms") for name in OVERRIDES)
    for key, value in settings.coordinator.group_overrides.items():
        path = f"coordinator.group_overrides.{key}"
        group_id, name = split_override(key)
        if not group_id:
            yield path, "names no group", "write GROUP/NAME, such as orders/consumer.session.timeout"
        elif name not in OVERRIDES:
            yield path, "is no setting that a group may have of its own", f"known here: {names}"
        elif value < least_of(name):
            yield path, f"must be at least {least_of(name)}ms", "a session of no length ends as it begins"
