"""All members of a canary: when each beats, the result of each heartbeat, and the judgements. No clock, no Kafka."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heartwheel.readers.canary.figures import OutcomeCounts
from heartwheel.readers.canary.judge import CanaryJudge, Claim, JudgedOutcome
from heartwheel.readers.canary.plan import CanaryPlan, Probe
from heartwheel.readers.live.canary_figures import CanaryFigures
from heartwheel.wire.events import Event, EventType
from heartwheel.wire.verdict_rows import ExpirationRow

CLIENT_ID = "heartwheel-canary"
"""The client id that its members show."""


class CanaryMembers:
    """The members of a canary, one in each of its groups.

    Args:
        member_id: the id of all its members; another canary has another one, so that two on one topic do no harm.
        missed_after_ms: an expiration that is not known so long after its deadline is missed, ms.
        objective_ms: one that is known later than that is late, ms.
    """

    def __init__(self, plan: CanaryPlan, *, member_id: str, missed_after_ms: int, objective_ms: int) -> None:
        self.plan, self.member_id = plan, member_id
        self._judges = {
            probe.group_id: CanaryJudge(
                session_ms=plan.session_ms, objective_ms=objective_ms, missed_after_ms=missed_after_ms
            )
            for probe in plan.probes
        }
        # The first heartbeats are shifted too: all shards at once would be a load that is no one's.
        self._next_ms = {
            probe.group_id: plan.beat_ms * number // len(plan.probes) for number, probe in enumerate(plan.probes)
        }
        self._outcomes = OutcomeCounts()
        self._objective_ms = objective_ms
        self._beats = self._unknown = 0

    def due(self, at_ms: int) -> Iterator[Probe]:
        """Return the members whose heartbeat is due, and count it as sent. Missed heartbeats are not sent later.

        Args:
            at_ms: time since the start, ms.
        """
        for probe in self.plan.probes:
            next_ms = self._next_ms[probe.group_id]
            if at_ms >= next_ms:
                self._next_ms[probe.group_id] = max(next_ms, at_ms - self.plan.beat_ms // 2) + self.plan.beat_ms
                if self.plan.talks(probe, at_ms):
                    self._beats += 1
                    self._judges[probe.group_id].sent()
                    yield probe

    def beat_of(self, probe: Probe) -> Event:
        """Make the heartbeat of a member."""
        return Event(
            group_id=probe.group_id,
            member_id=self.member_id,
            session_timeout_ms=self.plan.session_ms,
            client_id=CLIENT_ID,
        )

    def goodbye_of(self, probe: Probe) -> Event:
        """Make the leave of a member, after which no silence of it means anything."""
        return Event(type=EventType.LEAVE, group_id=probe.group_id, member_id=self.member_id, reason="canary stops")

    def answered(self, probe: Probe, append_ms: int | None) -> None:
        """Note what became of the oldest unanswered heartbeat of a member.

        Args:
            append_ms: when it was appended, epoch ms; `None` if nobody knows whether it was.
        """
        self._unknown += append_ms is None
        self._judges[probe.group_id].answered(append_ms)

    def claimed(self, row: ExpirationRow, append_ms: int) -> None:
        """Note an expiration, of whomever."""
        judge = self._judges.get(row.group_id)
        if judge is not None and row.member_id == self.member_id:
            judge.claimed(Claim(row.id, row.last_seen_ms, row.deadline_ms, append_ms))

    def aim(self, objective_ms: int) -> None:
        """Take another objective, for the job tells its own pace.

        Args:
            objective_ms: an expiration that is known later after its deadline is late, ms.
        """
        self._objective_ms = objective_ms
        for judge in self._judges.values():
            judge.objective_ms = objective_ms

    def settle(
        self,
        now_ms: int,
        *,
        trouble: str | None = None,
        slow: str | None = None,
        on_judged: Callable[[Probe, JudgedOutcome], None],
    ) -> None:
        """Judge what can be judged by now.

        Args:
            now_ms: the broker's clock, or a time that is surely before it; epoch ms.
            trouble: why no expiration can come for now, if that is so.
            slow: why one may come late for now, if that is so.
            on_judged: called with each outcome once.
        """
        for probe in self.plan.probes:
            judge = self._judges[probe.group_id]
            for judged in judge.settle(now_ms, trouble, slow):
                self._outcomes.add(judged)
                on_judged(probe, judged)

    def figures(self, *, enabled: bool) -> CanaryFigures:
        """Return the figures of all members.

        Args:
            enabled: whether the canary runs.
        """
        return self._outcomes.figures(
            enabled=enabled,
            shards=len(self.plan.probes),
            pending=sum(judge.pending for judge in self._judges.values()),
            objective_ms=self._objective_ms,
            beats=self._beats,
            unknown=self._unknown,
        )
