"""The coordinator's sentences, of Kafka 2.0 to 4.3, read into facts.

The texts are those of `kafka.coordinator.group.GroupCoordinator` (up to 3.9) and of
`org.apache.kafka.coordinator.group.GroupMetadataManager` (3.7 and newer, the only one from 4.0). Where versions differ
a pattern takes each of them; `tests/explain/test_texts.py` has a line of each.
"""

from __future__ import annotations

import re
from typing import Final

from heartwheel.explain.facts import Fact, Said
from heartwheel.explain.text_patterns import _TOPIC, BY_START, NOTHING, Text
from heartwheel.explain.trigger_causes import instance_in, names_of

_PREFIX: Final = re.compile(r"\[GroupCoordinator (?:id=)?(?P<broker>\d+)[^\]]*\]:? ?")
_START: Final = re.compile(r"^\[?\w*")

_TRIGGER: Final = re.compile(
    r"Preparing to rebalance group (?P<group>.+?)(?: in state \w+)? with old generation (?P<number>-?\d+)"
    rf"{_TOPIC}(?: \(reason: (?P<words>.*)\))?\.?\s*$",
    re.DOTALL,
)


def read(message: str) -> Fact | None:
    """Read a message into a fact.

    Args:
        message: from the coordinator's prefix on.

    Returns:
        The fact, `NOTHING` for what is about no member and no rebalance; `None` for a text that is not known.
    """
    prefix = _PREFIX.match(message)
    if prefix is None:
        return None
    broker_id, text = int(prefix["broker"]), message[prefix.end() :]
    start = _START.findall(text)[0]
    if start == "Preparing":
        return _trigger(broker_id, text)
    for each in BY_START.get(start, ()):
        match = each.pattern.match(text)
        if match is not None:
            return _fact(broker_id, each, match)
    return Fact(broker_id=broker_id) if NOTHING.match(text) else None


def _trigger(broker_id: int, text: str) -> Fact | None:
    match = _TRIGGER.match(text)
    if match is None:
        return None
    words = match["words"] or ""
    return Fact(
        broker_id=broker_id,
        said=Said.TRIGGER,
        group_id=match["group"],
        number=int(match["number"]),
        words=words,
        protocol="classic",
    )


def _fact(broker_id: int, text: Text, match: re.Match[str]) -> Fact:
    found = match.groupdict()
    instance = instance_in(found.get("some") or found.get("instance") or "")
    return Fact(
        broker_id=broker_id,
        said=text.said,
        group_id=found.get("group") or "",
        member_id=found.get("member") or found.get("by") or "",
        new_member_id=found.get("new") or "",
        members=names_of(found["listed"]) if found.get("listed") else [],
        group_instance_id=instance,
        client_id=found.get("client") or "",
        client_host=found.get("host") or "",
        session_timeout_ms=_number(found.get("session")),
        rebalance_timeout_ms=_number(found.get("rebalance")),
        number=_number(found.get("number")),
        size=_number(found.get("size")),
        protocol=text.protocol or found.get("protocol") or "",
        words=(found.get("words") or "").strip(),
        static=bool(instance),
        state=found.get("state") or "",
    )


def _number(text: str | None) -> int | None:
    return int(text) if text else None
