"""The coordinator's sentences, of Kafka 2.0 to 4.4, parsed into facts.

The texts are those of `kafka.coordinator.group.GroupCoordinator` (up to 3.9) and of
`org.apache.kafka.coordinator.group.GroupMetadataManager` (3.7 and newer, the only one from 4.0). Where versions differ,
a pattern matches each of them; `tests/explain/test_texts.py` has a line of each.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.identified_texts import OTHER_SENTENCE
from heartwheel.sources.explain.text_patterns import BY_START, NOTHING, WITHOUT_FACT
from heartwheel.sources.explain.text_template import BY_MEMBER, Text

PREFIX: Final = re.compile(r"\[GroupCoordinator (?:id=)?(?P<broker>\d{1,10})(?!\d)[^\]]{0,300}\]:? ?")
"""The start of each message of a group coordinator."""

_PREFIX_CHARS_MAX: Final = 400
_START: Final = re.compile(r"\[?\w{0,20}")


def broker_of(message: str) -> tuple[int, int] | None:
    """Return the broker's id in the start of a message, and where its text begins; `None` if it does not begin so."""
    return _read_prefix(message[: message.find("]", 0, _PREFIX_CHARS_MAX) + 3])


@lru_cache(maxsize=256)
def _read_prefix(text: str) -> tuple[int, int] | None:
    """Read the start of a message; a broker has few, so the newest ones are remembered."""
    prefix = PREFIX.match(text)
    return None if prefix is None else (int(prefix["broker"]), prefix.end())


def _start(text: str) -> str:
    """Return the first word, by which sentences are looked up."""
    found = _START.match(text)
    return found[0] if found is not None else ""


def read(message: str) -> Fact | None:
    """Parse a message into a fact.

    Args:
        message: from the coordinator's prefix on.

    Returns:
        The fact; `NOTHING` for a message about no member and no rebalance; `SUSPICIOUS` for one that can be read in
        more than one way, because an id or a reason contains the coordinator's words; `None` for an unknown text.
    """
    head = broker_of(message)
    if head is None:
        return None
    broker_id, text = head[0], message[head[1] :]
    start = _start(text)
    readings = [
        (each, match)
        for each in BY_START.get(start, ())
        if each.needle in text and (match := each.pattern.match(text)) is not None
    ]
    if not readings:
        is_known = NOTHING.match(text) or any(
            each.needle in text and each.pattern.match(text) for each in WITHOUT_FACT.get(start, ())
        )
        return Fact(broker_id=broker_id) if is_known else None
    each, match = readings[0]
    if len(readings) == 1 and each.kind is FactKind.NOTHING:
        return Fact(broker_id=broker_id)
    if len(readings) > 1 or each.is_ambiguous(text, match) or (start[0] == "[" and _is_forgeable(text, each, match)):
        return Fact(broker_id=broker_id, kind=FactKind.SUSPICIOUS)
    return each.fact(broker_id, match)


def end_of_sentence(message: str) -> int:
    """Return the end of the first complete sentence that begins like a message; -1 if none is complete."""
    head = broker_of(message)
    if head is None:
        return -1
    text = message[head[1] :]
    ends = [each.end(text) for each in BY_START.get(_start(text), ())]
    return min((head[1] + end for end in ends if end >= 0), default=-1)


def is_cut(message: str) -> bool:
    """Return whether an unknown message begins like a known sentence: a client may have broken it."""
    head = broker_of(message)
    if head is None:
        return False
    text = message[head[1] :]
    return any(each.begins(text) for each in BY_START.get(_start(text), ()))


def _is_forgeable(text: str, sentence: Text, match: re.Match[str]) -> bool:
    """Return whether the group's id may end at another place than the first bracket."""
    group = match["group"]
    by_member = group.count(BY_MEMBER)
    begin = text.index(group) + len(group) + 2
    return by_member > sentence.names_member or OTHER_SENTENCE.search(text, begin) is not None
