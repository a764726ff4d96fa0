"""The audit itself. It reads records and rows and returns a report."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.derived import Derived, Row
from heartwheel.proof.audit.fed import (
    AHEAD_MAX_MS,
    MISPLACED,
    PLACE_OF_FEEDS,
    UNTRUSTED,
    AuditedFeedMark,
    may_be_fed,
    read_feed_headers,
    read_feed_mark,
)
from heartwheel.proof.audit.findings import FindingKind, Report
from heartwheel.proof.audit.match.matcher import Matcher
from heartwheel.proof.audit.match.rows import topic_of
from heartwheel.proof.audit.pace import Candidate
from heartwheel.proof.audit.partitions import AuditedOutage
from heartwheel.proof.audit.recent import key_of
from heartwheel.proof.audit.rejects import Rejects
from heartwheel.proof.audit.report import report_of
from heartwheel.proof.audit.rules.groups import advance, apply, is_forgotten, next_deadline_ms
from heartwheel.proof.audit.rules.model import NEVER, AuditedGroup
from heartwheel.proof.audit.rules.renewals import renew
from heartwheel.proof.audit.snapshot import new_state, read_snapshot, write_snapshot
from heartwheel.proof.audit.state import Begin, GroupNotes, OpenReject, OpenRow, RecordPlace
from heartwheel.proof.audit.ticks import read_tick
from heartwheel.proof.audit.timeline import Timeline
from heartwheel.wire.events import EventType, RejectedError
from heartwheel.wire.group_heartbeats import GroupHeartbeat
from heartwheel.wire.requests import Request, decode_request, fingerprint_of
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

_VALUES_REMEMBERED_MAX: Final = 200_000
_SETTLE_MS: Final = 1_000
_ASSUMED_LONGEST_WAIT_MS: Final = 2**31
_NO_BEGIN: Final = Begin(0)


class Audit:
    """An audit of one log: it derives every verdict again, and compares the rows that were written with these verdicts.

    Records of one partition come in the order of their offsets. Partitions may be read in any order, but the audit
    buffers the fewest records if they come in the order of `in_log_order`. Rows and rejects may come before or after
    the records that they are about, except that a reject of a limit (`shard_full`, `group_full`) comes before its
    record.

    Args:
        snapshot: the result of `snapshot`, to continue from there.

    Raises:
        AuditStateError: the snapshot cannot be read, or another version wrote it.
    """

    def __init__(self, config: AuditConfig | None = None, *, snapshot: bytes | None = None) -> None:
        self.config = config or AuditConfig()
        self._state = new_state(self.config) if snapshot is None else read_snapshot(snapshot, self.config)
        self._timeline = Timeline(
            self._state,
            self.config,
            use=self._use,
            renew=self._renew,
            move=self._move,
            advance=self._advance,
        )
        self._matcher = Matcher(self._state, self.config, self._timeline.is_stray)
        self._rejects = Rejects(self._state, self.config, self._timeline.is_stray)
        self._known: dict[bytes, Request] = {}
        self._verdicts: list[Derived] = []
        self._now_ms = -1

    @property
    def positions(self) -> dict[str, dict[int, int]]:
        """The next offset of each partition of each topic, for the reader; kept in the snapshot."""
        return self._state.positions

    @property
    def put_aside(self) -> frozenset[str]:
        """The groups whose findings are counted apart, as nothing promises the order of their records."""
        groups = self._state.groups.items()
        return frozenset(group_id for group_id, notes in groups if self._timeline.is_stray(notes))

    # What is in the topics

    def begins(self, partition: int, append_ms: int) -> None:
        """Record that the first records of a heartbeat partition were deleted.

        The log does not have the members that joined before, so groups that may be older are not judged.

        Args:
            append_ms: append time of the first remaining record, epoch ms.
        """
        self._state.begins[partition] = Begin(append_ms)

    def exist(self, partitions: int) -> None:
        """Set the number of partitions of the heartbeat topic; a tick that names more is forged."""
        self._state.partitions_max = partitions

    def unread(self, partition: int, first: int, last: int) -> None:
        """Record offsets of the heartbeat topic that could not be read because their batch unpacks to too much.

        The audit believes what the job says about these records.
        """
        known = self._state.unread.setdefault(partition, [])
        if (first, last) not in known:
            known.append((first, last))
            self._state.count("unread", last - first + 1)

    def event(self, append_ms: int, partition: int, offset: int, value: bytes | None) -> None:
        """Read the next record of the heartbeat topic.

        Args:
            append_ms: its append time, epoch ms; negative if it carries its producer's time.
            value: its value; `None` is a tombstone.
        """
        state, timeline = self._state, self._timeline
        state.count("events")
        event = self._known.get(value) if value is not None else None
        tick = read_tick(value) if event is None and len(value or b"") <= self.config.value_bytes_max else None
        time_ms = timeline.read(partition, append_ms, tick)
        self._now_ms = time_ms
        known_ms = append_ms if append_ms >= 0 else time_ms
        if append_ms >= 0 > state.begins.get(partition, _NO_BEGIN).append_ms:
            state.begins[partition] = Begin(append_ms)
        if tick is not None:
            state.count("ticks")
        elif event is None and value is not None and (mark := self._mark_of(value)) is not None:
            if mark.feed in self.config.feeds and partition == PLACE_OF_FEEDS:
                timeline.mark(mark, time_ms, append_ms)
        elif event is not None or (event := self._decode(value, known_ms, partition, offset)) is not None:
            self._put(event, value, append_ms, RecordPlace(time_ms, partition, offset))
        timeline.run_due(partition)
        if time_ms - state.settled_ms >= _SETTLE_MS:
            state.settled_ms = time_ms
            self._matcher.settle(timeline.least_ms(), self._may_be_judged)

    def written(self, row: Row, partition: int, offset: int, append_ms: int) -> None:
        """Read a row of the expirations or the triggers topic."""
        expired = row if isinstance(row, ExpirationRow) else None
        trigger = row if isinstance(row, TriggerRow) else None
        self._matcher.take(OpenRow(topic_of(row), partition, offset, append_ms, expired, trigger))

    def unreadable(self, topic: str, partition: int, offset: int, append_ms: int, detail: str) -> None:
        """Read a row that does not decode as a verdict or a reject, which is a finding.

        Args:
            topic: `expirations`, `triggers` or `rejects`.
        """
        self._state.count("written")
        self._state.ledger.add(
            FindingKind.FORGED, topic=topic, partition=partition, offset=offset, time_ms=append_ms, detail=detail
        )

    def rejected(
        self,
        partition: int,
        offset: int,
        cause: str,
        *,
        append_ms: int = -1,
        row_partition: int = 0,
        row_offset: int = -1,
    ) -> None:
        """Read a row of the rejects topic."""
        self._rejects.take(partition, offset, OpenReject(cause, append_ms, row_partition, row_offset))

    def batch(self, shard: int, batch_ms: int, *, append_ms: int | None = None, clock_ms: int | None = None) -> None:
        """Read a status row, which shows that a shard ran a batch. A verdict can only be late while the job ran.

        Args:
            batch_ms: the timestamp of the batch's trigger, epoch ms.
            append_ms: append time of the row, epoch ms; `batch_ms` if omitted.
            clock_ms: up to when the shard has decided, epoch ms; omitted if unknown.
        """
        at_ms = batch_ms if append_ms is None else append_ms
        for late in self._state.pace.batch(shard, at_ms, clock_ms=clock_ms):
            self._note_late(late)

    def paused(self, from_ms: int, to_ms: int) -> None:
        """Record that the job is known to have been down, or paused, between two moments, epoch ms."""
        self._state.pace.pauses.append((from_ms, to_ms))

    # Results

    def finish(self, clock_ms: int | None = None) -> Report:
        """Judge what is due by the log. This does not change the audit, which can continue afterwards.

        Args:
            clock_ms: up to when the job has decided everything, epoch ms; omitted if it has read the whole log.
        """
        copy = Audit(self.config, snapshot=self.snapshot())
        return copy._finish(clock_ms)

    def snapshot(self) -> bytes:
        """Return the audit's state as bytes; `Audit(config, snapshot=...)` continues from it."""
        return write_snapshot(self._state)

    def _finish(self, clock_ms: int | None) -> Report:
        state, most = self._state, NEVER if clock_ms is None else clock_ms
        timeline = self._timeline
        self._matcher.finish(
            lambda group_id: min(timeline.settled_ms(group_id), most),
            lambda group_id: most if timeline.is_fed(group_id) else NEVER,
        )
        pending: list[int] = []
        self._rejects.finish(clock_ms, pending)
        for late in state.pace.rest():
            self._note_late(late)
        return report_of(state, clock_ms, pending=len(pending))

    # Inside

    def _decode(self, value: bytes | None, append_ms: int, partition: int, offset: int) -> Request | None:
        """Decode a value, or expect its reject if it cannot be decoded."""
        try:
            event = decode_request(value, size_max=self.config.value_bytes_max)
        except RejectedError as error:
            self._rejects.expect(partition, offset, append_ms, error.cause.value)
            return None
        self._remember_ids(event)
        if value is not None and not may_be_fed(value) and fingerprint_of(event):
            if len(self._known) >= _VALUES_REMEMBERED_MAX:
                self._known.clear()  # this is a cache of a pure function, so dropping all of it is safe
            self._known[value] = event
        return event

    def _may_be_judged(self, group_id: str, time_ms: int) -> bool:
        """Return whether a row without a verdict can be judged by now; a feed reports an event after it happened."""
        timeline = self._timeline
        if timeline.is_fed(group_id):
            return timeline.passed_by_all_ms(group_id) > time_ms
        return not self.config.feeds or group_id in self._state.groups

    def _mark_of(self, value: bytes) -> AuditedFeedMark | None:
        fits = may_be_fed(value) and len(value) <= self.config.value_bytes_max
        return read_feed_mark(value) if fits else None

    def _put(self, event: Request, value: bytes | None, append_ms: int, place: RecordPlace) -> None:
        """Put an event into the timeline; an event that a feed relays counts at the time that the feed gives."""
        partition, offset = place.partition, place.offset
        headers = read_feed_headers(value) if value is not None and may_be_fed(value) else None
        if headers is not None:
            cause = ""
            if headers.feed not in self.config.feeds:
                cause = UNTRUSTED
            elif headers.at_ms is None or partition != PLACE_OF_FEEDS:
                cause = MISPLACED
            if cause:
                self._rejects.expect(partition, offset, append_ms, cause)
                return
            at_ms = headers.at_ms or 0
            if append_ms >= 0:
                at_ms = min(at_ms, append_ms + AHEAD_MAX_MS)
            place = RecordPlace(at_ms, self._timeline.source(headers.feed).number, offset)
        elif place.time_ms < 0:
            return  # its time is unknown: the partition's time begins with its first append time
        self._timeline.put(self._group_of(event.group_id, partition, self._now_ms), place, event)

    def _remember_ids(self, event: Request) -> None:
        seen = self._state.seen
        seen.add(key_of(event.group_id))
        more = event.answer_member_id if isinstance(event, GroupHeartbeat) else event.assigned_member_id
        for member_id in (event.member_id, more):
            if member_id:
                seen.add(key_of(event.group_id, member_id))

    def _group_of(self, group_id: str, partition: int, time_ms: int) -> GroupNotes:
        state = self._state
        notes = state.groups.get(group_id)
        if notes is None:
            # A forgotten group may come back, and its verdicts still have an order. So the count continues.
            group = AuditedGroup(group_id, verdicts=state.counts.get("derived", 0))
            notes = state.groups[group_id] = GroupNotes(group, unknown=self._may_be_older(partition, time_ms))
        return notes

    def _use(self, notes: GroupNotes, place: RecordPlace, event: Request) -> None:
        """Apply a record once no earlier record can follow."""
        state, group, part, offset = self._state, notes.group, place.partition, place.offset
        partition = self._timeline.partition_of(part)
        if next_deadline_ms(group) <= place.time_ms:
            # Due timers fire before the check whether there was room. They may remove members, or the whole group.
            self._advance(notes, place.time_ms)
        if self._rejects.is_named(partition, offset) and self._rejects.is_left_out(partition, offset, event, group):
            return
        cause = apply(group, event, place.time_ms, self.config, self._verdicts)
        if self._verdicts:
            self._derive()
        if cause:
            append_ms = place.time_ms if part >= 0 else self._now_ms
            self._rejects.expect(partition, offset, append_ms, cause, event.group_id)
        elif state.open_rejects:
            self._rejects.used(partition, offset, event.group_id)
        if is_forgotten(group):
            notes.seen.clear()
        elif part not in notes.seen:
            notes.seen.append(part)

    def _move(self, notes: GroupNotes, part: int, time_ms: int, event: Request) -> bool:
        """Move a group to the broker that loaded it, if a feed says so; return whether the event counts.

        Every member has a whole session from then on. The former broker and its feed may be down: then no session has
        ended since the feed's last record. An unload by the former broker after the load has no effect.
        """
        group, seen = notes.group, notes.seen
        stays = seen[-1] == part
        if event.type is EventType.UNLOAD:
            return stays
        if event.type is not EventType.LOAD or stays:
            return True
        if group.now_ms == group.renewed_ms:
            group.now_ms = min(group.now_ms, time_ms)
        if seen[-1] < 0:
            known_ms = self._timeline.relayed_ms(seen[-1], group.group_id)
            if known_ms < time_ms:
                self._advance(notes, known_ms)
                renew(group, time_ms)
        notes.seen = sorted(seen, key=lambda each: each == part)
        return True

    def _renew(self, notes: GroupNotes, outage: AuditedOutage) -> None:
        if outage.partition in notes.seen:
            renew(notes.group, outage.to_ms)
            if outage.partition < 0:
                # Events from just before the end of the feed's gap arrive with it. They must not undo the renewal.
                notes.group.now_ms = max(notes.group.now_ms, outage.to_ms)
                notes.missed = outage.partition, outage.from_ms, outage.to_ms

    def _advance(self, notes: GroupNotes, time_ms: int) -> None:
        advance(notes.group, time_ms, self.config, self._verdicts)
        if self._verdicts:
            self._derive()
        if is_forgotten(notes.group):
            notes.seen.clear()

    def _may_be_older(self, partition: int, time_ms: int) -> bool:
        begin = self._state.begins.get(partition)
        if begin is None:
            return False
        return time_ms <= begin.append_ms + self.config.empty_group_retention_ms + _ASSUMED_LONGEST_WAIT_MS

    def _derive(self) -> None:
        for verdict in self._verdicts:
            self._matcher.derive(msgspec.structs.replace(verdict, ready_ms=self._now_ms))
        self._verdicts.clear()

    def _note_late(self, late: Candidate) -> None:
        self._matcher.note(
            FindingKind.LATE,
            late.group_id,
            topic=late.topic,
            partition=late.partition,
            offset=late.offset,
            member_id=late.member_id,
            time_ms=late.time_ms,
            detail=f"known {late.append_ms - late.time_ms} ms after it was true, "
            f"{late.append_ms - max(late.time_ms, late.ready_ms)} ms after the log showed it",
        )
