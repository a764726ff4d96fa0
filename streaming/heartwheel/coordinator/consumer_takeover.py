"""Members of a group that goes by epochs and was met in the middle of its life.

The log begins while the group lives, so joins of members were not seen. What such a member says of itself is believed
where Kafka, which has seen everything, would refuse it; where the log cannot tell, nobody who is alive is to be
expired. These are rules of heartwheel's own, as docs/groups.md states them.
"""

from __future__ import annotations

from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.consumer_context import EpochContext
from heartwheel.coordinator.consumer_epochs import is_full
from heartwheel.coordinator.consumer_model import FIRST_EPOCH, ClassicProtocol, EpochMember, TimerName
from heartwheel.coordinator.consumer_reconcile import suspect_debt
from heartwheel.coordinator.consumer_target import catch_up_with, maybe_update_target
from heartwheel.wire.events import UNCHECKED_GENERATION, Event
from heartwheel.wire.group_heartbeats import JOIN_EPOCH, GroupHeartbeat


def may_be_unseen(ctx: EpochContext, member_id: str) -> bool:
    """Tell whether somebody who is not known may have joined before the log began.

    A broker that is known to have heard the request settles it, whatever it answered to a member of the group.
    """
    if ctx.accepted is not None:
        return True
    return (_begins_here(ctx) or ctx.group.taken_over) and member_id not in ctx.group.gone


def _begins_here(ctx: EpochContext) -> bool:
    """Tell whether nothing at all is known of the group."""
    group = ctx.group
    return not group.members and group.target_ms < 0 and not group.gone


def meet_by_join(ctx: EpochContext, beat: GroupHeartbeat) -> None:
    """Note that a group is older than the log, if the answer to the first join that was seen of it shows that.

    A new group answers with `FIRST_EPOCH` or with the epoch that the join moves it to.
    """
    answer_epoch = beat.answer_member_epoch or 0
    if beat.member_epoch == JOIN_EPOCH and answer_epoch > FIRST_EPOCH + 1 and _begins_here(ctx):
        group = ctx.group
        group.taken_over = True
        group.epoch = group.target_epoch = answer_epoch - 1


def was_there_before(ctx: EpochContext, event: Event) -> bool:
    """Tell whether who joins by the classic protocol is taken for a member that joined before the log began.

    So it is no new one, and the epoch stays: were it to move here and not at the broker, all others would seem to owe
    a join. A dynamic member that is new has just been given its id (`gone`), or has none yet. Of a static member whose
    instance id nobody holds here nothing tells, so it is taken for the return of one that was not seen.
    """
    known_id = event.member_id or (event.assigned_member_id if event.group_instance_id is not None else None)
    return ctx.group.taken_over and bool(known_id) and known_id not in ctx.group.gone


def take_over_by_heartbeat(ctx: EpochContext, beat: GroupHeartbeat) -> EpochMember | Answer:
    """Let the sender of a heartbeat above epoch 0 be a member, in silence."""
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
    """Let the sender of a heartbeat or sync of the classic protocol be a member, in silence.

    Its session is the one that is assumed of members whose join was not seen; if the source knows the coordinator's
    answers, it is unknown (0), and does not run. Its rebalance timeout is not known, so no join timer runs before a
    join of it tells: a consumer may poll as seldom as it likes, and it does beat.
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
                suspect_debt(ctx, other, shown_epoch)
        group.epoch, group.target_epoch = max(group.epoch, shown_epoch), max(group.target_epoch, shown_epoch)
    return ctx.add(member)


def take_generation(ctx: EpochContext, member: EpochMember, generation: int) -> bool:
    """Take over the epoch that a classic member names, where only that tells what a join of it was answered with.

    Kafka takes the member's epoch alone (`throwIfGenerationIdUnmatched`), but events do not say what a join was
    answered with. That is the target's epoch, or the one before it for a member that has to give partitions back first
    (UNREVOKED_PARTITIONS). One at a later epoch than is known of it has joined unseen.

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
