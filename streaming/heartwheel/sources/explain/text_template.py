"""Sentences with fields, matched in linear time.

Ids, reasons and host names are free text of Kafka's clients. So a sentence is matched from left to right: each field
ends at the first occurrence of the words after it, and is never matched a second time. The groups are atomic, and the
words between two fields have a bounded length. A sentence whose words occur again inside a client's text has more than
one reading: `Match.is_ambiguous` reports that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.trigger_causes import instance_in, names_of

BY_MEMBER: Final = "][MemberId "
"""What follows a group's id where a line names the member behind it."""

_CLIENT_REASON: Final = "; client reason: "

_END: Final = r"\.{0,2}(?![^\s\"'|,;({\[<\\])"
_SHAPED: Final = {
    "number": r"-?\d{1,10}",
    "size": r"\d{1,10}",
    "session": r"\d{1,10}",
    "rebalance": r"\d{1,10}",
    "state": r"\w{1,40}",
    "protocol": r"\w{1,20}",
    "listed": r"\w{0,40}\([^()]*+\)|\[[^\[\]]*+\]",
}
"""Fields with a form of their own; every other field is free text."""

_MAY_BE_EMPTY: Final = frozenset({"client", "host", "words", "rest"})
_FIELD: Final = re.compile(r"\{([a-z]+)\}")
_SIGNS: Final = re.compile(r"\(\?P<\w+>|\\.")
_PLAIN: Final = re.compile(r"(?:\(\?:[^()]*\)\?|\(\?<![^()]*\))*(?P<plain>(?:[\w ,:;=/'`-]|\\[^\w\s])*(?![?*+{]))")
"""The first words of a separator that appear literally in a text, except for backslashes; what may be absent precedes
them."""


def _number(text: str) -> int | None:
    return int(text) if text else None


def _words(text: str) -> str:
    return text.strip().removeprefix(_CLIENT_REASON)


def _reason(text: str) -> str:
    return text.partition("(reason: ")[2].rpartition(")")[0].removeprefix(_CLIENT_REASON)


_OF_FACT: Final[dict[str, tuple[str, Callable[[str], Any] | None]]] = {
    "group": ("group_id", None),
    "member": ("member_id", None),
    "new": ("new_member_id", None),
    "listed": ("members", lambda text: tuple(names_of(text))),
    "instance": ("group_instance_id", instance_in),
    "client": ("client_id", None),
    "host": ("client_host", None),
    "session": ("session_timeout_ms", _number),
    "rebalance": ("rebalance_timeout_ms", _number),
    "number": ("number", _number),
    "size": ("size", _number),
    "protocol": ("protocol", None),
    "words": ("words", _words),
    "state": ("state", None),
}
"""Where a field of a sentence is in a fact, and how its text is converted."""


class Text:
    """A sentence of the coordinator.

    Args:
        template: a regular expression of bounded length, with names of fields in braces; a field at its end takes the
            rest.
        protocol: the only group type that writes it; empty if several do.
        needle: words that it always contains, searched for first.
        names_member: whether `[MemberId M]` may follow the group.
    """

    def __init__(
        self, kind: FactKind, template: str, protocol: str = "", *, needle: str = "", names_member: bool = False
    ) -> None:
        self.kind, self.protocol, self.needle, self.names_member = kind, protocol, needle, names_member
        self._head, *rest = _FIELD.split(_FIELD.sub(_shape, template))
        self.fields, self.separators = rest[::2], rest[1::2]
        if self.separators and self.separators[-1]:
            self.separators[-1] += _END
        elif not self.fields:
            self._head += _END

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The sentence as a regular expression, compiled when a line first needs it: a log uses few of them."""
        return re.compile(self._head + "".join(map(_step, self.fields, self.separators)), re.DOTALL)

    @cached_property
    def _again(self) -> list[tuple[str, str, re.Pattern[str]]]:
        """The words after fields: the next field, how the words begin, and the words themselves."""
        return [
            (behind, _begin(separator), re.compile(separator, re.DOTALL))
            for behind, separator in zip([*self.fields, ""][1:], self.separators, strict=True)
            if _has_words(separator)
        ]

    @cached_property
    def _of_fact(self) -> list[tuple[str, str, Callable[[str], Any] | None]]:
        """The fields of this sentence that a fact has, each with its name there and its conversion."""
        own = {"words": ("words", _reason)} if self.kind is FactKind.TRIGGER else {}
        names = [name for name in self.pattern.groupindex if name in _OF_FACT]
        return [(name, *(_OF_FACT | own)[name]) for name in names if not (self.protocol and name == "protocol")]

    def fact(self, broker_id: int, match: re.Match[str]) -> Fact:
        """Return the fact of a match."""
        found = match.groupdict("")
        fact = Fact(broker_id=broker_id, kind=self.kind, protocol=self.protocol)
        for name, field, convert in self._of_fact:
            setattr(fact, field, found[name] if convert is None else convert(found[name]))
        fact.static = bool(fact.group_instance_id)
        if self.names_member:
            fact.group_id, _, by = fact.group_id.partition(BY_MEMBER)
            fact.member_id = fact.member_id or by
        return fact

    def end(self, text: str) -> int:
        """Return where this sentence is complete in a text; -1 if it is not there."""
        match = self.pattern.match(text) if self.needle in text else None
        if match is None:
            return -1
        return match.end() if not self.fields or self.separators[-1] else match.start(self.fields[-1])

    def begins(self, text: str) -> bool:
        """Return whether a message begins with the words before this sentence's first field."""
        # `[GroupId G]` begins many sentences, also those of newer versions; the bracket alone shows none of them.
        return re.match(self._head, text) is not None and not (text.startswith("[") and "] " in text)

    def is_ambiguous(self, text: str, match: re.Match[str]) -> bool:
        """Return whether a match can be read in another way: a field or what follows has the words that precede it."""
        for behind, begin, separator in self._again:
            since, until = match.span(behind) if behind else (match.end(), len(text))
            if text.find(begin, since - 1, until) >= 0 and separator.search(text, since - 1, until):
                return True
        return False


def _has_words(separator: str) -> bool:
    """Return whether there are words, and not only punctuation, between two fields."""
    return re.search(r"[A-Za-z]{2}", _SIGNS.sub("", separator.removesuffix(_END))) is not None


def _begin(separator: str) -> str:
    """Return the first words that each text has which a separator matches; empty if they differ."""
    plain = _PLAIN.match(separator)
    return plain["plain"].replace("\\", "") if plain else ""


def _shape(match: re.Match[str]) -> str:
    shape = _SHAPED.get(match[1])
    return match[0] if shape is None else f"(?P<{match[1]}>{shape})"


def _step(name: str, separator: str) -> str:
    """Return the pattern of a field that ends at the first occurrence of the words after it."""
    if not separator:
        return f"(?P<{name}>.*)"
    many = "*?" if name in _MAY_BE_EMPTY else "+?"
    return f"(?>(?P<{name}>.{many}){separator})"
