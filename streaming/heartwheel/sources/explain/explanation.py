"""The text that a person reads about an event: what happened, by which rule, the likely cause, what to change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from heartwheel.base.phrases import length, setting
from heartwheel.readers.live.why import advice
from heartwheel.sources.explain.causes.words import advice_on
from heartwheel.sources.explain.enough import SESSION, needed_ms, timeout_name
from heartwheel.wire.explained import REASON_OF, ExplainedEvent, Happened
from heartwheel.wire.verdicts import ExpiryReason

_POLL: Final = re.compile(r"poll[ .-]?timeout|max\.poll\.interval|poll interval", re.IGNORECASE)
_UNSUBSCRIBED: Final = re.compile(r"unsubscribed", re.IGNORECASE)
_CLOSED: Final = re.compile(r"being closed|closed|clos(?:e|ing)\b|shut(?:ting)?[ -]?down", re.IGNORECASE)


_NO_GROUP: Final = (
    "Brokers of Kafka 2.4 do not name the group on this line, and no other line names one for this member."
)


UNSAID: Final = "no reason given (closed, or a poll timeout)"
"""The words of rows and verdicts for a member that left without a reason."""


def leave_reason(words: str) -> str:
    """Return a code for why a member left, by its own words: poll_timeout, unsubscribed, closed, or left."""
    if _POLL.search(words):
        return ExpiryReason.POLL_TIMEOUT
    if _UNSUBSCRIBED.search(words):
        return "unsubscribed"
    return "closed" if _CLOSED.search(words) else "left"


def explained(event: ExplainedEvent) -> ExplainedEvent:
    """Return an event with its sentences and its advice."""
    event.explanation, event.advice = _sentences(event), advice_of(event)
    return event


def explained_copy(event: ExplainedEvent) -> ExplainedEvent:
    """Return a copy of an event with its sentences and its advice; a storm is the event itself, as it grows.

    In a log that is followed a group keeps the event for longer than anybody needs its sentences.
    """
    return explained(event if event.kind is Happened.STORM else msgspec.structs.replace(event))


def _sentences(event: ExplainedEvent) -> tuple[str, ...]:
    tell = _TELL.get(event.kind)
    if tell is None:
        return event.explanation
    what, *rest = [*tell(event), *_again(event), *_back(event)] or [""]
    known = advice_on(event.causes)
    if known:  # the likely causes, and what to do about them, are of no use to who knows the cause
        likely = advice(REASON_OF.get(event.kind, ""), event.group_type)
        rest = [known, *(sentence for sentence in rest if sentence not in likely)]
    return tuple(filter(None, (what, *(cause.words for cause in event.causes), *rest)))


def advice_of(event: ExplainedEvent) -> str:
    """Return what to change or where to look, in a sentence; empty if there is nothing to change."""
    if known := advice_on(event.causes):
        return known
    if event.reason == "instance_taken":
        return _INSTANCE
    if event.kind in _ELSEWHERE:
        return _ELSEWHERE[event.kind]
    return "".join(advice(REASON_OF.get(event.kind, ""), event.group_type)[-1:])


_INSTANCE: Final = "Give each consumer of the group a group.instance.id of its own."
_ELSEWHERE: Final[Mapping[Happened, str]] = {
    Happened.REMOVED: (
        "Its own log does not say why. The broker's does, around that time (heartwheel explain server.log)."
    ),
    Happened.NO_ANSWER: (
        "If the broker's log says that it expired: raise session.timeout.ms. If not, it was back in time."
    ),
}
"""What a consumer's own log cannot show, and where to look for it."""


def _removed(event: ExplainedEvent) -> list[str]:
    texts = {
        "other_generation": f"The coordinator knew this consumer in another generation or epoch: {event.reason_text}.",
        "instance_taken": f"Another consumer has its group.instance.id: {event.reason_text}.",
    }
    unknown = f"The coordinator no longer knew this consumer: {event.reason_text}. It had been removed before that."
    return [texts.get(event.reason, unknown), advice_of(event)]


def _not_answered(event: ExplainedEvent) -> list[str]:
    return [
        f"It got no answer to its heartbeats for its session timeout: {event.reason_text}.",
        "The broker or the network between them was away, or the process was stopped and did not read the answers.",
        _ELSEWHERE[event.kind],
    ]


def _expired(event: ExplainedEvent) -> list[str]:
    limit = f", {setting(event.session_timeout_ms)}" if event.session_timeout_ms else ""
    sentence = (
        f"No heartbeat of it reached the coordinator for its session timeout{limit} ({SESSION[event.group_type]})."
    )
    return [sentence, *event.explanation, *advice(ExpiryReason.SESSION_TIMEOUT, event.group_type)]


def _not_joined(event: ExplainedEvent) -> list[str]:
    took = f" within {length(event.duration_ms)}" if event.duration_ms else " in time"
    sentence = (
        f"Its group rebalanced, and it did not join again{took}: the longest that any member of the group may take "
        "(max.poll.interval.ms of a consumer, rebalance.timeout.ms of a Connect worker)."
    )
    return [sentence, *advice(ExpiryReason.REBALANCE_TIMEOUT)]


