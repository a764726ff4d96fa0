"""A mix of groups that shows everything within a minute.

Most groups are classic and calm: their members join, sync and beat, and rarely one dies. In a quarter of them members
only send heartbeats, and die as often as the plan says. To four of the classic groups something happens by a script,
early in the feed and again and again: a storm, a rebalance that one member holds up, static members of which one
comes back in time and one does not, and a poll timeout.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.proof.members.classic import ClassicMembers
from heartwheel.proof.members.members import BEATS, PresenceMembers, Sent
from heartwheel.proof.members.schedule import (
    Action,
    FeedPlan,
    MemberStep,
    first_ms,
    interval_ms,
    life,
    merged,
    random_of,
)

_CALM: Final = 1 / 20
"""The rates of classic groups, as a share of the plan's: five rebalances in five minutes would be a storm already."""

_NOTICE_MS: Final = 500
"""How long it takes until a change can be noticed, ms: more than a record needs to be stamped."""

_SCRIPTED_MEMBERS_MIN: Final = 4
_SCRIPTED_FROM: Final = 1


class Role(enum.StrEnum):
    """What a group of the mix shows."""

    PRESENCE = "presence"
    CLASSIC = "classic"
    STORM = "storm"
    BLOCKED = "blocked"
    STATIC = "static"
    POLL_TIMEOUT = "poll timeout"


_SCRIPTED: Final = (Role.STORM, Role.BLOCKED, Role.STATIC, Role.POLL_TIMEOUT)


class Script(NamedTuple):
    """What happens to one member of a group, again and again.

    Args:
        actions: when, ms since the start of the feed, and what; in order.
        period_ms: after how long all of it happens again, ms.
    """

    actions: tuple[tuple[float, Action], ...]
    period_ms: float

    def endless(self) -> Iterator[tuple[float, Action]]:
        """Repeat it for ever; without actions, name a moment that never comes."""
        turn_ms = 0.0
        while self.actions:
            for at_ms, action in self.actions:
                yield turn_ms + at_ms, action
            turn_ms += self.period_ms
        yield math.inf, Action.BEAT


