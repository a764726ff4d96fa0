"""Groups that were met in the middle of their life, and how they are caught up with.

A job that starts today sees only what its groups do from now on. It must neither report a storm of things that happened
long ago nor miss what happens next, so what a member says about itself is believed where Kafka, which has seen
everything, would refuse it.
"""

from __future__ import annotations

from heartwheel.coordinator import messages
from heartwheel.coordinator.context import Context
from heartwheel.coordinator.model import Group, GroupKind, GroupState, Member
from heartwheel.wire.events import Event
from heartwheel.wire.verdicts import Cause, Kind


def take_over(ctx: Context, event: Event) -> Member:
    """Add a member that must have joined before it was first seen, in silence, with a whole session from now.

    Its session is unknown if the source knows the coordinator's answers: then the settings would be a guess. A static
    member's new id takes the place of its old one. A group that seemed Empty is Stable.
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
        group.leader = leader  # who leads was not seen
    if group.kind is GroupKind.CLASSIC:
        _record(group, member)
    member.last_seen_ms = ctx.now_ms
    ctx.reset_session(member)
    if group.state is GroupState.EMPTY:
        ctx.transition_to(GroupState.STABLE)
    return member


def _record(group: Group, member: Member) -> None:
    """Count a member as one of the group's record, which knows a member id and an instance id only once."""
    member.stored = True
    for other in list(group.departed.values()):
        same_instance = other.group_instance_id is not None and other.group_instance_id == member.group_instance_id
        if same_instance or other.member_id == member.member_id:
            del group.departed[other.member_id]


def remember_heartbeat(ctx: Context, event: Event, member: Member, fingerprint: int) -> None:
    """Note a heartbeat that may be repeated unseen, of a member whose joins are not seen.

    Such a member may turn out to be static only by what it says; one that says a strange instance id may be fenced by
    the owner of that id later, so its heartbeats are looked at each time.
    """
    instance = event.group_instance_id
    if instance is not None and member.group_instance_id is None:
        ctx.roster.make_static(member, instance)
    is_plain = instance in (None, member.group_instance_id) and member.session_timeout_ms > 0
    member.fingerprint = fingerprint if is_plain else 0
    member.fingerprint_generation = event.generation_id


def is_behind(group: Group, event: Event, renewed_ms: int = -1) -> bool:
    """Return whether a request proves that a rebalance was missed: it knows a later generation.

    Once a classic group was seen to agree with its members, such a request is a mistake, as it is for Kafka; but an
    outage may have hidden a rebalance, as long as no member has agreed since.

    Args:
        group: the group.
        event: the request.
        renewed_ms: end of the newest outage that has renewed the group's sessions, epoch ms; -1 if there was none.
    """
    if event.generation_id <= group.generation:
        return False
    if group.kind is not GroupKind.CLASSIC or not group.confirmed:
        return True
    return renewed_ms >= 0 and not any(_agrees(member, renewed_ms) for member in group.members.values())


def _agrees(member: Member, since_ms: int) -> bool:
    """Tell whether a member has spoken of the group's generation since a moment.

    Who waits in a phase of a rebalance has only joined. By what a member is, not by what it has sent: a heartbeat that
    no rule looks at counts as any other (`test_p1_a_rebalance_in_what_a_feed_missed_expires_nobody`).
    """
    return member.last_seen_ms > since_ms and not (member.awaiting_join or member.pending_sync)


def catch_up(ctx: Context, generation: int, *, in_silence: bool = False) -> None:
    """Move a group to the generation that a member speaks of; from then on it is a loaded group.

    Members stay as they are. Those that were parked in a join phase, which must be over, get a whole session. A group
    goes back only by a request that its coordinator accepted.
    """
    group = ctx.group
    if group.kind is GroupKind.CLASSIC:
        _end_join_phase(ctx)
    if generation <= group.generation:
        ctx.count_load()  # what was said of the later generations may be said again
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
        ctx.say(
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
    """Hold a group to the classic protocol from its first join on.

    Members that were there stand as Stable members at the present generation, as after a coordinator's load.
    """
    group = ctx.group
    if group.kind is GroupKind.CLASSIC:
        return
    group.taken_over = group.kind is GroupKind.LOADED
    group.awaits_proof = group.taken_over and event.error_code is not None
    expect_unseen(ctx)
    if group.triggered_generation == group.generation and group.rebalance_started_ms == ctx.now_ms:
        ctx.count_load()  # the rebalance that it was just asked for is forgotten, and may begin again
    group.kind = GroupKind.CLASSIC
    group.confirmed = False
    group.stored_generation, group.stored_protocol_name = group.generation, group.protocol_name
    group.stored_leader = group.leader
    group.departed = {}
    for member in group.members.values():
        member.stored = True
    ctx.clear_checked_fingerprints()


def expect_unseen(ctx: Context) -> None:
    """Note how long a static member of which nothing was heard may be there: a session from now, the longest one.

    A dynamic one is out of the group as soon as others have joined again.
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
