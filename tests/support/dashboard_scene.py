"""An hour in the life of a shop's consumer groups, from a seed: what the screenshots show and the page is judged by."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from heartwheel.readers.live.canary_figures import CanaryFigures, CanaryLateness
from heartwheel.readers.live.history import member_history
from heartwheel.readers.live.history_documents import GroupTail, MemberHistory, MemberSeen
from heartwheel.readers.live.scan import Beat
from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.wire.events import Event
from heartwheel.wire.partitioner import shard_of
from heartwheel.wire.status import WheelLevel
from heartwheel.wire.verdict_rows import ExpirationRow
from support.dashboard_rows import at_risk, expired, job, status, triggered
from timing_wheel import TimingWheel

SHARDS: Final = 8
HOUR_MS: Final = 3_600_000


class Crew(NamedTuple):
    """Hold a group: how many members it has, their session timeout, how often one dies (a minute), if static."""

    group_id: str
    members: int
    session_ms: int
    deaths: float
    static: bool = False


CREWS: Final = (
    Crew("orders-billing", 12, 10_000, 0.35, static=True),
    Crew("payments-ledger", 6, 45_000, 0.03, static=True),
    Crew("shipping-eta", 8, 10_000, 0.3),
    Crew("search-indexer", 14, 30_000, 0.25),
    Crew("email-notifier", 4, 45_000, 0.08),
    Crew("fraud-scoring", 9, 6_000, 0.9),
    Crew("inventory-sync", 10, 10_000, 0.2),
    Crew("clickstream-sessions", 24, 10_000, 0.3),
    Crew("warehouse-export", 3, 45_000, 0.05),
    Crew("audit-archive", 2, 45_000, 0.02, static=True),
    Crew("recommendations", 16, 10_000, 0.3),
    Crew("pricing-cache", 5, 6_000, 0.15),
)

_REASONS: Final = {"session_timeout": 74, "rebalance_timeout": 12, "pending_timeout": 7, "sync_timeout": 5}
_WAITING, _STORMY = CREWS[3], CREWS[5]
_STORM_STEP_MS: Final = 36_000
"""How often the member of the storm is expired: more than five times in the five minutes that make a storm."""

_SESSIONS_MS: Final = (6_000, 6_000, 10_000, 10_000, 10_000, 30_000, 45_000, 120_000)


class Member(NamedTuple):
    """Hold a member's names."""

    member_id: str
    client_id: str
    instance_id: str | None
    host: str