def role_of(plan: FeedPlan, group: int) -> Role:
    """Return what a group shows: the last quarter are presence groups, and small plans have no scripts.

    Args:
        group: its number, from 0.
    """
    presence = max(plan.groups // 4, min(1, plan.groups - 1))
    if group >= plan.groups - presence:
        return Role.PRESENCE
    number = group - _SCRIPTED_FROM
    has_scripts = (
        plan.groups - presence > _SCRIPTED_FROM + len(_SCRIPTED) and plan.members_per_group >= _SCRIPTED_MEMBERS_MIN
    )
    return _SCRIPTED[number] if has_scripts and 0 <= number < len(_SCRIPTED) else Role.CLASSIC


def scripts_of(plan: FeedPlan, role: Role) -> dict[int, Script]:
    """Write the scripts of a group.

    Everything but a storm happens so seldom that it makes none: less than five rebalances in five minutes. A blocked
    group waits for 25 s of every 100 s and is in no trouble, as nobody is over its rebalance timeout.

    Args:
        role: what the group shows.

    Returns:
        Script by place in the group, of those who have one.
    """
    session_ms = plan.session_timeout_ms
    # A change is noticed with the next heartbeat, and so is the end of the join phase that it opens.
    settle_ms = 2 * plan.heartbeat_interval_ms * (1 + plan.jitter) + 3 * _NOTICE_MS
    calm_ms = plan.heartbeat_interval_ms + 2 * CoordinatorConfig().group_initial_rebalance_delay_ms + settle_ms
    rarely_ms = 300_000.0
    match role:
        case Role.STORM:
            back_ms = calm_ms + session_ms + settle_ms
            crash_loop = ((calm_ms, Action.KILL), (back_ms, Action.RETURN))
            return {0: Script(crash_loop, session_ms + 2 * settle_ms)}
        case Role.BLOCKED:
            slow = ((calm_ms - 1_000, Action.STALL), (calm_ms + 25_000, Action.RESUME))
            restarts = ((calm_ms, Action.LEAVE), (calm_ms + 8_000, Action.RETURN))
            return {0: Script(slow, 100_000), 1: Script(restarts, 100_000)}
        case Role.STATIC:
            late_ms = calm_ms + 10_000
            in_time = ((calm_ms, Action.KILL), (calm_ms + 0.35 * session_ms, Action.RETURN))
            too_late = ((late_ms, Action.KILL), (late_ms + session_ms + settle_ms, Action.RETURN))
            return {2: Script(in_time, 60_000), 3: Script(too_late, rarely_ms)}
        case Role.POLL_TIMEOUT:
            slow_ms = calm_ms + 6_000
            return {0: Script(((slow_ms, Action.POLL_TIMEOUT), (slow_ms + 15_000, Action.RETURN)), rarely_ms)}
        case _:
            return {}


def mixed_steps(plan: FeedPlan) -> Iterator[MemberStep]:
    """List what all members of the mix do, in order of time; endless if the plan is."""
    calm = msgspec.structs.replace(
        plan,
        kill_rate=plan.kill_rate * _CALM,
        pause_rate=plan.pause_rate * _CALM,
        leave_rate=plan.leave_rate * _CALM,
    )
    lives: list[Iterator[MemberStep]] = []
    for group, members in _members_of_groups(plan):
        role = role_of(plan, group)
        scripts = scripts_of(plan, role)
        if role in _SCRIPTED:
            lives += (_scripted(plan, member, scripts.get(place)) for place, member in enumerate(members))
        else:
            lives += (life(plan if role is Role.PRESENCE else calm, member) for member in members)
    return merged(plan, lives)


def _scripted(plan: FeedPlan, member: int, script: Script | None) -> Iterator[MemberStep]:
    random, at_ms, is_up = random_of(plan, member), first_ms(plan, member), True
    yield MemberStep(at_ms, member, Action.START)
    for due_ms, action in (script or Script((), 0)).endless():
        while is_up and (beat_ms := at_ms + interval_ms(plan, random)) < due_ms:
            at_ms = beat_ms
            yield MemberStep(at_ms, member, Action.BEAT)
        at_ms, is_up = due_ms, action in BEATS
        yield MemberStep(at_ms, member, action)


def _members_of_groups(plan: FeedPlan) -> Iterator[tuple[int, Sequence[int]]]:
    size = plan.members_per_group
    return ((group, range(group * size, (group + 1) * size)) for group in range(plan.groups))


class MixedMembers:
    """The members of the mix, each by the protocol of its group.

    Args:
        config: what the engine's coordinators are set to; the defaults, if left out.
    """

    def __init__(self, plan: FeedPlan, config: CoordinatorConfig | None = None) -> None:
        self._plan = plan
        roles = {group: role_of(plan, group) for group in range(plan.groups)}
        self._is_presence = [roles[group] is Role.PRESENCE for group in range(plan.groups)]
        present = (n for group, members in _members_of_groups(plan) if self._is_presence[group] for n in members)
        self._presence = PresenceMembers(plan, present)
        self._classic = ClassicMembers(
            plan,
            config,
            groups=(group for group, role in roles.items() if role is not Role.PRESENCE),
            static={group for group, role in roles.items() if role is Role.STATIC},
        )

    def member_id(self, member: int) -> str:
        """Return the id that a member goes by now."""
        return self._of(member).member_id(member)

    def act(self, member: int, action: Action, now_ms: float) -> Iterator[Sent]:
        """Carry out one action of a member."""
        yield from self._of(member).act(member, action, now_ms)

    def landed(self, sent: Sent, append_ms: int | None, now_ms: float) -> None:
        """Take what became of a record."""
        self._of(sent.member).landed(sent, append_ms, now_ms)

    def _of(self, member: int) -> PresenceMembers | ClassicMembers:
        return self._presence if self._is_presence[member // self._plan.members_per_group] else self._classic