def _not_synced(_event: ExplainedEvent) -> list[str]:
    sentence = (
        "It joined the new generation, but did not ask for its assignment (SyncGroup) within the rebalance "
        "timeout of its "
        "group (max.poll.interval.ms)."
    )
    return [sentence, *advice(ExpiryReason.SYNC_TIMEOUT)]


def _not_revoked(event: ExplainedEvent) -> list[str]:
    return [f"The broker says: {event.reason_text}.", *advice(ExpiryReason.REVOCATION_TIMEOUT)]


def _pending(_event: ExplainedEvent) -> list[str]:
    sentence = (
        "It was handed a member id and did not come back with it within its session timeout (session.timeout.ms)."
    )
    return [sentence, *advice(ExpiryReason.PENDING_TIMEOUT)]


def _poll(event: ExplainedEvent) -> list[str]:
    limit = f", {setting(event.rebalance_timeout_ms)}" if event.rebalance_timeout_ms else ""
    if event.certainty == "certain":
        sentences = [
            f"It took itself out: it did not poll within max.poll.interval.ms{limit}, and said so when it left."
        ]
    else:
        sentences = [
            f"It took itself out, most likely as it did not poll within max.poll.interval.ms{limit}.",
            (
                "Clients of this group type do not say why they leave. It came back under the same member id, as a "
                "consumer does that was over its poll interval; a closed one never does. One that unsubscribes and "
                "subscribes again looks the same."
            ),
        ]
    return [*sentences, *advice(ExpiryReason.POLL_TIMEOUT)]


def _left(event: ExplainedEvent) -> list[str]:
    if event.kind is Happened.TEMPORARILY_LEFT:
        return ["Its static member left for a while: its partitions wait for it until its session timeout."]
    if event.kind is Happened.REPLACED:
        new = f" as {event.new_member_id}" if event.new_member_id else ""
        back = f"Its static member came back in time{new} and took its place."
        return [back] if event.group_id else [back, _NO_GROUP]
    if event.reason != "left" or event.reason_text not in {"", "not provided"}:
        said = f", and said: {event.reason_text}" if event.reason_text else ""
        return [f"It left by itself{said}."]
    silent = "Clients before Kafka 3.2" if event.group_type in {"", "classic"} else "Clients of this group type"
    which = "whether they are closed or were over max.poll.interval.ms"
    return [f"It left by itself and gave no reason. {silent} give none, {which}."]


def _again(event: ExplainedEvent) -> list[str]:
    return (
        [f"It was out for the {_ordinal(event.times_out)} time in what was read."] if (event.times_out or 0) > 1 else []
    )


def _ordinal(number: int | None) -> str:
    number = number or 0
    last = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in {11, 12, 13} else "th"
    return f"{number}{last}"


def _back(event: ExplainedEvent) -> list[str]:
    if event.returned_ms is None or event.kind is Happened.REPLACED:
        return []
    after = length(max(0, event.returned_ms - event.time_ms))
    name = "" if event.returned_as in {None, event.member_id} else f" as {event.returned_as}"
    if event.kind is Happened.EXPIRED and event.returned_as == event.member_id:
        alive = (
            f"It was back under the same id {after} later, so its process was alive: it had been stopped or cut off, "
            "or was over max.poll.interval.ms, for which clients on librdkafka stop heartbeating in such groups."
        )
        return [alive, *_enough(event)]
    return [f"It was back{name} {after} later.", *_enough(event)]


def _enough(event: ExplainedEvent) -> list[str]:
    """Return which timeout would have been enough; nothing if the cause is known, as the advice is about that then."""
    name, enough_ms = timeout_name(event.kind, event.group_type), needed_ms(event)
    if name is None or enough_ms is None or advice_on(event.causes):
        return []
    unsure = event.kind is Happened.EXPIRED and event.returned_as != event.member_id
    begin = f"If that was the same process, a {name}" if unsure else f"A {name}"
    return [f"{begin} of {setting(enough_ms)} would have been enough."]


def _rebalance(event: ExplainedEvent) -> list[str]:
    sentences = []
    if event.blocked_by:
        some = ", ".join(event.blocked_by[:3]) + (" and others" if len(event.blocked_by) > 3 else "")
        sentences.append(f"It waited for {some}.")
    return [*sentences, *event.explanation]


_TELL: Final[Mapping[Happened, Callable[[ExplainedEvent], list[str]]]] = {
    Happened.EXPIRED: _expired,
    Happened.REMOVED_AT_REBALANCE: _not_joined,
    Happened.SYNC_TIMEOUT: _not_synced,
    Happened.REVOCATION_TIMEOUT: _not_revoked,
    Happened.PENDING_EXPIRED: _pending,
    Happened.POLL_TIMEOUT: _poll,
    Happened.REMOVED: _removed,
    Happened.NO_ANSWER: _not_answered,
    Happened.LEFT: _left,
    Happened.TEMPORARILY_LEFT: _left,
    Happened.REPLACED: _left,
    Happened.REBALANCE: _rebalance,
    Happened.GROUP_EMPTY: _rebalance,
}
