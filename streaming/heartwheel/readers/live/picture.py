"""The picture: the content of the topics, bounded, updated by one thread and read by others.

It holds plain data; views are pure functions of it and of the time, each in a module of its own (`now`, `expirations`,
`groups`, `at_risk`, `wheel`, `series`, `health`). They read under `Picture.lock`.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from heartwheel.readers.live.expiration import Expiration, LoggedExpiration
from heartwheel.readers.live.group_entry import GroupEntry
from heartwheel.readers.live.group_index import GroupIndex
from heartwheel.readers.live.lane_page import LaneSource
from heartwheel.readers.live.logged import LoggedLine, LogReport
from heartwheel.readers.live.seen import Seen
from heartwheel.readers.live.ticks import Ticks
from heartwheel.readers.live.topic_rows import OutputTopic, TopicRow
from heartwheel.readers.live.window import ExpirationWindow
from heartwheel.wire.job import JobRow
from heartwheel.wire.rejects import Reject
from heartwheel.wire.status import StatusRow
from heartwheel.wire.verdict_rows import ExpirationRow, TriggerRow

CANARY_PREFIX: Final = "heartwheel-canary"
"""The prefix of the names of the canary's groups."""

GROUPS_MAX: Final = 20_000
"""Most groups that a picture knows by name."""

_RETURNS_MAX: Final = 5_000


class Changes(NamedTuple):
    """Changes of a picture by rows.

    Args:
        expirations: new ones, in the order they came.
        returned: expirations whose member came back.
        groups: groups with news.
        duplicates: rows that were dropped, because their ids were seen before.
    """

    expirations: list[Expiration]
    returned: list[Expiration]
    groups: set[str]
    duplicates: int


