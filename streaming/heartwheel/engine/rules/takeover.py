"""Groups that are first seen in mid-life, and how the rules catch up with them.

A job that starts today sees only what its groups do from now on. It must neither report a storm of things that happened
long ago nor miss what happens next. So the rules believe what a member says about itself where Kafka, which has seen
everything, would refuse it.
"""

from __future__ import annotations

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import Group, GroupKind, GroupState, Member
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Cause, Kind


def take_over(ctx: Context, event: Event) -> Member:
    """Add a member that must have joined before it was first seen, without a verdict, with a whole session from now.

    If the source knows the coordinator's answers, the member's session timeout is unknown: the setting would be a
    guess. A static member's new id takes the place of its old one. A group that seemed Empty is Stable.
    """
    group, instance = ctx.group, event.group_instance_id
    holder = ctx.roster.static_member_id(instance) if instance is not None else None
    if holder is not None:
        member = ctx.roster.replace_static_member(group.members[holder], event.member_id)
    else:
        member = Member(
            member_id=event.member_id,
            seq=ctx.roster.new_seq(),
            group_instance_id=instance,
            client_id=event.client_id,
            client_host=event.client_host,
            session_timeout_ms=ctx.session_timeout_ms(event),
            rebalance_timeout_ms=ctx.rebalance_timeout_ms(event),
        )
        leader = group.leader
        ctx.roster.add(member, None, awaiting_join=False)
        group.leader = leader  # the election was not seen
    if group.kind is GroupKind.CLASSIC:
        _record(group, member)
    member.last_seen_ms = ctx.now_ms
    ctx.reset_session(member)
    if group.state is GroupState.EMPTY:
        ctx.transition_to(GroupState.STABLE)
    return member


def _record(group: Group, member: Member) -> None:
    """Add a member to the group's record, which has each member id and each instance id only once."""
    member.stored = True
    for other in list(group.departed.values()):
        same_instance = other.group_instance_id is not None and other.group_instance_id == member.group_instance_id
        if same_instance or other.member_id == member.member_id:
            del group.departed[other.member_id]


def remember_heartbeat(ctx: Context, event: Event, member: Member, fingerprint: int) -> None:
    """Store the fingerprint of a heartbeat that may be repeated without applying a rule, of a member with unseen joins.

    Only its heartbeats can show that such a member is static. If it names an instance id that is not its own, the owner
    of that id may fence it later, so every one of its heartbeats is read.
    """
    instance = event.group_instance_id
    if instance is not None and member.group_instance_id is None:
        ctx.roster.make_static(member, instance)
    is_plain = instance in (None, member.group_instance_id) and member.session_timeout_ms > 0
    member.fingerprint = fingerprint if is_plain else 0
    member.fingerprint_generation = event.generation_id


def is_behind(group: Group, event: Event, renewed_ms: int = -1) -> bool:
    """Return whether a request proves that a rebalance was missed, because it names a later generation.

    After a classic group was seen to agree with its members, such a request is a mistake, as it is for Kafka. But an
    outage may have hidden a rebalance, as long as no member has agreed since.

    Args:
        renewed_ms: end of the newest outage that has renewed the group's sessions, epoch ms; -1 if there was none.
    """
    if event.generation_id <= group.generation:
        return False
    if group.kind is not GroupKind.CLASSIC or not group.confirmed:
        return True
    return renewed_ms >= 0 and not any(_agrees(member, renewed_ms) for member in group.members.values())


def _agrees(member: Member, since_ms: int) -> bool:
    """Return whether a member has named the group's generation since a moment.

    A member that waits in a phase of a rebalance has only joined. This goes by the member's state and not by its
    requests: a heartbeat that no rule reads counts like any other
    (`test_p1_a_rebalance_in_what_a_feed_missed_expires_nobody`).
    """
    return member.last_seen_ms > since_ms and not (member.awaiting_join or member.pending_sync)


def catch_up(ctx: Context, generation: int, *, in_silence: bool = False) -> None:
    """Move a group to the generation that a member names; from then on it is a loaded group.

    Members stay as they are. Those that were parked in a join phase, which must be over, get a whole session. A group
    moves back only for a request that its coordinator accepted.
    """
    group = ctx.group
    if group.kind is GroupKind.CLASSIC:
        _end_join_phase(ctx)
    if generation <= group.generation:
        ctx.count_load()  # verdicts about the later generations may be emitted again
        group.triggered_generation = -1
    silent = group.state is GroupState.EMPTY and not group.members
    seen_before = group.generation
    group.kind = GroupKind.LOADED
    group.generation = generation
    group.awaits_proof = False
    ctx.clear_checked_fingerprints()
    if silent:
        return
    if generation > seen_before and not in_silence:
        ctx.report(
            Kind.REBALANCE_COMPLETED,
            messages.caught_up(group.group_id, seen_before, generation),
            Cause.GENERATION_ADVANCED,
            leader=group.leader,
        )
    if group.state is not GroupState.STABLE:
        ctx.transition_to(GroupState.STABLE)


def _end_join_phase(ctx: Context) -> None:
    group = ctx.group
    ctx.stop_group_timers()
    ctx.roster.clear_pending_sync()
    for member in group.members.values():
        if member.awaiting_join or member.awaiting_sync or member.is_new:
            ctx.roster.set_awaiting_join(member, awaiting=False)
            member.awaiting_sync = member.is_new = False
            ctx.reset_session(member)
    group.pending.clear()
    group.leader = None


def become_classic(ctx: Context, event: Event) -> None:
    """Apply the classic protocol to a group from its first join on.

    Its members become Stable members at the present generation, as after a coordinator's load.
    """
    group = ctx.group
    if group.kind is GroupKind.CLASSIC:
        return
    group.taken_over = group.kind is GroupKind.LOADED
    group.awaits_proof = group.taken_over and event.error_code is not None
    expect_unseen(ctx)
    if group.triggered_generation == group.generation and group.rebalance_started_ms == ctx.now_ms:
        ctx.count_load()  # the rebalance that was just triggered is forgotten and may be triggered again
    group.kind = GroupKind.CLASSIC
    group.confirmed = False
    group.stored_generation, group.stored_protocol_name = group.generation, group.protocol_name
    group.stored_leader = group.leader
    group.departed = {}
    for member in group.members.values():
        member.stored = True
    ctx.clear_checked_fingerprints()


def expect_unseen(ctx: Context) -> None:
    """Set until when an unseen static member may exist: for the longest allowed session from now.

    A dynamic one is removed as soon as others have joined again.
    """
    if ctx.group.awaits_proof:
        ctx.group.unseen_until_ms = ctx.now_ms + ctx.config.group_max_session_timeout_ms


def is_unseen_member(group: Group, event: Event) -> bool:
    """Return whether a request comes from a member of a taken-over group that joined before the group was seen."""
    return (
        group.taken_over
        and event.generation_id == group.generation
        and event.member_id not in group.members
        and event.member_id not in group.pending
    )
