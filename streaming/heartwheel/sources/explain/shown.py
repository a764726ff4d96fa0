"""Explained events as the rows that the dashboard shows: those of the engine's topics, made from a broker's log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.readers.live.expiration import FROM_A_LOG, LoggedExpiration, LoggedTrigger, logged_id
from heartwheel.readers.live.seen import Seen
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.sources.explain.summary import name_of
from heartwheel.wire.explained import REASON_OF, ExplainedEvent, Happened
from heartwheel.wire.verdict_rows import TriggerRow
from heartwheel.wire.verdicts import EPOCH_KINDS

_RUNNING_MAX: Final = 50_000
"""Most rebalances that are certain to be known as shown: as many as groups are followed."""


class ShownEvent(NamedTuple):
    """An event, and its rows: made once, for all that show, count or report it."""

    event: ExplainedEvent
    rows: Sequence[TopicRow]


def with_rows(events: Iterable[ExplainedEvent]) -> list[ShownEvent]:
    """Return the events with their rows."""
    return [ShownEvent(event, tuple(rows_of_log((event,)))) for event in events]


class RowsOnce:
    """Makes the rows of a log that is followed: the begin of a rebalance that was shown while it ran comes once."""

    def __init__(self) -> None:
        self._running = Seen(_RUNNING_MAX)

    def of(self, events: Iterable[ExplainedEvent]) -> list[ShownEvent]:
        """Return the events with those of their rows that did not come before."""
        return [ShownEvent(event, tuple(self._new(event))) for event in events]

    def _new(self, event: ExplainedEvent) -> Iterator[TopicRow]:
        for topic_row in rows_of_log((event,)):
            row = topic_row.row
            if event.kind is Happened.REBALANCING and isinstance(row, TriggerRow):
                self._running.is_new(row.id)
            elif isinstance(row, TriggerRow) and row.id in self._running:
                continue
            yield topic_row


def rows_of_log(events: Iterable[ExplainedEvent]) -> Iterator[TopicRow]:
    """Yield the events as rows for a picture.

    Args:
        events: in the order of time.

    Returns:
        A row for each expiration, and one each for the start and the end of a rebalance; a rebalance that still runs
        has only the first. Other events have no row.
    """
    for event in events:
        if event.kind in REASON_OF:
            yield _topic_row(OutputTopic.EXPIRATIONS, event, _expiration(event))
        elif event.kind in {Happened.REBALANCE, Happened.GROUP_EMPTY}:
            if event.started_ms is not None and event.group_type not in EPOCH_KINDS:
                yield _topic_row(OutputTopic.TRIGGERS, event, _begun(event, event.started_ms))
            yield _topic_row(OutputTopic.TRIGGERS, event, _ended(event))
        elif event.kind is Happened.REBALANCING and event.started_ms is not None:
            begun = msgspec.structs.replace(_begun(event, event.started_ms), generation_id=_generation(event))
            yield _topic_row(OutputTopic.TRIGGERS, event, begun)


def id_of_removal(event: ExplainedEvent) -> str:
    """Return the id of a removal's row."""
    return logged_id(event.time_ms, _id(event, "expired"))


def _topic_row(source: OutputTopic, event: ExplainedEvent, row: LoggedExpiration | TriggerRow) -> TopicRow:
    return TopicRow(source, 0, event.evidence.line, event.time_ms, row)


def _expiration(event: ExplainedEvent) -> LoggedExpiration:
    of_session = event.kind in {Happened.EXPIRED, Happened.PENDING_EXPIRED}
    source = f"The log says so: {event.evidence.file}, line {event.evidence.line}."
    return LoggedExpiration(
        id=id_of_removal(event),
        group_id=event.group_id,
        member_id=event.member_id or name_of(event),  # a consumer's own log may not name it
        group_instance_id=event.group_instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        generation_id=_generation(event),
        reason=REASON_OF[event.kind].value,
        last_seen_ms=None,
        session_timeout_ms=event.session_timeout_ms if of_session else event.rebalance_timeout_ms,
        deadline_ms=event.time_ms,
        detected_ms=event.time_ms,
        lateness_ms=None,
        group_state="",
        shard=FROM_A_LOG,
        group_kind=event.group_type or None,
        returned_ms=event.returned_ms,
        explanation=(*event.explanation, source),
        evidence=f"{event.evidence.file}:{event.evidence.line}",
        advice=event.advice,
        cause=event.causes[0].words if event.causes else "",
    )


def _begun(event: ExplainedEvent, started_ms: int) -> TriggerRow:
    joined = _joined(event)
    return msgspec.structs.replace(
        _ended(event),
        id=_id_of("begun", event.group_id, event.group_type, started_ms),  # the same if it was shown while it ran
        type="rebalance_triggered",
        generation_id=max(0, _generation(event) - 1),
        time_ms=started_ms,
        detected_ms=started_ms,
        leader=None,
        removed=(),
        removed_count=0,
        joined=joined,
        joined_count=len(joined),
        duration_ms=None,
    )


def _joined(event: ExplainedEvent) -> tuple[str, ...]:
    return event.caused_by if event.reason in {"member_joined", "static_member_updated"} else ()


def _ended(event: ExplainedEvent) -> LoggedTrigger:
    of_epoch = event.group_type in EPOCH_KINDS
    joined = _joined(event) if of_epoch else ()
    removed = event.caused_by if of_epoch and not joined else event.blocked_by
    kind = "group_empty" if event.kind is Happened.GROUP_EMPTY else "rebalance_completed"
    return LoggedTrigger(
        id=_id(event, "ended"),
        type="epoch_bumped" if of_epoch else kind,
        group_id=event.group_id,
        generation_id=_generation(event),
        reason=event.reason_text,
        cause=None if event.reason == "unknown" else event.reason,
        time_ms=event.time_ms,
        deadline_ms=None,
        awaiting=(),
        awaiting_count=0,
        leader="" if event.group_type == "classic" else None,
        member_count=event.member_count,
        removed=removed,
        removed_count=len(removed),
        joined=joined,
        joined_count=len(joined),
        duration_ms=event.duration_ms,
        detected_ms=event.time_ms,
        shard=FROM_A_LOG,
        group_kind=event.group_type or None,
    )


def _generation(event: ExplainedEvent) -> int:
    number = event.epoch if event.generation_id is None else event.generation_id
    return -1 if number is None else number


def _id(event: ExplainedEvent, what: str) -> str:
    # Not of the file's name, which a rotation changes.
    who = event.member_id or name_of(event)
    return _id_of(what, event.kind, event.group_id, who, event.broker_id, event.time_ms, event.evidence.line)


def _id_of(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=16).hexdigest()
