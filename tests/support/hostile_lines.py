"""Lines of a broker's log as a hostile client, a damaged disk or an odd carrier makes them, in any size."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

TIME: Final = "[2026-11-22 02:12:24,836] INFO "
PREFIX: Final = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0] "
HEAD: Final = TIME + PREFIX
LOGGER: Final = " (org.apache.kafka.coordinator.group.GroupMetadataManager)"
EXPIRY: Final = "Member m-1 in group g has failed, removing it from the group."
METADATA: Final = (
    "MemberMetadata(memberId=a, groupInstanceId=None, clientId=c, clientHost=/h, sessionTimeoutMs=1, "
    "rebalanceTimeoutMs=1, supportedProtocols=List(range"
)

SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "a group id of spaces": lambda n: (
        f"{HEAD}Dynamic member with unknown member id joins group {' ' * n} in Empty state. Created a new "
        f"member id x and requesting the member to rejoin with this id.{LOGGER}"
    ),
    "spaces and no logger": lambda n: HEAD + " " * n,
    "MemberMetadata(": lambda n: f"{HEAD}Member {'MemberMetadata(' * (n // 15)}{LOGGER}",
    "whole members": lambda n: f"{HEAD}Member {METADATA * (n // len(METADATA))}{LOGGER}",
    "][MemberId": lambda n: f"{HEAD}[GroupId a{'][MemberId ' * (n // 11)}",
    "members in groups": lambda n: f"{HEAD}[GroupId a{'] Member b left the ' * (n // 20)}",
    "instances": lambda n: f"{HEAD}[GroupId a] Static member b{' with instance id c' * (n // 19)}{LOGGER}",
    "a word": lambda n: f"{HEAD}Unknown {'a' * n}",
    "a word at the begin": lambda n: HEAD + "a" * n,
    "groups in groups": lambda n: f"{HEAD}Member m{' in group g' * (n // 11)}",
    "expiries in expiries": lambda n: (
        f"{HEAD}Member m in group g{' has failed, removing it from the group' * (n // 39)}{LOGGER}"
    ),
    "instances in a reason": lambda n: (
        f"{HEAD}Preparing to rebalance group g in state Empty with old generation 3 (reason: Updating metadata for "
        f"{'with instance id ' * (n // 17)}x).{LOGGER}"
    ),
    "lists": lambda n: f"{HEAD}Group g removed dynamic members who haven't joined: {'Set(' * (n // 4)}{LOGGER}",
    "generations": lambda n: f"{HEAD}Preparing to rebalance group g{' with old generation 3 (reason: x)' * (n // 34)}",
    "digits": lambda n: f"{HEAD}Preparing to rebalance group g with old generation {'9' * n} (reason: x).{LOGGER}",
    "a broker of digits": lambda n: f"{TIME}[GroupCoordinator {'9' * n}]: {EXPIRY}{LOGGER}",
    "digits in a fence": lambda n: (
        f"{HEAD}[GroupId g] Member m fenced from the group because it failed to transition from epoch {'9' * n} within "
        f"{'9' * n}ms.{LOGGER}"
    ),
    "threads": lambda n: f"{HEAD}{EXPIRY}{' [thread' * (n // 8)}",
    "a thread of dots": lambda n: f"{HEAD}{EXPIRY} [{'thread.' * (n // 7)}",
    "a logger of dots": lambda n: f"{HEAD}{EXPIRY} {'(a.' * (n // 3)}",
    "loggers": lambda n: f"{HEAD}{EXPIRY}{' (GroupCoordinator)' * (n // 19)}",
    "colours": lambda n: HEAD + "\x1b[" * (n // 2),
    "times before": lambda n: "2026-11-22 02:12:24,836 " * (n // 24) + PREFIX + EXPIRY,
    "quotes": lambda n: 'msg="' + HEAD + '\\"' * (n // 2),
    "nested objects": lambda n: '{"a":' * (n // 5) + json.dumps(HEAD + EXPIRY) + "}" * (n // 5),
    "nested lists": lambda n: "[" * n + HEAD,
    "objects without a line's end": lambda n: json.dumps({"message": HEAD + EXPIRY}) * (n // 150),
    "an open object after others": lambda n: '{"a":1}' * (n // 7) + "{" + HEAD,
    "a time of digits": lambda n: json.dumps({"message": HEAD + EXPIRY})[:-1] + f', "time": {"9" * n}}}',
    "a time of quoted digits": lambda n: json.dumps({"time": "9" * n, "message": HEAD + EXPIRY}),
    "an instant of digits": lambda n: (
        '{"instant": {"epochSecond": ' + "9" * n + '}, "message": "' + PREFIX + EXPIRY + '"}'
    ),
    "lines in JSON": lambda n: json.dumps({"message": (PREFIX + EXPIRY + "\n") * (n // 120)}),
    "broken lines": lambda n: (f"{HEAD}Member a\n") * (n // 100),
    "broken lines among whole ones": lambda n: (f"{HEAD}Member a\n" * 20 + f"{HEAD}{EXPIRY}{LOGGER}\n") * (n // 2_000),
    "broken lines with the words of the end": lambda n: (
        f"{HEAD}Member a\n in group b has failed, removing it from the group.\n" * (n // 150)
    ),
    "parts of a line": lambda n: "2026-11-22T02:12:24.8Z stdout P x\n" * (n // 34) + HEAD,
}
"""Lines of about so many characters."""

ODD: Final[dict[str, str]] = {
    "instant.nanoOfSecond is no number": json.dumps(
        {"instant": {"epochSecond": 1_795_239_789, "nanoOfSecond": "x"}, "message": PREFIX + EXPIRY}
    ),
    "a time before year 1 by its zone": f"[0001-01-01 00:00:00,000+05:00] INFO {PREFIX}{EXPIRY}",
    "a time after year 9999 by its zone": f"[9999-12-31 23:59:59,999-05:00] INFO {PREFIX}{EXPIRY}",
    "a time of 400 digits": '{"time": ' + "9" * 400 + ', "message": "' + PREFIX + EXPIRY + '"}',
    "infinite time": '{"time": 1e999, "message": "' + PREFIX + EXPIRY + '"}',
    "an instant of 30 digits": '{"instant": {"epochSecond": ' + "9" * 30 + '}, "message": "' + PREFIX + EXPIRY + '"}',
    "surrogates": HEAD + EXPIRY.replace("m-1", "\udce9\ud800"),
    "NUL": HEAD + EXPIRY.replace("m-1", "\0\0"),
    "a message of numbers that are no bytes": json.dumps({"MESSAGE": [71, 114, 111, 300, -1, "x", None]}),
    "only a prefix": PREFIX,
    "a prefix without an end": HEAD[:-10],
    "a message of another type": json.dumps({"message": [PREFIX + EXPIRY, {"a": PREFIX}], "time": [1]}),
}
"""Lines that are odd in themselves."""
