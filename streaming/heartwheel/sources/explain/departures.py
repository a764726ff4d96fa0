"""Members that are out: expired, fenced, removed, or having left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from heartwheel.base.phrases import length
from heartwheel.sources.explain.explanation import leave_reason
from heartwheel.sources.explain.facts import Fact
from heartwheel.sources.explain.groups import WatchedGroup
from heartwheel.sources.explain.watch import FollowedLog
from heartwheel.wire.explained import Happened
from heartwheel.wire.verdicts import ExpiryReason

_AT_ONCE_MS: Final = 150
_RECENT_LOAD_MS: Final = 120_000
_FENCED: Final[Sequence[tuple[re.Pattern[str], Happened]]] = (
    (re.compile(r"the member session expired"), Happened.EXPIRED),
    (re.compile(r"it failed to transition from epoch"), Happened.REVOCATION_TIMEOUT),
    (re.compile(r".*failed to join within"), Happened.REMOVED_AT_REBALANCE),
    (re.compile(r".*failed to sync within"), Happened.SYNC_TIMEOUT),
)
_TIMEOUT_MS: Final = re.compile(r"within (\d{1,10})ms")
_EPOCH: Final = re.compile(r"from epoch (-?\d{1,10})\b")


class LoggedDepartures:
    """Turns facts about departing members into events."""

    def __init__(self, watch: FollowedLog) -> None:
        self._watch = watch

    def failed(self, fact: Fact) -> None:
        """Note that a member's timer ran out."""
        group = self._watch.group(fact)
        self._watch.out(fact, group, Happened.EXPIRED, explanation=_late(fact, group))

    def fenced(self, fact: Fact) -> None:
        """Note that a member of a group with epochs was fenced."""
        group = self._watch.group(fact)
        known = next((kind for pattern, kind in _FENCED if pattern.match(fact.words)), None)
        kind, reason = (Happened.EXPIRED, "fenced") if known is None else (known, "")
        notes = _late(fact, group) if kind is Happened.EXPIRED else []
        before = group.member(fact.member_id).out
        if before is not None and before.kind is Happened.TEMPORARILY_LEFT and before.returned_ms is None:
            ago = length(fact.time_ms - before.time_ms)
            notes = [f"Its static member had left {ago} before and did not come back in time.", *notes]
            reason = "static_not_back"
        event = self._watch.out(fact, group, kind, reason, words=fact.words, explanation=notes)
        limit, epoch = _TIMEOUT_MS.search(fact.words), _EPOCH.search(fact.words)
        if limit is not None:
            event.rebalance_timeout_ms = int(limit[1])
        if epoch is not None:
            event.epoch = int(epoch[1])

    def pending_expired(self, fact: Fact) -> None:
        """Note that a pending member never joined."""
        group = self._watch.group(fact)
        if group.member(fact.member_id).left_pending:
            return  # the old coordinator logs this also for a pending member that has left
        self._watch.out(fact, group, Happened.PENDING_EXPIRED, causes=False)

    def pending_left(self, fact: Fact) -> None:
        """Note that a pending member left."""
        group = self._watch.group(fact)
        self._watch.out(fact, group, Happened.LEFT, leave_reason(fact.words), words=fact.words, causes=False)
        group.member(fact.member_id).left_pending = True

    def left(self, fact: Fact) -> None:
        """Note that a member left."""
        group = self._watch.group(fact)
        reason = leave_reason(fact.words)
        kind = Happened.POLL_TIMEOUT if reason == ExpiryReason.POLL_TIMEOUT else Happened.LEFT
        emptied = group.emptied
        if emptied is None or fact.time_ms - emptied.time_ms > _AT_ONCE_MS:
            self._watch.out(fact, group, kind, reason, words=fact.words)
            return
        # The old coordinator first logs that the group is empty, and then the last member that left it.
        event = self._watch.out(fact, group, kind, reason, words=fact.words, causes=False)
        event.generation_id = None if emptied.generation_id is None else emptied.generation_id - 1
        event.rebalance_generation, event.rebalance_ms = emptied.generation_id, emptied.duration_ms
        self._watch.put_before(event, emptied)

    def temporarily_left(self, fact: Fact) -> None:
        """Note that a static member left temporarily."""
        self._watch.out(fact, self._watch.group(fact), Happened.TEMPORARILY_LEFT, "left", causes=False)

    def removed_at_barrier(self, fact: Fact) -> None:
        """Note the members that were removed because a join phase ended without them."""
        group = self._watch.group(fact)
        for member_id in fact.members:
            event = self._watch.out(fact, group, Happened.REMOVED_AT_REBALANCE, member_id=member_id)
            if group.open is not None:
                event.duration_ms = max(0, fact.time_ms - group.open.started_ms)
                group.open.blocked_by.append(member_id)


def _late(fact: Fact, group: WatchedGroup) -> list[str]:
    """Return a sentence that a death shows late, if the coordinator gave every member a new session not long before."""
    if group.loaded_ms is None or fact.time_ms - group.loaded_ms > _RECENT_LOAD_MS:
        return []
    since = length(fact.time_ms - group.loaded_ms)
    loaded = f"Its coordinator had been loaded {since} before, which gives every member a whole new session"
    return [f"{loaded}: it may have been silent for longer."]
