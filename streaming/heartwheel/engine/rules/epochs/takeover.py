"""Members of an epoch group that is first seen in mid-life.

The log begins while the group is alive, so some joins were not seen. Such a member is believed where Kafka, which has
seen everything, would refuse it. Where the log cannot tell, no living member may be expired. These rules are
heartwheel's own and are described in docs/groups.md.
"""

from __future__ import annotations

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.epochs import is_full
from heartwheel.engine.rules.epochs.model import FIRST_EPOCH, ClassicProtocol, EpochMember, TimerName
from heartwheel.engine.rules.epochs.reconcile import suspect_unrevoked
from heartwheel.engine.rules.epochs.target import catch_up_with, maybe_update_target
from heartwheel.wire.events import UNCHECKED_GENERATION, Event
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat


def may_be_unseen(ctx: EpochContext, member_id: str) -> bool:
    """Return whether an unknown sender may have joined before the log began.

    The answer of a broker, if it is known, settles that.
    """
    if ctx.accepted is not None:
        return True
    return (_is_unknown_group(ctx) or ctx.group.taken_over) and member_id not in ctx.group.non_members


def _is_unknown_group(ctx: EpochContext) -> bool:
    """Return whether nothing is known of the group."""
    group = ctx.group
    return not group.members and group.target_ms < 0 and not group.non_members


def recognize_by_join(ctx: EpochContext, beat: GroupHeartbeat) -> None:
    """Mark a group as older than the log, if the answer to its first join that was seen shows that.

    A new group answers with `FIRST_EPOCH` or with the epoch that the join causes.
    """
    answer_epoch = beat.answer_member_epoch or 0
    if beat.member_epoch == JOIN_EPOCH and answer_epoch > FIRST_EPOCH + 1 and _is_unknown_group(ctx):
        group = ctx.group
        group.taken_over = True
        group.epoch = group.target_epoch = answer_epoch - 1


def joined_before_log(ctx: EpochContext, event: Event) -> bool:
    """Return whether the sender of a classic join is assumed to have joined before the log began.

    Then it is not new, and the epoch stays. If the epoch were bumped here and not at the broker, all others would seem
    to have to join again. A new dynamic member has just got its id (`non_members`), or has none yet. Nothing is known
    of a static member whose instance id no member has here, so it is assumed to be the return of an unseen one.
    """
    known_id = event.member_id or (event.assigned_member_id if event.group_instance_id is not None else None)
    return ctx.group.taken_over and bool(known_id) and known_id not in ctx.group.non_members


def take_over_by_heartbeat(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember | Answer:
    """Add the sender of a heartbeat above epoch 0 as a member, without a verdict."""
    if not may_be_unseen(ctx, beat.sender):
        return Answer.UNKNOWN_MEMBER_ID
    member = EpochMember(
        member_id=beat.sender,
        group_instance_id=beat.group_instance_id,
        epoch=beat.member_epoch,
        previous_epoch=beat.member_epoch,
        topics=tuple(sorted(set(beat.subscribed_topics or ()))),
        regex=beat.subscribed_regex or "",
    )
    return _take_over(ctx, member, max(beat.member_epoch, beat.answer_member_epoch or 0))


def take_over_classic(ctx: EpochContext, event: Event) -> EpochMember | Answer:
    """Add the sender of a heartbeat or sync of the classic protocol as a member, without a verdict.

    Its session timeout is the one assumed for members whose join was not seen. If the source knows the coordinator's
    answers, it is unknown (0), and no session runs. Its rebalance timeout is unknown, so no join timer runs before its
    next join: a consumer may poll as seldom as it likes while it sends heartbeats.
    """
    if event.generation_id == UNCHECKED_GENERATION or not may_be_unseen(ctx, event.member_id):
        return Answer.UNKNOWN_MEMBER_ID
    assumed_ms = ctx.config.coordinator.default_session_timeout_ms if event.error_code is None else 0
    session_ms = event.session_timeout_ms or assumed_ms
    member = EpochMember(
        member_id=event.member_id,
        group_instance_id=event.group_instance_id,
        client_id=event.client_id,
        client_host=event.client_host,
        epoch=event.generation_id,
        previous_epoch=event.generation_id,
        epoch_is_known=True,
        classic=ClassicProtocol(session_ms),
    )
    return _take_over(ctx, member, event.generation_id)


def _take_over(ctx: EpochContext, member: EpochMember, shown_epoch: int) -> EpochMember | Answer:
    if is_full(ctx, member.member_id) and ctx.accepted is None:
        return Answer.GROUP_MAX_SIZE_REACHED
    group = ctx.group
    if not group.members:
        group.taken_over = True
    if group.taken_over:
        if shown_epoch > group.target_epoch:
            for other in group.members.values():
                suspect_unrevoked(ctx, other, shown_epoch)
        group.epoch, group.target_epoch = max(group.epoch, shown_epoch), max(group.target_epoch, shown_epoch)
    return ctx.add(member)


def take_generation(ctx: EpochContext, member: EpochMember, generation: int) -> bool:
    """Set a classic member's epoch to the generation that it names, if only that shows the answer to a join.

    Kafka compares the member's epoch (`throwIfGenerationIdUnmatched`), but events do not carry the answer to a join.
    That is the target's epoch, or the one before it for a member that has to give partitions back first
    (UNREVOKED_PARTITIONS). A member at a later epoch than its known one has joined unseen.

    Returns:
        Whether the generation can be the member's.
    """
    group, assumed = ctx.group, member.epoch
    if generation in (UNCHECKED_GENERATION, assumed):
        member.epoch_is_known = member.epoch_is_known or generation == assumed
        return True
    if member.epoch_is_known and not (group.taken_over or generation <= group.epoch):
        return False
    if generation < assumed and (member.epoch_is_known or generation < member.previous_epoch):
        return False
    member.unrevoked = generation < assumed and TimerName.SYNC in member.timers
    member.epoch, member.epoch_is_known = generation, True
    catch_up_with(ctx, generation)
    if generation == group.epoch:
        maybe_update_target(ctx, generation)
    return True