class Picture:
    """The content of the output topics, within limits: the newest of a stretch of time.

    Args:
        expirations_max: most expirations that are kept.
        triggers_max: most rows of the triggers topic that are kept, and most other lines of brokers' logs.
        window_ms: for how long both are kept, by append time, ms.
        canary_prefix: the prefix of groups that are not real ones.
        groups_max: most groups that are known by name.
        expected_members: how many members groups should have, by the group's id.
    """

    def __init__(
        self,
        *,
        expirations_max: int = 20_000,
        triggers_max: int = 20_000,
        window_ms: int = 3_600_000,
        canary_prefix: str = CANARY_PREFIX,
        groups_max: int = GROUPS_MAX,
        expected_members: Mapping[str, int] | None = None,
    ) -> None:
        self.lock = threading.RLock()
        self.window_ms, self.canary_prefix = window_ms, canary_prefix
        self.window = ExpirationWindow(expirations_max, window_ms)
        self.groups = GroupIndex(groups_max, triggers_max, window_ms, expected_members or {})
        self.ticks = Ticks(window_ms)
        self.status: dict[int, StatusRow] = {}
        self.job: JobRow | None = None
        self.log = ""
        """What was read of brokers' logs, in a sentence, if these feed it in place of the engine's topics."""
        self.log_is_behind = False
        """Whether the log has lines that were not read yet when it was opened."""
        self.log_report: LogReport | None = None
        """The report of brokers' logs on all groups together."""
        self.lanes: LaneSource | None = None
        """The timeline of brokers' logs, if these are shown."""
        self.log_tells = False
        """Whether a line of a coordinator was read in that log."""
        self.rejects: Counter[str] = Counter()
        """Rejected records by cause, as far as the rejects topic was read."""
        self.triggers_total = 0
        self.written_ms = -1
        """Append time of the newest verdict, epoch ms; -1 before the first."""
        self.linked: bool | None = None
        """Whether Kafka answers; `None` before the first request."""
        self.linked_since_ms = 0
        self.returns: deque[Expiration] = deque(maxlen=_RETURNS_MAX)
        """The expirations that changed last, one for each change: returns, and causes that became known."""
        self.newest_return = 0
        self._triggers_seen = Seen(2 * triggers_max)
        self._takers: dict[OutputTopic, Callable[[TopicRow, Changes], None]] = {
            OutputTopic.EXPIRATIONS: self._take_expiration,
            OutputTopic.TRIGGERS: self._take_trigger,
            OutputTopic.STATUS: self._take_status,
            OutputTopic.JOB: self._take_job,
            OutputTopic.REJECTS: self._take_reject,
        }

    @property
    def known_from_ms(self) -> int | None:
        """From when on it has all rows and lines that were not too old, epoch ms; `None`: from the first on."""
        known = [self.window.known_from_ms, self.groups.known_from_ms]
        return max((each for each in known if each is not None), default=None)

    def known_from(self, time_ms: int | None) -> None:
        """Note from when on it is given everything, epoch ms; `None`: from the first on."""
        with self.lock:
            self.window.known_from_ms = self.groups.known_from_ms = time_ms

    def is_canary(self, group_id: str) -> bool:
        """Return whether a group is one of the canary's, by its name."""
        return group_id.startswith(self.canary_prefix)

    def canaries(self) -> list[GroupEntry]:
        """Return the canary's groups; hold the lock during that."""
        return [entry for name, entry in self.groups.entries.items() if self.is_canary(name)]

    def apply(self, rows: Sequence[TopicRow], *, now_ms: int) -> Changes:
        """Apply rows of the topics, and drop rows that are too old or too many.

        Args:
            rows: those of one partition in their order.

        Returns:
            What has changed.
        """
        with self.lock:
            before = self.window.duplicates
            changes = Changes([], [], set(), 0)
            for each in rows:
                self._takers[each.source](each, changes)
            self._evict(now_ms)
            return changes._replace(duplicates=self.window.duplicates - before)

    def explain_again(self, rows: Sequence[TopicRow]) -> None:
        """Replace the explanations of expirations from a broker's log, as far as they are kept and have changed."""
        with self.lock:
            for row in (each.row for each in rows):
                kept = self.window.by_id(row.id) if isinstance(row, LoggedExpiration) else None
                if kept is None or not isinstance(row, LoggedExpiration) or kept.explanation == row.explanation:
                    continue
                kept.explanation, kept.advice, kept.cause = row.explanation, row.advice, row.cause
                self._note_change(kept)
                self.groups.touch(kept.group_id)

    def add_logged(self, group_id: str, line: LoggedLine) -> None:
        """Add a line of a broker's log that is no row of a topic to a group's timeline."""
        with self.lock:
            self.groups.add_line(group_id, line)

    def returned(self, id_: str, time_ms: int) -> None:
        """Note when the member of an expiration from a broker's log was back, if the expiration is kept."""
        with self.lock:
            kept = self.window.by_id(id_)
            if kept is not None and kept.returned_ms != time_ms:
                kept.returned_ms = time_ms
                self._note_change(kept)
                self.groups.touch(kept.group_id)

    def link(self, linked: bool, *, now_ms: int) -> None:  # noqa: FBT001 - its one argument
        """Note whether Kafka answers.

        Args:
            linked: whether it does.
        """
        with self.lock:
            if linked is not self.linked:
                self.linked, self.linked_since_ms = linked, now_ms

    def _evict(self, now_ms: int) -> None:
        for gone in self.window.evict(now_ms):
            self.groups.let_go(gone)
        self.groups.evict(now_ms)

    def _take_expiration(self, topic_row: TopicRow, changes: Changes) -> None:
        row = topic_row.row
        assert isinstance(row, ExpirationRow)  # noqa: S101 - by the decoder of its source
        self.written_ms = max(self.written_ms, topic_row.append_ms)
        kept = self.window.add(
            row, append_ms=topic_row.append_ms, partition=topic_row.partition, offset=topic_row.offset
        )
        if kept is None:
            return
        changes.expirations.append(kept)
        changes.groups.add(row.group_id)
        if not self.is_canary(row.group_id):
            self.ticks.add_expiration(kept.append_ms, kept.known_late_ms)
        if self.groups.add_expiration(kept):
            self._note_return(kept, changes)

    def _take_trigger(self, topic_row: TopicRow, changes: Changes) -> None:
        row = topic_row.row
        assert isinstance(row, TriggerRow)  # noqa: S101 - by the decoder of its source
        self.written_ms = max(self.written_ms, topic_row.append_ms)
        if not self._triggers_seen.is_new(row.id):
            return
        if not self.is_canary(row.group_id):
            self.triggers_total += 1
        changes.groups.add(row.group_id)
        for back in self.groups.add_trigger(row, topic_row.append_ms):
            self._note_return(back, changes)

    def _note_return(self, back: Expiration, changes: Changes) -> None:
        changes.returned.append(back)
        self._note_change(back)

    def _note_change(self, expiration: Expiration) -> None:
        self.newest_return += 1
        self.returns.append(expiration)

    def _take_status(self, topic_row: TopicRow, _changes: Changes) -> None:
        row = topic_row.row
        assert isinstance(row, StatusRow)  # noqa: S101 - by the decoder of its source
        before = self.status.get(row.shard)
        if before is not None and row.batch_ms == before.batch_ms:
            return  # a replayed trigger writes its rows again
        self.status[row.shard] = row
        self.groups.take_status(row)
        self.ticks.add_records(row.batch_ms, row.counts.get("records", 0))

    def _take_job(self, topic_row: TopicRow, _changes: Changes) -> None:
        row = topic_row.row
        assert isinstance(row, JobRow)  # noqa: S101 - by the decoder of its source
        batch = row.last_batch
        if batch is not None and (self.job is None or batch != self.job.last_batch):
            self.ticks.add_batch(batch)
        self.job = row

    def _take_reject(self, topic_row: TopicRow, _changes: Changes) -> None:
        row = topic_row.row
        assert isinstance(row, Reject)  # noqa: S101 - by the decoder of its source
        self.rejects[row.cause] += 1
