"""Events as lines for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from heartwheel.base.phrases import count, length
from heartwheel.base.plain import plain
from heartwheel.sources.explain.explanation import UNSAID
from heartwheel.wire.explained import BROKERS, REASON_OF, ExplainedEvent, Happened
from heartwheel.wire.verdicts import ExpiryReason

_REASON: Final = {
    ExpiryReason.SESSION_TIMEOUT: "session timeout",
    "static_not_back": "session timeout: its static member did not come back",
    ExpiryReason.REBALANCE_TIMEOUT: "did not join the rebalance in time",
    ExpiryReason.SYNC_TIMEOUT: "did not fetch its assignment in time",
    ExpiryReason.REVOCATION_TIMEOUT: "did not give up partitions in time",
    ExpiryReason.NOT_A_MEMBER: "unknown member: the coordinator no longer knew this consumer",
    "other_generation": "the coordinator knew this consumer in another generation or epoch",
    "instance_taken": "another consumer has its group.instance.id",
    ExpiryReason.NO_ANSWER: "no answer to its heartbeats for its session timeout",
    ExpiryReason.PENDING_TIMEOUT: "asked to join and did not come back",
    ExpiryReason.POLL_TIMEOUT: "took itself out: poll timeout",
    "closed": "closed",
    "unsubscribed": "unsubscribed",
    "left": f"left by itself, {UNSAID}",
    "static_replaced": "came back, same instance id",
}
_BROKER: Final = {
    "started": "it starts",
    "not_stopped": "it starts, though no line says that it shut down: it was killed or crashed",
    "stopped": "it shuts down",
}
CAUSES: Final = {
    "member_joined": "a member joined",
    "member_rejoined": "a member joined again",
    "member_updated": "a member changed what it subscribes to",
    "leader_rejoined": "the leader joined again, as its topics or partitions had changed",
    "static_member_updated": "a static member came back in another way",
    "member_expired": "a member was thrown out",
    "sync_expired": "a member did not fetch its assignment",
    "member_left": "a member left",
    "over_capacity": "more members than group.max.size",
    "metadata_changed": "topics, partitions or subscriptions changed",
    "downgraded": "the last member of the new protocol went",
    "unknown": "cause not in the log",
}
"""Why a rebalance began, in words."""


class Lines:
    """Formats events as lines; an explanation that is the same for each event of a kind is given once per group."""

    def __init__(self) -> None:
        self._explained: set[tuple[str, str]] = set()

    def of(self, event: ExplainedEvent) -> list[str]:
        """Return an event as one line, followed by its explanation when its group has it for the first time."""
        who = event.member_id or ""
        if event.client_id and not who.startswith(event.client_id):
            who += f" (client {event.client_id})"
        if event.client_host:
            who += f" at {event.client_host}"
        group = f"broker {event.broker_id}" if event.kind in BROKERS else event.group_id or "(group not named)"
        line = f"{clock(event)}  {event.kind:<20}  {group:<20}  "
        line += "  ".join(part for part in (who, what(event)) if part)
        lines = [plain(line)]
        if event.kind in REASON_OF and (event.group_id, event.kind) not in self._explained:
            self._explained.add((event.group_id, event.kind))
            lines += [plain(f"{'':<26}{sentence}") for sentence in event.explanation]
            lines.append(plain(f"{'':<26}{event.evidence.file}:{event.evidence.line}"))
        else:
            lines += [plain(f"{'':<26}{cause.words}") for cause in event.causes]
        return lines


def clock(event: ExplainedEvent) -> str:
    """Return an event's time, in UTC; without milliseconds if the log has none, and without Z if it names no zone."""
    moment = datetime.fromtimestamp(event.time_ms / 1000, UTC)
    zone = " " if event.zone_assumed else "Z"
    if event.time_error_ms:
        return f"{moment:%Y-%m-%d %H:%M:%S}{zone} +-1s"
    return f"{moment:%Y-%m-%d %H:%M:%S}.{event.time_ms % 1000:03d}{zone}"


def what(event: ExplainedEvent) -> str:
    """Return an event in a few words."""
    match event.kind:
        case Happened.BROKER_STARTED | Happened.BROKER_STOPPED:
            return _BROKER[event.reason]
        case Happened.REBALANCE | Happened.GROUP_EMPTY:
            return _rebalance(event)
        case Happened.REBALANCING:
            return f"for {_length(event, event.duration_ms or 0)} so far: {_why(event)}"
        case Happened.COORDINATOR_MOVED:
            source = "another broker" if event.moved_from is None else f"broker {event.moved_from}"
            target = "another" if event.reason == "unloaded" else f"broker {event.broker_id}"
            took = f", {length(event.duration_ms)}" if event.duration_ms is not None else ""
            return f"from {source} to {target}{took}"
        case Happened.STORM:
            began = f", began with {', '.join(event.caused_by[:3])}" if event.caused_by else ""
            return f"{count(event.member_count or 0, 'rebalance')} in {length(event.duration_ms or 0)}{began}"
        case _:
            return _out(event)


def _out(event: ExplainedEvent) -> str:
    text = _REASON.get(event.reason, event.reason)
    if event.kind is Happened.LEFT and event.reason == "left" and event.reason_text not in {"", "not provided"}:
        text = f"left: {event.reason_text}"
    if event.certainty != "certain":
        text += f" ({event.certainty})"
    if event.generation_id is not None:
        text += f", generation {event.generation_id}"
    elif event.epoch is not None:
        text += f", epoch {event.epoch}"
    if (event.times_out or 0) > 1:
        text += f", out {event.times_out} times so far"
    if event.rebalance_ms is not None:
        text += f"; the rebalance took {_length(event, event.rebalance_ms)}"
    return text


def _rebalance(event: ExplainedEvent) -> str:
    number = event.generation_id if event.generation_id is not None else event.epoch
    name = "generation" if event.generation_id is not None else "epoch"
    took = f" took {_length(event, event.duration_ms)}" if event.duration_ms is not None else ""
    size = "" if event.member_count is None else f", {count(event.member_count, 'member')}"
    if event.kind is Happened.GROUP_EMPTY or event.member_count == 0:
        size = ", no member is left"
    waited = f"; waited for {', '.join(event.blocked_by[:3])}" if event.blocked_by else ""
    return f"{name} {number}{took}: {_why(event)}{size}{waited}"


def _length(event: ExplainedEvent, duration_ms: int) -> str:
    """Return a length as precisely as the log's times allow: two lines with the same time are not 0 ms apart."""
    return length(duration_ms) if duration_ms else f"less than 1 {'s' if event.time_error_ms else 'ms'}"


def _why(event: ExplainedEvent) -> str:
    why = CAUSES.get(event.reason, event.reason.replace("_", " "))
    if event.caused_by:
        why += f" ({', '.join(event.caused_by[:2])}{', ...' if len(event.caused_by) > 2 else ''})"
    return why
