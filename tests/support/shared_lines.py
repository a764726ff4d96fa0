"""Lines of a stream that the request logger shares with the broker's others, honest ones and forged ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from support.request_lines import fetch, line

OWN = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0]"
NAME = "org.apache.kafka.coordinator.group.GroupMetadataManager"
CUT = "Dynamic member with unknown member id joins group evil"
REST = " in Empty state. Created a new member id e and requesting the member to rejoin with this id."
MINE = "5f0c"
THREAD = "[data-plane-kafka-network-thread-0-ListenerName(PLAINTEXT)-PLAINTEXT-1]"


def stamp(at_ms: int) -> str:
    """Write a time as Kafka's layout does."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S},{at_ms % 1000:03d}"


def other(at_ms: int, text: str = CUT + REST, logger: str = f" ({NAME})") -> str:
    """Write a line of the coordinator's logger."""
    return f"[{stamp(at_ms)}] INFO {OWN} {text}{logger}"


def leave(at_ms: int) -> str:
    """Write a request by which member `m1` of group `g` leaves."""
    named = {"groupId": "g", "members": [{"memberId": "m1", "groupInstanceId": None, "reason": None}]}
    answer = {"errorCode": 0, "members": [{"memberId": "m1", "groupInstanceId": None, "errorCode": 0}]}
    return line(at_ms, 13, named, answer, version=5)


def own_request(at_ms: int) -> str:
    """Write a request of the tap's own."""
    return fetch(at_ms, client=MINE)


def cri(at_ms: int, text: str) -> str:
    """Put a line into what containerd writes."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S}.{at_ms % 1000:03d}Z stdout F {text}"


def docker(at_ms: int, text: str) -> str:
    """Put a line into what Docker writes."""
    return json.dumps(
        {"log": f"{text}\n", "stream": "stdout", "time": cri(at_ms, "").split()[0]}, separators=(",", ":")
    )


def _strimzi(_: int, text: str) -> str:
    return text.replace("[", "", 1).replace("]", "", 1) + (f" {THREAD}" if text.endswith(")") else "")


def _in_front(_: int, text: str) -> str:
    logger = "logger:281" if "Completed" in text else "GroupMetadataManager:12"
    for level in ("DEBUG ", "INFO "):
        head, found, rest = text.partition(level)
        if found:
            message = rest.removesuffix(" (kafka.request.logger)").removesuffix(f" ({NAME})")
            return f"{head}{level}{THREAD} {logger} - {message}"
    return text.removesuffix(f" ({NAME})")


CARRIERS: dict[str, Callable[[int, str], str]] = {
    "plain": lambda _, text: text,
    "cri": cri,
    "docker": docker,
    "strimzi": _strimzi,
    "logger in front": _in_front,
}


def forged_beside(at_ms: int, *lines: str, first: str = "") -> list[str]:
    """Write a message of the coordinator that a client has broken, with its lines inside."""
    return [first or other(at_ms, CUT, ""), *lines, f"{REST} ({NAME})"]


def strangers_beside(at_ms: int, *lines: str) -> list[str]:
    """Write two lines of the broker about a client that has not logged in, with lines of that client between them."""
    logger = " (org.apache.kafka.common.network.Selector)"
    said = "Failed authentication with /10.0.0.9 (channelId=10.0.0.1:9093-10.0.0.9:4-2) (Unsupported SASL mechanism x)"
    head = f"[{stamp(at_ms)}] INFO [SocketServer listenerType=BROKER, nodeId=1] "
    return [f"{head}{said}{logger}", *lines, f"{head}x){logger}"]
