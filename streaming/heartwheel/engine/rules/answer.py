"""The coordinator's answers to requests."""

from __future__ import annotations

import enum
from typing import Final


class Answer(enum.StrEnum):
    """The answer to a request by Kafka's error name; `PARKED` is a join or sync whose answer comes later."""

    NONE = "NONE"
    PARKED = "PARKED"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
    INVALID_SESSION_TIMEOUT = "INVALID_SESSION_TIMEOUT"
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    COORDINATOR_NOT_AVAILABLE = "COORDINATOR_NOT_AVAILABLE"
    NOT_COORDINATOR = "NOT_COORDINATOR"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"
    UNRELEASED_INSTANCE_ID = "UNRELEASED_INSTANCE_ID"
    INVALID_REQUEST = "INVALID_REQUEST"


KEEPS_ALIVE: Final = frozenset({Answer.NONE, Answer.REBALANCE_IN_PROGRESS})
"""The answers to a heartbeat that reset the session. No other answer does."""
