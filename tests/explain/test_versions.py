"""The same minute as other versions of Kafka would have logged it: all that their words can say is found, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from heartwheel.sources.explain.scan import Scanned
from support.broker_logs import REAL, expectations, explained, judge

_LEFT = re.compile(
    r"Member MemberMetadata\(memberId=(?P<member>.+?), groupInstanceId=None,.*\) has left group (?P<group>.+?) through explicit "
    r"`LeaveGroup`; client reason: (?P<words>.*)$"
)
_TOPIC = re.compile(r" \(__consumer_offsets-\d+\)")
_LINE = re.compile(r"^(\[.+?\] INFO )\[GroupCoordinator 1\]: (.*) \(kafka\.coordinator\.group\.GroupCoordinator\)$")

Said = Callable[[str], list[str]]


def _new(text: str) -> list[str]:
    """As the new coordinator, of 3.7 to 4.3, says it: a leave before its trigger, lists in brackets, dots at the ends."""
    left = _LEFT.match(text)
    if left:
        return [
            f"[Group {left['group']}] Member {left['member']} has left group through explicit `LeaveGroup` request; client reason: {left['words']}"
        ]
    text = _TOPIC.sub("", text)
    text = (
        re.sub(r"Set\((.*)\)", r"[\1]", text)
        .replace("instance id None", "instance id null")
        .replace("and request the", "and requesting the")
    )
    text = re.sub(
        r"\(reason: Removing member (\S+) on LeaveGroup; client reason: .*\)$",
        r"(reason: explicit `LeaveGroup` request for (\1) members.)",
        text,
    )
    text = text.replace("on heartbeat expiration)", "on heartbeat expiration.)")
    return [text if text.startswith("Group") and "haven't joined" in text else text.rstrip(".") + "."]


def _by_28(text: str) -> list[str]:
    """As 2.8 says it: no client gives a reason, and a leave stands before its trigger."""
    left = _LEFT.match(text)
    if left:
        return [
            f"Member[group.instance.id None, member.id {left['member']}] in group {left['group']} has left, removing it from the group"
        ]
    text = re.sub(r"; client reason: .*\)$", ")", text).replace("(reason: Removing", "(reason: removing")
    text = re.sub(r"from leader \S+ for", "from leader for", text)
    text = text.replace("Dynamic member with", "Dynamic Member with").replace(
        "and request the member to rejoin with this id.", "for this member and add to the group."
    )
    return [text.replace("Leader ", "leader ")]


def _by_24(text: str) -> list[str]:
    """As 2.4 says it: nothing of who joins, of who is removed at the end of a join phase, or of how many there are."""
    if "removed dynamic members" in text or "with unknown member id" in text:
        return []
    (text,) = _by_28(text)
    text = re.sub(r"( with \d+ members|\. The group has .*)$", "", text)
    return [text.replace("instance id None", "instanceid None").replace("instance.id None", "instance.id Some(null)")]


def _silent(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Expect what clients said to be unknown: a poll timeout is then a leave."""
    return [{**row, "kind": row["kind"].replace("poll_timeout", "left"), "reason_has": ""} for row in rows]


def _unnamed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Expect nobody to be named who did not join again; how long that took is known."""
    return [{**row, "blocked_by": []} for row in _silent(rows) if row["kind"] != "removed_at_rebalance"]


VERSIONS: dict[str, tuple[str, Said, Callable[[list[dict[str, Any]]], list[dict[str, Any]]]]] = {
    "new coordinator": ("[GroupCoordinator id=1 topic=__consumer_offsets partition=17] ", _new, list),
    "2.8": ("[GroupCoordinator 1]: ", _by_28, _silent),
    "2.4": ("[GroupCoordinator 1]: ", _by_24, _unnamed),
}


def _retold(version: str) -> str:
    prefix, say, _ = VERSIONS[version]
    lines = []
    for line in (REAL / "server.log").read_text().splitlines():
        match = _LINE.match(line)
        lines += [f"{match[1]}{prefix}{text} (a.GroupMetadataManager)" for text in say(match[2])] if match else [line]
    return "\n".join(lines)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_judged_by_the_truth(version: str) -> None:
    """Everything that was done is found in its window of time and once, and nothing is invented."""
    scanned = Scanned()
    events = explained(_retold(version), scanned=scanned)
    assert judge(events, VERSIONS[version][2](expectations())) == []
    assert scanned.unknown == {}
    assert scanned.coordinator_lines > 150
