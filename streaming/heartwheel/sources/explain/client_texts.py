"""What consumers write into their own logs when they are out of their group.

The texts are those of `AbstractCoordinator` and of the heartbeat managers in Kafka's Java client (3.9 and 4.3), of
librdkafka 2.16, and of kafka-python 2.0 to 3.0. Where older Java clients differ, a pattern leaves the text open.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from typing import Final

TEXT_CHARS_MAX: Final = 4_096
"""How much of a line is matched, characters."""


class ClientSaid(enum.StrEnum):
    """The kind of a consumer's line."""

    POLL_TIMEOUT = "poll_timeout"
    LEFT = "left"
    REMOVED = "removed"
    NO_ANSWER = "no_answer"
    REBALANCING = "rebalancing"
    JOINED = "joined"
    POLLED_LATE = "polled_late"


NEEDLES: Final = re.compile(
    rb"oll timeout has expired\. This means|sending LeaveGroup request to|Resetting generation |Leaving consumer group "
    rb"|heartbeat failed since group is rebalancing|Request joining group due to"
    rb"|Successfully synced group|Successfully joined group"
    rb"|session timed out without receiving|HeartbeatRequest failed (?:because|for) member|will rejoin the group"
    rb"|Application maximum poll interval \(|Consumer group session timed out|local member_id was not recognized"
    rb"|Heartbeat session expired|Time between subsequent calls to poll"
    rb"|Heartbeat poll expired, leaving group|Heartbeat failed for group |is rebalancing; rejoining"
)
"""The text that every line of a kind contains."""

CONTEXT: Final = re.compile(
    r"\[(?:Consumer|Worker) (?:instanceId=(?P<instance>[^,\]]{0,300}), )?clientId=(?P<client>[^,\]]{0,300}), "
    r"groupId=(?P<group>[^\]]{0,300})\] "
)
"""What the Java client writes before each message."""

RDKAFKA: Final = re.compile(r"(?:\|| \[)(?P<client>[\w.-]{1,200}#consumer-\d+)[|\]]")
"""The name of a client of librdkafka."""

_MEMBER: Final = r"(?P<member>[^\s,'\"()]{1,400})"
_OUT: Final = r"UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION|FENCED_INSTANCE_ID"
_SLOW: Final = r"Time between subsequent calls to poll\(\) was longer than the configured max\.poll\.interval\.ms"

_PATTERNS: Final = (
    (r"[Cc]onsumer poll timeout has expired\. This means", ClientSaid.POLL_TIMEOUT),
    (
        (
            rf"(?:Member {_MEMBER} )?[Ss]ending LeaveGroup request to coordinator [^)]{{0,300}}\)"
            r"(?: due to (?P<words>[^\"\n]*))?"
        ),
        ClientSaid.LEFT,
    ),
    (
        rf"Resetting generation (?:and member id )?due to: (?P<words>encountered (?:{_OUT}) from \w+ response)",
        ClientSaid.REMOVED,
    ),
    (r"Attempt to heartbeat failed since group is rebalancing", ClientSaid.REBALANCING),
    (r"Request joining group due to: (?P<words>group is already rebalancing)", ClientSaid.REBALANCING),
    (
        (
            r"Successfully (?:synced|joined) group (?:in|with) generation (?:Generation\{generationId=)?"
            rf"(?P<number>\d{{1,9}})(?:, memberId='{_MEMBER}')?"
        ),
        ClientSaid.JOINED,
    ),
    (r"(?P<words>session timed out without receiving a heartbeat response)", ClientSaid.NO_ANSWER),
    (
        (
            rf"(?P<words>\w{{0,40}}HeartbeatRequest failed (?:because member {_MEMBER} is unknown"
            r"|for member \S{1,400} because epoch -?\d+ is fenced))"
        ),
        ClientSaid.REMOVED,
    ),
    (rf"{_SLOW}, exceeded approximately by (?P<late>\d{{1,12}}) ms\. Member {_MEMBER}", ClientSaid.POLLED_LATE),
    (r"Application maximum poll interval \((?P<limit>\d{1,12})ms\) exceeded by \d+ms", ClientSaid.POLL_TIMEOUT),
    (
        (
            r"(?P<words>Consumer group session timed out \(in join-state [^)]{0,40}\) after \d+ ms"
            r" without a successful response)"
        ),
        ClientSaid.NO_ANSWER,
    ),
    (r"(?P<words>\w{0,40}GroupHeartbeat failed due to: .{0,200}): will rejoin the group", ClientSaid.REMOVED),
    (r"(?P<words>Heartbeat: local member_id was not recognized)", ClientSaid.REMOVED),
    (r"(?P<words>Heartbeat session expired), marking coordinator dead", ClientSaid.NO_ANSWER),
    # kafka-python: 2.0 to 2.2.5 do not write "Consumer poll timeout", those up to 2.2 name no member, and 3.0 words a
    # rebalance differently.
    (r"Heartbeat poll expired, leaving group", ClientSaid.POLL_TIMEOUT),
    (rf"Leaving consumer group (?P<group>.{{1,300}}) \(member {_MEMBER}\)\.", ClientSaid.LEFT),
    (r"Leaving consumer group \((?P<group>.{1,300})\)\.", ClientSaid.LEFT),
    (
        r"Successfully joined group (?P<group>.{1,300}) with generation (?P<number>\d{1,9})",
        ClientSaid.JOINED,
    ),
    (
        rf"Successfully joined group (?P<group>.{{1,300}}) <Generation (?P<number>\d{{1,9}}) \(member_id: {_MEMBER}, ",
        ClientSaid.JOINED,
    ),
    (r"Heartbeat failed for group (?P<group>.{1,300}) because it is rebalancing", ClientSaid.REBALANCING),
    (r"\bGroup (?P<group>.{1,300}) is rebalancing; rejoining\.", ClientSaid.REBALANCING),
    (
        (
            r"(?P<words>Heartbeat failed for group (?P<group>.{1,300})"
            r"(?:: generation id is not  ?current| due to fenced id error))"
        ),
        ClientSaid.REMOVED,
    ),
)

TEXTS: Final[Sequence[tuple[re.Pattern[str], ClientSaid]]] = tuple(
    (re.compile(pattern), kind) for pattern, kind in _PATTERNS
)
"""The meaning of each text; the first one that matches counts."""
