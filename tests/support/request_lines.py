"""Lines of a request log, as Kafka 4.3 writes them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

T0 = 1_795_239_795_000


def line(
    logged_ms: int,
    api: int,
    request: dict[str, Any],
    answer: dict[str, Any],
    *,
    took_ms: float = 1.0,
    version: int = 4,
    client: str = "py",
    connection: str = "127.0.0.1:9092-10.0.0.7:58408-0-4",
) -> str:
    """Write a line of the request logger in Kafka's own layout.

    Args:
        api: the request's number.
        request: its fields.
        took_ms: how long the request took, ms.
        connection: by which it came, as the broker names it.
    """
    names = {8: "OFFSET_COMMIT", 11: "JOIN_GROUP", 12: "HEARTBEAT", 13: "LEAVE_GROUP", 14: "SYNC_GROUP"}
    names |= {
        1: "FETCH",
        3: "METADATA",
        63: "BROKER_HEARTBEAT",
        68: "CONSUMER_GROUP_HEARTBEAT",
        76: "SHARE_GROUP_HEARTBEAT",
        88: "STREAMS_GROUP_HEARTBEAT",
    }
    said = {
        "isForwarded": False,
        "requestHeader": {
            "requestApiKey": api,
            "requestApiVersion": version,
            "correlationId": 6,
            "clientId": client,
            "requestApiKeyName": names[api],
        },
        "request": request,
        "response": answer,
        "connection": connection,
        "totalTimeMs": took_ms,
        "securityProtocol": "PLAINTEXT",
    }
    stamp = datetime.fromtimestamp(logged_ms / 1000, UTC)
    time = f"{stamp:%Y-%m-%d %H:%M:%S},{logged_ms % 1000:03d}"
    return f"[{time}] DEBUG Completed request:{json.dumps(said, separators=(',', ':'))} (kafka.request.logger)"


def fetch(logged_ms: int, **more: Any) -> str:
    """Write a request that is about no group."""
    return line(logged_ms, 1, {"topics": []}, {"errorCode": 0}, **more)


def metadata(logged_ms: int, **more: Any) -> str:
    """Write a request with which clients begin on a broker that has started."""
    return line(logged_ms, 3, {"topics": []}, {"errorCode": 0}, **more)


def starting(logged_ms: int, **more: Any) -> str:
    """Write a request that a broker sends to its controller before it serves anybody."""
    return line(logged_ms, 63, {"brokerId": 1}, {"errorCode": 0}, **more)


def heartbeat(logged_ms: int, member: str = "m1", error: int = 0, generation: int = 1, **more: Any) -> str:
    """Write a classic heartbeat of group `g`."""
    request = {"groupId": "g", "generationId": generation, "memberId": member, "groupInstanceId": None}
    return line(logged_ms, 12, request, {"throttleTimeMs": 0, "errorCode": error}, **more)


def join(
    logged_ms: int,
    member: str = "m1",
    error: int = 0,
    generation: int = 1,
    *,
    given: str = "",
    rebalance_ms: int = 60_000,
    **more: Any,
) -> str:
    """Write a join of group `g`."""
    request = {
        "groupId": "g",
        "sessionTimeoutMs": 6_000,
        "rebalanceTimeoutMs": rebalance_ms,
        "memberId": member,
        "groupInstanceId": None,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": "AAAA"}],
        "reason": None,
    }
    answer = {"errorCode": error, "generationId": generation, "leader": "m1", "memberId": given or member}
    return line(logged_ms, 11, request, answer, version=9, **more)
