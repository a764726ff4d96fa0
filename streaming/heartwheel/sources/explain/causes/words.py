"""What happened to a member's pod or machine, in words: the one place that makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from heartwheel.base.phrases import length
from heartwheel.base.plain import plain
from heartwheel.sources.explain.causes.happening import Happening, HappeningKind
from heartwheel.wire.explained import ExplainedCause

_ADVICE: Final[Mapping[str, str]] = {
    HappeningKind.OOM_KILLED: "Raise its memory limit, or lower what it keeps in memory: no timeout would help.",
    HappeningKind.EVICTED: "Look at what its node lacked, and at its requests and priority: no timeout would help.",
    HappeningKind.TERMINATED: "Look at the end of its own log: no timeout would help.",
    HappeningKind.NODE_DOWN: "Look at its node.",
    HappeningKind.STOPPED: "Let it close its consumer at SIGTERM: its partitions then move at once.",
    HappeningKind.PAUSED: "Look at its heap and its garbage collector, or raise the timeout above such pauses.",
}
"""What to do, where it is known what happened to a member; a failed probe and what is only possible say too little."""


def advice_on(causes: Sequence[ExplainedCause]) -> str:
    """Return what to do about the most telling cause, in a sentence; empty if that is not known."""
    return _ADVICE.get(causes[0].kind, "") if causes and causes[0].certainty == "certain" else ""


def words_of(happening: Happening, removed_ms: int, *, is_possible: bool, is_ambiguous: bool = False) -> str:
    """Return a sentence.

    Args:
        removed_ms: when the member was removed, epoch ms.
        is_possible: whether only the time agrees.
        is_ambiguous: whether several namespaces have a pod of its name, and the member may be in another one.
    """
    before_ms = removed_ms - happening.time_ms
    when = f"{length(abs(before_ms))} {'before' if before_ms >= 0 else 'after'}"
    text = plain(happening.text).rstrip(".")
    if happening.kind is HappeningKind.PAUSED:
        paused = length(happening.time_ms - (happening.began_ms or happening.time_ms))
        whose = "A JVM" if is_possible else "Its JVM"
        said = f"{whose} stood still for {paused} ({text}), until {when}"
    elif happening.kind is HappeningKind.DEPLOYED:
        said = f"{when}: {text}"
    else:
        end = min(text.find(mark) % (len(text) + 1) for mark in ("; ", ": "))  # of what is not a detail
        said = f"Its {text[:end]} {when}{text[end:]}"
    source = f"({plain(happening.file)}{f':{happening.line}' if happening.line else ''})"
    if is_ambiguous:
        where = plain(happening.namespace) or "one of them"
        return f"Possible, several namespaces have a pod of this name, and this was in {where}: {said} {source}."
    return f"Possible, only the time agrees: {said} {source}." if is_possible else f"{said} {source}."
