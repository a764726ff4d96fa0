"""How a member moves towards its target: what it is asked to give back, how long it may take, and its epoch.

Kafka's `CurrentAssignmentBuilder` computes this from the assignor's target, which no request shows. Its answer shows
what came of it, and everything here follows from that. Read beside `GroupMetadataManager`: every function names the
method it mirrors.
"""

from __future__ import annotations

from heartwheel.coordinator.consumer_context import EpochContext
from heartwheel.coordinator.consumer_model import EpochMember, GroupType, TimerName
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat, Partitions


def maybe_reconcile(ctx: EpochContext, member: EpochMember, beat: GroupHeartbeat) -> None:
    """Follow the member's assignment and epoch: `maybeReconcile`.

    The rebalance timer starts when the member comes to owe partitions, and stops when it owes none any more.
    """
    before = (member.epoch, member.assigned, member.revoking, member.unrevoked)
    acknowledged = member.unrevoked and _acknowledges(member, beat)
    if acknowledged:
        member.unrevoked, member.revoking = False, {}
        ctx.cancel(member, TimerName.REBALANCE)
    if not member.unrevoked:
        _move_on(ctx, member, beat)
    elif beat.answer_member_epoch is not None and beat.answer_member_epoch > member.epoch > 0:
        # Only a member that owes nothing moves on, so it must have said so in a way that was not seen.
        member.unrevoked, member.revoking = False, {}
        ctx.cancel(member, TimerName.REBALANCE)
        _move_on(ctx, member, beat)
    if (member.epoch, member.assigned, member.revoking, member.unrevoked) != before:
        member.previous_epoch = before[0]


def _acknowledges(member: EpochMember, beat: GroupHeartbeat) -> bool:
    """Tell whether a request says that nothing which was asked back is owned: `ownsRevokedPartitions`."""
    if beat.revoking is not None:
        return not beat.revoking
    owned = _owned(beat)
    return owned is not None and (beat.member_epoch == JOIN_EPOCH or _is_free_of(owned, member.revoking))


def _owned(beat: GroupHeartbeat) -> Partitions | None:
    """Tell what the sender owns, `None` if it does not say; who joins owns nothing."""
    return {} if beat.member_epoch == JOIN_EPOCH else beat.owned


def _is_free_of(owned: Partitions, revoking: Partitions) -> bool:
    return bool(revoking) and not _share(owned, revoking)


def _move_on(ctx: EpochContext, member: EpochMember, beat: GroupHeartbeat) -> None:
    """Take over the answer's epoch and assignment: `computeNextAssignment`."""
    taken = _taken_away(member, beat)
    if beat.assignment is not None:
        member.assigned = {topic: tuple(sorted(partitions)) for topic, partitions in beat.assignment.items()}
    elif member.assigned is None and beat.owned is not None:
        member.assigned = {topic: tuple(sorted(partitions)) for topic, partitions in beat.owned.items()}
    owned = _owned(beat)
    owes = bool(taken) and (owned is None or _share(owned, taken)) and not _moved(member, beat)
    if beat.answer_member_epoch is not None:
        member.epoch, member.epoch_is_known = beat.answer_member_epoch, True
    elif beat.member_epoch == JOIN_EPOCH:
        member.epoch, member.epoch_is_known = ctx.group.target_epoch, False
    else:
        member.epoch_is_known = False
    if ctx.group.type is GroupType.SHARE or member.classic is not None:
        return  # a share group takes partitions away at once, and classic members have a join and a sync timer
    if owes or (beat.revoking and not taken):
        member.unrevoked, member.revoking = True, taken
        schedule_rebalance_timeout(ctx, member)
    else:
        ctx.cancel(member, TimerName.REBALANCE)


def schedule_rebalance_timeout(ctx: EpochContext, member: EpochMember) -> None:
    """Give a member its rebalance timeout to give partitions back: `scheduleConsumerGroupRebalanceTimeout`."""
    timeout_ms = member.rebalance_timeout_ms
    if timeout_ms < 0:
        if is_unseen_patience(ctx, member):
            return
        timeout_ms = ctx.config.coordinator.default_rebalance_timeout_ms
    ctx.arm(member, TimerName.REBALANCE, timeout_ms)


def is_unseen_patience(ctx: EpochContext, member: EpochMember) -> bool:
    """Tell whether a member has said in a join that was not seen how long it may take to give partitions back.

    Where the answers are known nothing is assumed of that.
    """
    return ctx.group.taken_over and member.epoch_is_known and member.rebalance_timeout_ms < 0 and member.classic is None


def suspect_debt(ctx: EpochContext, member: EpochMember, target_epoch: int) -> None:
    """Note that a member is behind the target, so that it may have been asked unseen to give partitions back.

    No timer of it is known, and so it is not known how it ends if it falls silent: it may be fenced by that timer.
    """
    behind = 0 < member.epoch < target_epoch and ctx.group.type is not GroupType.SHARE
    if behind and not member.unrevoked and is_unseen_patience(ctx, member):
        member.unrevoked = True
        ctx.remember_heartbeat(member, 0)


def _moved(member: EpochMember, beat: GroupHeartbeat) -> bool:
    """Tell whether the answer has a later epoch: a member that owes partitions stays at its own."""
    answer_epoch = beat.answer_member_epoch
    return answer_epoch is not None and beat.member_epoch > 0 and answer_epoch > max(member.epoch, beat.member_epoch)


def _taken_away(member: EpochMember, beat: GroupHeartbeat) -> dict[str, tuple[int, ...]]:
    """List what the answer takes away of what the member had."""
    had = member.assigned if member.assigned is not None else beat.owned
    if beat.assignment is None or had is None:
        return {}
    kept = {topic: set(partitions) for topic, partitions in beat.assignment.items()}
    left = {topic: tuple(p for p in partitions if p not in kept.get(topic, ())) for topic, partitions in had.items()}
    return {topic: partitions for topic, partitions in left.items() if partitions}


def is_subset(owned: Partitions, assigned: Partitions) -> bool:
    """Tell whether all partitions of one are of the other: `isSubset`."""
    return all(set(partitions) <= set(assigned.get(topic, ())) for topic, partitions in owned.items())


def _share(one: Partitions, other: Partitions) -> bool:
    return any(not set(partitions).isdisjoint(other.get(topic, ())) for topic, partitions in one.items())
