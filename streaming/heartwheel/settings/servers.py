"""The sections of what runs beside the job: metrics, canary, notifier, dashboard, watcher, gateway, MCP server."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from heartwheel.base.addresses import parse_networks
from heartwheel.settings.secret import secret_of
from heartwheel.settings.section import Section
from heartwheel.settings.units import DurationMs, SizeBytes


class NotifySettings(Section):
    """Set up the webhook notifier.

    Args:
        kind: whose form the messages have: our own, which chats show, or that of PagerDuty or Opsgenie.
        url: where to post; shown nowhere, as such addresses often are secrets.
        secret: to sign with; several, one a line, while they are changed. For PagerDuty the routing key, for Opsgenie
            the API key.
        state_dir: folder of positions, open incidents and dead letters; one notifier, one folder.
        gather_ms: from the first expiration of a group to the first message.
        min_interval_ms: shortest time between two messages about one incident.
        close_after_ms: how long after its newest expiration an incident is closed, if not all came back.
        per_minute: most messages in the long run.
        burst: most messages at once.
        timeout_ms: how long the receiver may take to answer.
        give_up_after_ms: how long a message is retried.
        incidents_max: most groups with an incident of their own.
    """

    kind: Literal["webhook", "pagerduty", "opsgenie"] = "webhook"
    url: Annotated[str, Field(pattern=r"^(https?://[^\s]+)?$", repr=False)] = ""
    secret: Annotated[str, Field(repr=False)] = ""
    state_dir: Annotated[str, Field(min_length=1)] = "checkpoints/notify"
    gather_ms: Annotated[DurationMs, Field(ge=0, le=3_600_000)] = 5_000
    min_interval_ms: Annotated[DurationMs, Field(ge=0, le=86_400_000)] = 60_000
    close_after_ms: Annotated[DurationMs, Field(ge=1_000)] = 3_600_000
    per_minute: Annotated[int, Field(ge=1, le=60_000)] = 30
    burst: Annotated[int, Field(ge=1, le=1_000)] = 10
    timeout_ms: Annotated[DurationMs, Field(ge=100, le=120_000)] = 10_000
    give_up_after_ms: Annotated[DurationMs, Field(ge=0)] = 3_600_000
    incidents_max: Annotated[int, Field(ge=1, le=100_000)] = 1_000


def _networks(value: str) -> str:
    parse_networks(value)
    return value


class DashboardSettings(Section):
    """Set up the dashboard.

    Args:
        host: where it listens.
        port: likewise; `0` takes any that is free.
        window_ms: for how long expirations and rebalances are shown.
        expirations_max: most expirations that are kept, and most rebalances.
        allow_hosts: names it may be asked under, with commas; empty means the local ones while it listens locally, else
            also this machine's own name and any IP address.
        storm_rebalances: so many rebalances of one group ...
        storm_window_ms: ... within so long are a storm.
        insecure: whether others may look without a login, where it listens for others.
        users_file: users and their passwords, as `htpasswd -B` writes them.
        token: for scripts and Prometheus, which send it as `Authorization: Bearer`.
        session_ttl_ms: how long a login lasts.
        session_secret: signs sessions; without one they end with the process.
        trusted_proxies: addresses and networks of proxies, with commas; what they say of a request is believed.
        user_header: the header in which they name who has logged in with them.
        access_log: whether who looked at what is logged, where there is a login.
        tls_certificate: PEM file of the certificate, and of those that lead to its authority.
        tls_key: PEM file of its key, unencrypted.
        base_path: what stands before each path for browsers, behind a proxy.
        gateway_url: address of a `heartwheel gateway`, for the pages' line that shows how to beat; empty shows none.
        connections_max: most connections at once; beyond them only `/healthz`, `/readyz` and `/metrics` are answered.
        connections_per_address_max: most connections of one address.
    """

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8_484
    window_ms: Annotated[DurationMs, Field(ge=60_000, le=86_400_000)] = 3_600_000
    expirations_max: Annotated[int, Field(ge=100, le=1_000_000)] = 20_000
    allow_hosts: Annotated[str, Field(pattern=r"^[^\s/]*$", max_length=4_096)] = ""
    storm_rebalances: Annotated[int, Field(ge=2, le=10_000)] = 5
    storm_window_ms: Annotated[DurationMs, Field(ge=1_000, le=86_400_000)] = 300_000
    insecure: bool = False
    users_file: str = ""
    token: Annotated[str, AfterValidator(secret_of(16)), Field(repr=False)] = ""
    session_ttl_ms: Annotated[DurationMs, Field(ge=60_000, le=2_592_000_000)] = 43_200_000
    session_secret: Annotated[str, AfterValidator(secret_of(32)), Field(repr=False)] = ""
    trusted_proxies: Annotated[str, AfterValidator(_networks), Field(max_length=4_096)] = ""
    user_header: Annotated[str, Field(pattern=r"^([A-Za-z0-9-]{1,100})?$")] = ""
    access_log: bool = True
    tls_certificate: str = ""
    tls_key: str = ""
    base_path: Annotated[str, Field(pattern=r"^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$", max_length=255)] = ""
    gateway_url: Annotated[str, Field(pattern=r"^(https?://[^\s'\"<>]+)?$", max_length=1_024)] = ""
    connections_max: Annotated[int, Field(ge=8, le=4_096)] = 512
    connections_per_address_max: Annotated[int, Field(ge=4, le=4_096)] = 128


class WatchSettings(Section):
    """Set up the service that watches brokers' logs; its page, messages and metrics have the sections of theirs.

    Args:
        files: the logs, with commas; those of the command line take precedence.
        kubernetes: pods whose logs are followed, namespace/label-selector; empty for none.
        kubernetes_api: address of the API, such as that of `kubectl proxy`; empty for that of the cluster it runs in.
        kubernetes_mount: folder with the token and the authority of the service account.
        docker: containers whose logs are followed, by names or labels, with commas; empty for none.
        docker_socket: the Unix socket of the engine.
        causes: files with what happened to pods and machines, with commas; `kubernetes:NAMESPACE` asks the API for it.
        history_file: the SQLite file in which their facts are kept; one watcher, one file.
        keep_ms: for how long facts are kept, by the time at which they were read.
        history_bytes_max: size of the file beyond which the oldest facts are removed.
        utc_offset: the zone of times that name none: +01:00, or Europe/Berlin; empty means UTC.
        page_events_max: most facts, the newest, that the page is made from after a start; it reads older ones if asked.
    """

    files: Annotated[str, Field(max_length=65_536)] = ""
    kubernetes: Annotated[str, Field(pattern=r"^$|^[^/\s]+/\S+$", max_length=4_096)] = ""
    kubernetes_api: Annotated[str, Field(pattern=r"^$|^https?://", max_length=4_096)] = ""
    kubernetes_mount: str = "/var/run/secrets/kubernetes.io/serviceaccount"
    docker: Annotated[str, Field(max_length=4_096)] = ""
    docker_socket: Annotated[str, Field(min_length=1)] = "/var/run/docker.sock"
    causes: Annotated[str, Field(max_length=65_536)] = ""
    history_file: Annotated[str, Field(min_length=1)] = "checkpoints/watch/history.db"
    keep_ms: Annotated[DurationMs, Field(ge=60_000, le=315_360_000_000)] = 2_592_000_000
    history_bytes_max: Annotated[SizeBytes, Field(ge=2**20, le=2**40)] = 2**30
    utc_offset: Annotated[str, Field(max_length=100)] = ""
    page_events_max: Annotated[int, Field(ge=1_000, le=10_000_000)] = 10_000


class GatewaySettings(Section):
    """Set up the gateway that workers beat at over HTTP.

    Args:
        host: where it listens.
        port: likewise; `0` takes any that is free.
        allow_hosts: names it may be asked under, with commas, as the dashboard's.
        access_file: lines of a group and a token: who may beat for which group.
        insecure: whether everybody may beat who reaches it, where it listens for others.
        tls_certificate: PEM file of the certificate, and of those that lead to its authority.
        tls_key: PEM file of its key, unencrypted.
        trusted_proxies: addresses and networks of proxies, with commas; `X-Forwarded-For` of theirs is believed.
        timeout_ms: how long Kafka may take to acknowledge.
        body_bytes_max: longest body.
        bodies_bytes_max: most bytes of all bodies that are not answered yet.
        records_per_request_max: most records of one body.
        records_per_second_max: most records of one address in the long run, and at once.
        waiting_records_max: most records that wait for Kafka.
        connections_max: most connections at once.
        connections_per_address_max: most connections of one address.
    """

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8_486
    allow_hosts: Annotated[str, Field(pattern=r"^[^\s/]*$", max_length=4_096)] = ""
    access_file: str = ""
    insecure: bool = False
    tls_certificate: str = ""
    tls_key: str = ""
    trusted_proxies: Annotated[str, AfterValidator(_networks), Field(max_length=4_096)] = ""
    timeout_ms: Annotated[DurationMs, Field(ge=100, le=60_000)] = 5_000
    body_bytes_max: Annotated[SizeBytes, Field(ge=1_024, le=2**26)] = 256 * 2**10
    bodies_bytes_max: Annotated[SizeBytes, Field(ge=2**16, le=2**32)] = 64 * 2**20
    records_per_request_max: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    records_per_second_max: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000
    waiting_records_max: Annotated[int, Field(ge=1, le=10_000_000)] = 100_000
    connections_max: Annotated[int, Field(ge=8, le=65_536)] = 4_096
    connections_per_address_max: Annotated[int, Field(ge=4, le=65_536)] = 1_024


class McpSettings(Section):
    """Set up `heartwheel mcp --http`, which answers language models.

    Args:
        host: where it listens.
        port: likewise; `0` takes any that is free.
        allow_hosts: names it may be asked under, with commas, as the dashboard's.
        token: what clients must send as `Authorization: Bearer`; needed where it listens for others.
        dashboard_token: sent to the dashboard that `--dashboard` names.
    """

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8_488
    allow_hosts: Annotated[str, Field(pattern=r"^[^\s/]*$", max_length=4_096)] = ""
    token: Annotated[str, AfterValidator(secret_of(16)), Field(repr=False)] = ""
    dashboard_token: Annotated[str, AfterValidator(secret_of(16)), Field(repr=False)] = ""


class MetricsSettings(Section):
    """Set up what Prometheus reads.

    Args:
        host: where the job listens for it.
        port: likewise; `0` is off. The dashboard serves its own metrics beside its page.
        token: what Prometheus must send as `Authorization: Bearer`; empty asks for nothing.
        groups_max: groups that get a label of their own, in the order they are seen; the others share one.
    """

    host: Annotated[str, Field(min_length=1, max_length=255)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    token: Annotated[str, AfterValidator(secret_of(16)), Field(repr=False)] = ""
    groups_max: Annotated[int, Field(ge=0, le=10_000)] = 100


class CanarySettings(Section):
    """Describe the canary: members of its own that fall silent on schedule, to see whether they are expired in time.

    Args:
        enabled: whether `heartwheel dashboard` runs it.
        heartbeat_interval_ms: time between two heartbeats of one of its members.
        period_ms: each shard is tried once in so long.
        missed_after_ms: how long after its deadline an expiration counts as missed.
        group_prefix: what its group ids begin with.
    """

    enabled: bool = False
    heartbeat_interval_ms: Annotated[DurationMs, Field(ge=50, le=60_000)] = 1_000
    period_ms: Annotated[DurationMs, Field(ge=1_000, le=3_600_000)] = 30_000
    missed_after_ms: Annotated[DurationMs, Field(ge=1_000, le=3_600_000)] = 30_000
    group_prefix: Annotated[str, Field(min_length=1, max_length=100)] = "heartwheel-canary"