class Scene:
    """Tell what happened in the hour before some moment, and what happens from then on, second by second.

    Args:
        now_ms: that moment, epoch ms.
        seed: one seed, one story.
    """

    def __init__(self, now_ms: int, *, seed: int = 7) -> None:
        self.now_ms = now_ms
        self._random = random.Random(seed)
        self._members = {crew: [self._member(crew, i) for i in range(crew.members)] for crew in CREWS}
        self._stormy = self._members[_STORMY][4]
        self._next_storm_ms = now_ms - 250_000
        self._generation = dict.fromkeys(CREWS, 1)
        self._wheels = [_Shard(self._random, shard, now_ms, self._members) for shard in range(SHARDS)]

    def past(self) -> list[TopicRow]:
        """Tell the hour before."""
        rows = [row for crew in CREWS for row in self._story(crew)]
        rows += self._storm(self.now_ms - 20_000) + self._waiting()
        seconds = range(self.now_ms - 600_000, self.now_ms - 1_000, 1_000)
        rows += [row for at_ms in seconds for row in self._pulse(at_ms)]
        return sorted(rows, key=lambda row: row.append_ms)

    def second(self, now_ms: int) -> list[TopicRow]:
        """Return how the shards and the job stand in a second from then on, and what goes on of the storm.

        Without more rebalances the storm would be over after two minutes, which slow tests take longer than.
        """
        wheels = [shard.turn(now_ms, beats=self._beats(now_ms) // SHARDS) for shard in self._wheels]
        return [*self._storm(now_ms - 20_000), *wheels, self._job(now_ms)]

    def death(self, now_ms: int) -> Iterator[TopicRow]:
        """Tell that somebody has just been expired."""
        crew = self._random.choice([each for each in CREWS if each is not _WAITING])
        return self._expiry(crew, now_ms - 900, "session_timeout", self._random.choice(self._members[crew]))

    def tail(self, group_id: str, *, now_ms: int) -> GroupTail:
        """Tell who of a group sent heartbeats lately, as `HistoryReader.tail` does."""
        members = [each for crew in CREWS if crew.group_id == group_id for each in self._members[crew]]
        seen = [
            MemberSeen(member_id=each.member_id, last_seen_ms=now_ms - 430 * i, beats=20 - i)
            for i, each in enumerate(members)
        ]
        return GroupTail(members=seen, note="")

    def member(self, group_id: str, member_id: str, *, newest: ExpirationRow | None, **_now: int) -> MemberHistory:
        """Tell the last minute of a member before it fell silent, as `HistoryReader.member` does."""
        if newest is None:
            return MemberHistory.nothing("The heartbeat topic has nothing of this member.")
        chance, at_ms = random.Random(newest.id), newest.last_seen_ms
        times = [at_ms] + [at_ms := at_ms - int(3_000 * chance.uniform(0.8, 1.25)) for _ in range(20)]
        beats = [Beat(ms, Event(group_id=group_id, member_id=member_id, generation_id=7)) for ms in reversed(times)]
        return member_history(member_id, beats, newest, lambda: "")

    def _member(self, crew: Crew, number: int) -> Member:
        client = f"{crew.group_id}-{number + 1}"
        instance = f"{crew.group_id}-{number + 1}" if crew.static else None
        host = f"/10.24.{number % 3 + 1}.{self._random.randrange(10, 250)}"
        return Member(self._named(instance or client), client, instance, host)

    def _named(self, name: str) -> str:
        return f"{name}-{uuid.UUID(int=self._random.getrandbits(128), version=4)}"

    def _story(self, crew: Crew) -> Iterator[TopicRow]:
        at_ms = self.now_ms - HOUR_MS + 20_000
        # The storm goes on where this ends, or generations would not rise with time.
        end_ms = self.now_ms - (260_000 if crew is _STORMY else 60_000)
        while (at_ms := at_ms + int(self._random.expovariate(crew.deaths) * 60_000)) < end_ms:
            reason = self._random.choices(list(_REASONS), list(_REASONS.values()))[0]
            member = self._random.choice([each for each in self._members[crew] if each != self._stormy])
            yield from self._expiry(crew, at_ms, reason, member)

    def _expiry(
        self, crew: Crew, at_ms: int, reason: str, member: Member, *, returns: float = 0.6
    ) -> Iterator[TopicRow]:
        chance, shard = self._random, shard_of(crew.group_id, SHARDS)
        generation = self._generation[crew]
        state = {"rebalance_timeout": "PreparingRebalance", "sync_timeout": "CompletingRebalance"}.get(reason, "Stable")
        yield expired(
            *(crew.group_id, member.member_id, at_ms),
            reason=reason,
            session_ms=300_000 if reason == "rebalance_timeout" else crew.session_ms,
            late_ms=max(60, int(chance.gauss(1_150, 330))),
            group_instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.host,
            generation_id=generation,
            group_state=state,
            shard=shard,
        )
        yield triggered(
            *("rebalance_triggered", crew.group_id, at_ms),
            generation_id=generation,
            cause="member_expired",
            reason=f"removing member {member.member_id} on heartbeat expiration",
            deadline_ms=at_ms + 300_000,
            member_count=crew.members - 1,
            shard=shard,
        )
        self._generation[crew] += 1
        back = chance.random() < returns
        joined = (self._named(member.instance_id or member.client_id),) if back else ()
        took_ms = int(chance.gauss(2_600, 700)) + 400
        yield triggered(
            *("rebalance_completed", crew.group_id, at_ms + took_ms),
            generation_id=generation + 1,
            cause="all_joined",
            leader=self._members[crew][0].member_id,
            member_count=crew.members - (not back),
            joined=joined,
            duration_ms=took_ms,
            shard=shard,
        )

    def _storm(self, until_ms: int) -> list[TopicRow]:
        """One group's worker keeps dying: its next rebalances, up to some time."""
        times = range(self._next_storm_ms, until_ms, _STORM_STEP_MS)
        self._next_storm_ms += len(times) * _STORM_STEP_MS
        crew, member = _STORMY, self._stormy
        return [row for at_ms in times for row in self._expiry(crew, at_ms, "session_timeout", member, returns=1)]

    def _waiting(self) -> list[TopicRow]:
        """One group waits for two of its members to rejoin."""
        crew = _WAITING
        awaiting = tuple(member.member_id for member in self._members[crew][5:7])
        row = triggered(
            *("rebalance_triggered", crew.group_id, self.now_ms - 24_000),
            generation_id=self._generation[crew],
            cause="member_updated",
            reason=f"Updating metadata for member {self._members[crew][0].member_id} during Stable",
            deadline_ms=self.now_ms + 276_000,
            awaiting=awaiting,
            member_count=crew.members,
            shard=shard_of(crew.group_id, SHARDS),
        )
        return [row]

    def _pulse(self, at_ms: int) -> list[TopicRow]:
        counts = {"records": self._beats(at_ms)}
        return [status(0, at_ms, counts=counts), self._job(at_ms)]

    def _beats(self, at_ms: int) -> int:
        swell = 1 + 0.15 * ((at_ms // 1_000) % 300 / 300)
        return int(sum(crew.members for crew in CREWS) / 3 * 12 * swell * self._random.uniform(0.94, 1.06))

    def _job(self, at_ms: int) -> TopicRow:
        duration_ms = int(self._random.gauss(430, 45)) + (260 if at_ms // 1_000 % 47 == 0 else 0)
        return job(at_ms, shards=SHARDS, duration_ms=duration_ms, records=self._beats(at_ms))


class _Shard:
    """Turn one real timing wheel over made-up members that beat."""

    def __init__(
        self, chance: random.Random, shard: int, now_ms: int, members: dict[Crew, list[Member]], *, crowd: int = 90
    ) -> None:
        self._random, self._shard = chance, shard
        self._crews = [crew for crew in CREWS if shard_of(crew.group_id, SHARDS) == shard]
        named = [(crew, each) for crew in self._crews for each in members[crew]]
        extra = [named[i % len(named)] if named else (CREWS[i % 12], members[CREWS[i % 12]][0]) for i in range(crowd)]
        self._all = (named + extra)[:crowd]
        self._named = len(named)
        self._wheel = TimingWheel(tick_ms=100, wheel_size=20, start_ms=now_ms - 60_000)
        self._session_ms = [each[0].session_ms for each in named] + chance.choices(_SESSIONS_MS, k=crowd)
        self._seen = [now_ms - 60_000 + chance.randrange(3_000) for _ in self._all]
        self._wheel.file(range(len(self._all)), [self._deadline(i) for i in range(len(self._all))])
        for at_ms in range(now_ms - 59_000, now_ms, 1_000):
            self.turn(at_ms)

    def _deadline(self, handle: int) -> int:
        return self._seen[handle] + self._session_ms[handle]

    def turn(self, batch_ms: int, *, beats: int = 0) -> TopicRow:
        """Let a second go by: members beat about twice a session, the clock moves, and who was expired comes back."""
        for handle in range(len(self._all)):
            if self._random.random() < 2_000 / self._session_ms[handle]:
                self._seen[handle] = batch_ms - self._random.randrange(900)
        handles = list(range(len(self._all)))
        self._wheel.touch(handles, [self._deadline(handle) for handle in handles])
        for handle in self._wheel.advance(batch_ms - 1_000).tolist():
            self._seen[handle] = batch_ms
            self._wheel.file_one(handle, self._deadline(handle))
        next_ones = sorted(range(self._named), key=self._deadline)[:10]
        levels = self._wheel.occupancy(slots=True)
        return status(
            *(self._shard, batch_ms),
            clock_ms=batch_ms - 1_000,
            members=len(self._all),
            groups=len(self._crews),
            groups_by_state=dict(
                Counter("Stable" if each is not _WAITING else "PreparingRebalance" for each in self._crews)
            ),
            groups_by_kind={"classic": len(self._crews)},
            wheel=tuple(
                WheelLevel(tick_ms=each.tick_ms, entries=each.entries, slots=each.slot_counts) for each in levels
            ),
            wheel_moves=self._wheel.stats.moves,
            wheel_fires=self._wheel.stats.fires,
            at_risk=tuple(
                at_risk(self._all[i][0].group_id, self._all[i][1].member_id, self._deadline(i), self._session_ms[i])
                for i in next_ones
            ),
            counts={"records": beats},
            state_bytes=46_000 + 211 * self._shard,
        )


def canary_figures() -> CanaryFigures:
    """Tell what a canary has measured that has run for an hour."""
    return CanaryFigures(
        enabled=True,
        shards=SHARDS,
        expected=412,
        known=410,
        late=0,
        missed=0,
        false_=0,
        void=0,
        void_reason=None,
        pending=2,
        lateness_ms=CanaryLateness(p50=1_180, p99=1_790, max=1_904),
        objective_ms=2_500,
        last_ms=None,
        beats=9_180,
        unknown=0,
    )
