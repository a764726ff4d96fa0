"""A real consumer in a process of its own, to be killed, frozen, or made to hang in its work.

    python -m heartwheel.front.demo.consumer PLAN

SIGTERM closes it in order, SIGKILL kills it, SIGSTOP freezes it, and SIGUSR1 makes it hang: it does not poll for the
plan's `hang_ms`, as a worker that is too slow with a message.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import Any, Final

import msgspec

_POLL_MS: Final = 100


class ConsumerPlan(msgspec.Struct, frozen=True):
    """What a consumer is.

    Args:
        protocol: `classic` (kafka-python), or `consumer` (KIP-848) or `share` (KIP-932), both librdkafka's.
        session_timeout_ms: of a classic one; the broker sets that of the others.
        heartbeat_interval_ms: likewise.
        max_poll_ms: how long it may go without a poll.
        hang_ms: how long it hangs when it is made to.
    """

    bootstrap: str
    topic: str
    group_id: str
    client_id: str
    protocol: str = "classic"
    session_timeout_ms: int = 6_000
    heartbeat_interval_ms: int = 500
    max_poll_ms: int = 10_000
    hang_ms: int = 25_000


class _Stop(Exception):  # noqa: N818 - no error: a signal
    pass


def _stop(*_: object) -> None:
    raise _Stop


def consume(plan: ConsumerPlan) -> None:
    """Consume until SIGTERM."""
    consumer = _classic(plan) if plan.protocol == "classic" else _librdkafka(plan)
    hangs = False

    def note_hang(*_: object) -> None:
        nonlocal hangs
        hangs = True

    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGUSR1, note_hang)
    try:
        while True:
            consumer.poll(_POLL_MS if plan.protocol == "classic" else _POLL_MS / 1000)
            if hangs:
                hangs = False
                time.sleep(plan.hang_ms / 1000)
    except _Stop:
        consumer.close()


def _classic(plan: ConsumerPlan) -> Any:
    from kafka import KafkaConsumer  # noqa: PLC0415 - a process needs one of the two clients

    return KafkaConsumer(
        plan.topic,
        bootstrap_servers=plan.bootstrap,
        group_id=plan.group_id,
        client_id=plan.client_id,
        session_timeout_ms=plan.session_timeout_ms,
        heartbeat_interval_ms=plan.heartbeat_interval_ms,
        max_poll_interval_ms=plan.max_poll_ms,
    )


def _librdkafka(plan: ConsumerPlan) -> Any:
    from confluent_kafka import Consumer, ShareConsumer  # noqa: PLC0415 - likewise

    settings = {"bootstrap.servers": plan.bootstrap, "group.id": plan.group_id, "client.id": plan.client_id}
    if plan.protocol == "share":
        consumer: Any = ShareConsumer(settings)
    else:
        consumer = Consumer({**settings, "group.protocol": "consumer", "max.poll.interval.ms": plan.max_poll_ms})
    consumer.subscribe([plan.topic])
    return consumer


if __name__ == "__main__":
    consume(msgspec.json.decode(sys.argv[1], type=ConsumerPlan))
