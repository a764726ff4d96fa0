"""Clients of a cluster through kafka-python: settings as people write them, one error for all ways of no answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    MetadataEmptyBrokerList,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from heartwheel.base.errors import HeartwheelError
from heartwheel.kafka.bounded import BoundedConsumer, OnOversized, warn_of_oversized
from heartwheel.kafka.security import client_settings
from heartwheel.kafka.tls_login import FirmManager, TlsError, firm_client
from kafka import KafkaAdminClient

CONNECT_TIMEOUT_MS: Final = 10_000
"""How long a client looks for a first broker before it gives up, ms."""

WATCHED_TIMEOUT_MS: Final = 3_000
"""The same where a person waits for the answer, or where it is tried again anyway, ms."""

_UNREACHABLE: Final = (KafkaTimeoutError, KafkaConnectionError, MetadataEmptyBrokerList, OSError)
"""What the client raises where no broker serves. Of a cluster whose only broker was fenced, and is about to come back,
it says that the list of brokers is empty."""


class KafkaUnreachableError(HeartwheelError, ConnectionError):
    """No broker answers at the given addresses."""


class KafkaRefusedError(HeartwheelError):
    """A broker answered, and refused; the message names the error without the request's whole text."""


@contextlib.contextmanager
def plain_errors(bootstrap: str, doing: str) -> Iterator[None]:
    """Turn the client's errors into two that people can act on.

    Args:
        bootstrap: the addresses that were asked, for the message.
        doing: what was tried, such as `list the topics`.

    Raises:
        KafkaUnreachableError: if nobody answered, or a partition has no leader.
        KafkaRefusedError: for every other error of the client.
    """
    try:
        yield
    except TlsError as error:
        hint = (
            "check ssl.ca.location and that the certificate names this address; "
            "a broker that wants a certificate of yours needs ssl.certificate.location and ssl.key.location"
        )
        raise KafkaRefusedError(
            f"no trusted connection to Kafka at {bootstrap}: {_last_words(error)}", hint=hint
        ) from error
    except (SaslAuthenticationFailedError, UnsupportedSaslMechanismError) as error:
        hint = "check security.protocol, sasl.mechanism, sasl.username and sasl.password"
        raise KafkaRefusedError(
            f"Kafka at {bootstrap} does not accept the login: {_last_words(error)}", hint=hint
        ) from error
    except LeaderNotAvailableError as error:
        hint = "the broker that leads it is away, or a leader is being elected: kafka-topics.sh --describe"
        raise KafkaUnreachableError(f"Kafka at {bootstrap} cannot {doing}: {_last_words(error)}", hint=hint) from error
    except _UNREACHABLE as error:
        hint = "is the broker up, is the address right, does it ask for TLS or a login (security.protocol)?"
        raise KafkaUnreachableError(f"no Kafka answers at {bootstrap} (tried to {doing})", hint=hint) from error
    except KafkaError as error:
        # The client puts its whole request into the text; its class says what people need.
        raise KafkaRefusedError(f"Kafka at {bootstrap} refused to {doing}: {type(error).__name__}") from error


def _last_words(error: Exception) -> str:
    """Take the names of classes, which the client puts first, off an error's text."""
    return str(error).rpartition("Error: ")[2]


def connect(kind: Callable[..., Any], bootstrap: str, *, timeout_ms: int, **settings: Any) -> Any:
    """Build one of kafka-python's clients, and close its sockets if it finds no broker: it would leave them open.

    Args:
        kind: `KafkaProducer`, `KafkaConsumer` or `KafkaAdminClient`.
        settings: its further arguments.
    """
    opened: list[Any] = []
    managers: list[FirmManager] = []

    def keep(**given: Any) -> Any:
        client, manager = firm_client(**given)
        opened.append(client)
        managers.append(manager)
        return client

    try:
        return kind(
            bootstrap_servers=bootstrap.split(","), bootstrap_timeout_ms=timeout_ms, kafka_client=keep, **settings
        )
    except BaseException as error:
        for client, manager in zip(opened, managers, strict=True):
            manager.closed = False  # else closing would take it for done
            client.close()
        refusals = [refusal for manager in managers for refusal in manager.refusals.values()]
        if refusals and isinstance(error, KafkaTimeoutError):
            raise refusals[0] from error
        raise


@contextlib.contextmanager
def admin_client(
    bootstrap: str,
    properties: Mapping[str, str] | None = None,
    *,
    doing: str = "connect",
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
) -> Iterator[Any]:
    """Open an admin client for the length of a `with` block, its errors made plain.

    Args:
        properties: Kafka client properties in dotted style, see `heartwheel.kafka.security`.
        doing: what it is for, for error messages.

    Raises:
        KafkaUnreachableError: if nobody answers in time.
        KafkaRefusedError: if the cluster refuses what the block asks for.
    """
    settings = client_settings(properties or {})
    with plain_errors(bootstrap, doing):
        client = connect(KafkaAdminClient, bootstrap, timeout_ms=connect_timeout_ms, **settings)
        with contextlib.closing(client):
            yield client


@contextlib.contextmanager
def reader(
    bootstrap: str,
    properties: Mapping[str, str] | None = None,
    *,
    doing: str = "read",
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
    on_oversized: OnOversized = warn_of_oversized,
    headers: bool = False,
) -> Iterator[Any]:
    """Open a consumer without a group that sees committed records only; assign partitions to it yourself.

    Record batches that unpack to more than `heartwheel.kafka.bounded.UNPACKED_BYTES_MAX` are passed over.

    Args:
        properties: Kafka client properties in dotted style.
        doing: what it is for, for error messages.
        on_oversized: called with each batch that is passed over; the default logs a warning.
        headers: whether to read the headers of records, which without are `None`.

    Raises:
        KafkaUnreachableError: if nobody answers in time.
        KafkaRefusedError: if the cluster refuses what the block asks for.
    """
    settings = client_settings(properties or {})
    with plain_errors(bootstrap, doing):
        consumer = connect(
            partial(BoundedConsumer, on_oversized=on_oversized, headers=headers),
            bootstrap,
            timeout_ms=connect_timeout_ms,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            max_poll_records=10_000,
            max_partition_fetch_bytes=4 << 20,
            **settings,
        )
        try:
            yield consumer
        finally:
            consumer.close(timeout_ms=500)  # with a dead broker the default would wait for half a minute


def close_producer(producer: Any, *, timeout_s: float) -> None:
    """Close a producer; records that are not sent in time are given up.

    kafka-python refuses to close while records are left, and its thread would go on for ever.
    """
    try:
        producer.close(timeout=timeout_s)
    except KafkaError:
        producer._sender.force_close()  # noqa: SLF001 - there is no public way to say it
