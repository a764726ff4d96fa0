"""What happened to a member's pod or machine, in words: the one place that makes them."""

from __future__ import annotations

from heartwheel.base.phrases import length
from heartwheel.base.plain import plain
from heartwheel.sources.explain.causes.happening import Happening, HappeningKind


def words_of(happening: Happening, removed_ms: int, *, is_possible: bool) -> str:
    """Return a sentence.

    Args:
        removed_ms: when the member was removed, epoch ms.
        is_possible: whether only the time agrees.
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
    return f"Possible, only the time agrees: {said} {source}." if is_possible else f"{said} {source}."
