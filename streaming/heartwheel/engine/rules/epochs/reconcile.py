"""How a member moves to its target: the partitions it has to give back, the time it has for that, and its epoch.

Kafka's `CurrentAssignmentBuilder` computes this from the assignor's target, which no request shows. Its answer shows
the result, and everything here follows from that. Read it next to `GroupMetadataManager`: every function names the
method it mirrors.
"""

from __future__ import annotations

from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.model import EpochMember, GroupType, TimerName
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, TASK_KINDS, GroupHeartbeat, HeartbeatType, Partitions


def maybe_reconcile(ctx: EpochContext, member: EpochMember, beat: GroupHeartbeat) -> None:
    """Update the member's assignment and epoch: `maybeReconcile`.

    The rebalance timer starts when the member has partitions to give back, and stops when it has none left.
    """
    before = (member.epoch, member.assigned, member.revoking, member.unrevoked)
    acknowledged = member.unrevoked and _acknowledges(member, beat)
    if acknowledged:
        member.unrevoked, member.revoking = False, {}
        ctx.cancel(member, TimerName.REBALANCE)
    if not member.unrevoked:
        _move_on(ctx, member, beat)
    elif beat.answer_member_epoch is not None and beat.answer_member_epoch > member.epoch > 0:
        # A member only moves on after it gave all partitions back, so it must have reported that unseen.
        member.unrevoked, member.revoking = False, {}
        ctx.cancel(member, TimerName.REBALANCE)
        _move_on(ctx, member, beat)
    if (member.epoch, member.assigned, member.revoking, member.unrevoked) != before:
        member.previous_epoch = before[0]


def _acknowledges(member: EpochMember, beat: GroupHeartbeat) -> bool:
    """Return whether a request owns nothing of what was revoked: `ownsRevokedPartitions`."""
    if beat.revoking is not None:
        return not beat.revoking
    owned = _owned(beat)
    return owned is not None and (beat.member_epoch == JOIN_EPOCH or _is_free_of(owned, member.revoking))


def _owned(beat: GroupHeartbeat) -> Partitions | None:
    """Return what the sender owns, `None` if it does not say. A joining sender owns nothing."""
    return {} if beat.member_epoch == JOIN_EPOCH else beat.owned


def _is_free_of(owned: Partitions, revoking: Partitions) -> bool:
    return bool(revoking) and not _share(owned, revoking)


def _move_on(ctx: EpochContext, member: EpochMember, beat: GroupHeartbeat) -> None:
    """Set the epoch and assignment from the answer: `computeNextAssignment`."""
    taken = _revoked_by(member, beat)
    if beat.assignment is not None:
        member.assigned = {topic: tuple(sorted(partitions)) for topic, partitions in beat.assignment.items()}
    elif member.assigned is None and beat.owned is not None:
        member.assigned = {topic: tuple(sorted(partitions)) for topic, partitions in beat.owned.items()}
    owned = _owned(beat)
    must_revoke = bool(taken) and (owned is None or _share(owned, taken)) and not _has_moved(member, beat)
    if beat.answer_member_epoch is not None:
        member.epoch, member.epoch_is_known = beat.answer_member_epoch, True
    elif beat.member_epoch == JOIN_EPOCH:
        member.epoch, member.epoch_is_known = ctx.group.target_epoch, False
    else:
        member.epoch_is_known = False
    if ctx.group.type is GroupType.SHARE or member.classic is not None:
        return  # a share group revokes partitions at once, and classic members have a join and a sync timer
    if must_revoke or (beat.revoking and not taken):
        member.unrevoked, member.revoking = True, taken
        schedule_rebalance_timeout(ctx, member)
    else:
        ctx.cancel(member, TimerName.REBALANCE)


def schedule_rebalance_timeout(ctx: EpochContext, member: EpochMember) -> None:
    """Start the time in which a member has to give partitions back: `scheduleConsumerGroupRebalanceTimeout`."""
    timeout_ms = member.rebalance_timeout_ms
    if timeout_ms < 0:
        if has_unseen_rebalance_timeout(ctx, member):
            return
        timeout_ms = ctx.config.coordinator.default_rebalance_timeout_ms
    ctx.arm(member, TimerName.REBALANCE, timeout_ms)


def has_unseen_rebalance_timeout(ctx: EpochContext, member: EpochMember) -> bool:
    """Return whether a member's rebalance timeout was in a join that was not seen.

    If the answers are known, no value is assumed for it.
    """
    return ctx.group.taken_over and member.epoch_is_known and member.rebalance_timeout_ms < 0 and member.classic is None


def suspect_unrevoked(ctx: EpochContext, member: EpochMember, target_epoch: int) -> None:
    """Mark a member that is behind the target: an unseen answer may have asked it to give partitions back.

    Its rebalance timer is unknown. So if it falls silent, its end is unknown too: that timer may fence it.
    """
    behind = 0 < member.epoch < target_epoch and ctx.group.type is not GroupType.SHARE
    if behind and not member.unrevoked and has_unseen_rebalance_timeout(ctx, member):
        member.unrevoked = True
        ctx.remember_heartbeat(member, 0)


def _has_moved(member: EpochMember, beat: GroupHeartbeat) -> bool:
    """Return whether the answer has a later epoch; a member that still owns revoked partitions stays at its own."""
    answer_epoch = beat.answer_member_epoch
    return answer_epoch is not None and beat.member_epoch > 0 and answer_epoch > max(member.epoch, beat.member_epoch)


def _revoked_by(member: EpochMember, beat: GroupHeartbeat) -> dict[str, tuple[int, ...]]:
    """Return what the answer revokes of the member's partitions."""
    had = member.assigned if member.assigned is not None else beat.owned
    if beat.assignment is None or had is None:
        return {}
    kept = {topic: set(partitions) for topic, partitions in beat.assignment.items()}
    if beat.type is HeartbeatType.STREAMS:
        for topic in had:
            kept[topic] = kept.get(topic, set()) | _in_another_role(topic, beat.assignment)
    left = {topic: tuple(p for p in partitions if p not in kept.get(topic, ())) for topic, partitions in had.items()}
    return {topic: partitions for topic, partitions in left.items() if partitions}


def _in_another_role(tasks: str, assignment: Partitions) -> set[int]:
    """Return which standby or warm-up tasks the same answer makes a streams member's tasks of another kind.

    Kafka does not revoke those (`applyPromotionsToActive`, `convertReplicaRole`, from 4.4 on; before, no answer does
    both). An active task that becomes a standby task is revoked.
    """
    kind, _, subtopology = tasks.partition("/")
    others = () if kind == TASK_KINDS[0] else (other for other in TASK_KINDS if other != kind)
    return {task for other in others for task in assignment.get(f"{other}/{subtopology}", ())}


def is_subset(owned: Partitions, assigned: Partitions) -> bool:
    """Return whether all partitions of the first are in the second: `isSubset`."""
    return all(set(partitions) <= set(assigned.get(topic, ())) for topic, partitions in owned.items())


def _share(one: Partitions, other: Partitions) -> bool:
    return any(not set(partitions).isdisjoint(other.get(topic, ())) for topic, partitions in one.items())
