"""The coordinator's sentences, of Kafka 2.0 to 4.4, parsed into facts.

The texts are those of `kafka.coordinator.group.GroupCoordinator` (up to 3.9) and of
`org.apache.kafka.coordinator.group.GroupMetadataManager` (3.7 and newer, the only one from 4.0). Where versions differ,
a pattern matches each of them; `tests/explain/test_texts.py` has a line of each.
"""

from __future__ import annotations

import re
from typing import Final

from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.identified_texts import OTHER_SENTENCE
from heartwheel.sources.explain.text_patterns import BY_START, NOTHING, WITHOUT_FACT
from heartwheel.sources.explain.text_template import Match, Text
from heartwheel.sources.explain.trigger_causes import instance_in, names_of

PREFIX: Final = re.compile(r"\[GroupCoordinator (?:id=)?(?P<broker>\d{1,10})(?!\d)[^\]]{0,300}\]:? ?")
"""The start of each message of a group coordinator."""

_START: Final = re.compile(r"\[?\w{0,20}")
_BY_MEMBER: Final = "][MemberId "
_REASON: Final = "; client reason: "


def read(message: str) -> Fact | None:
    """Parse a message into a fact.

    Args:
        message: from the coordinator's prefix on.

    Returns:
        The fact; `NOTHING` for a message about no member and no rebalance; `SUSPICIOUS` for one that can be read in
        more than one way, because an id or a reason contains the coordinator's words; `None` for an unknown text.
    """
    prefix = PREFIX.match(message)
    if prefix is None:
        return None
    broker_id, text = int(prefix["broker"]), message[prefix.end() :]
    found = _START.match(text)
    start = found[0] if found is not None else ""
    readings = [
        (each, match)
        for each in BY_START.get(start, ())
        if each.needle in text and (match := each.match(text)) is not None
    ]
    if not readings:
        is_known = NOTHING.match(text) or any(
            each.needle in text and each.match(text) for each in WITHOUT_FACT.get(start, ())
        )
        return Fact(broker_id=broker_id) if is_known else None
    each, match = readings[0]
    if len(readings) == 1 and each.kind is FactKind.NOTHING:
        return Fact(broker_id=broker_id)
    if len(readings) > 1 or match.is_ambiguous or (start.startswith("[") and _is_forgeable(text, each, match)):
        return Fact(broker_id=broker_id, kind=FactKind.SUSPICIOUS)
    return _fact(broker_id, each, match)


def end_of_sentence(message: str) -> int:
    """Return the end of the first complete sentence that begins like a message; -1 if none is complete."""
    prefix = PREFIX.match(message)
    if prefix is None:
        return -1
    text = message[prefix.end() :]
    found = _START.match(text)
    ends = [each.end(text) for each in BY_START.get(found[0] if found is not None else "", ())]
    return min((prefix.end() + end for end in ends if end >= 0), default=-1)


def is_cut(message: str) -> bool:
    """Return whether an unknown message begins like a known sentence: a client may have broken it."""
    prefix = PREFIX.match(message)
    if prefix is None:
        return False
    text = message[prefix.end() :]
    found = _START.match(text)
    return any(each.begins(text) for each in BY_START.get(found[0] if found is not None else "", ()))


def _is_forgeable(text: str, sentence: Text, match: Match) -> bool:
    """Return whether the group's id may end at another place than the first bracket."""
    group = match.fields["group"] or ""
    by_member = group.count(_BY_MEMBER)
    begin = text.index(group) + len(group) + 2
    return by_member > sentence.names_member or OTHER_SENTENCE.search(text, begin) is not None


def _fact(broker_id: int, text: Text, match: Match) -> Fact:
    found = match.fields
    group, _, by = (found.get("group") or "").partition(_BY_MEMBER if text.names_member else "\0")
    instance = instance_in(found.get("instance") or "")
    words = (found.get("words") or "").strip()
    if text.kind is FactKind.TRIGGER:
        words = words.partition("(reason: ")[2].rpartition(")")[0]
    return Fact(
        broker_id=broker_id,
        kind=text.kind,
        group_id=group,
        member_id=found.get("member") or by,
        new_member_id=found.get("new") or "",
        members=names_of(found["listed"] or "") if "listed" in found else [],
        group_instance_id=instance,
        client_id=found.get("client") or "",
        client_host=found.get("host") or "",
        session_timeout_ms=_number(found.get("session")),
        rebalance_timeout_ms=_number(found.get("rebalance")),
        number=_number(found.get("number")),
        size=_number(found.get("size")),
        protocol=text.protocol or found.get("protocol") or "",
        words=words.removeprefix(_REASON),
        static=bool(instance),
        state=found.get("state") or "",
    )


def _number(text: str | None) -> int | None:
    return int(text) if text else None
