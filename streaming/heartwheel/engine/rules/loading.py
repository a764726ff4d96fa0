"""A coordinator that unloads and loads a group: `GroupMetadataManager.onUnloaded`, `replay` and `onLoaded`.

Timers are never stored. A coordinator reads the group's last record: the members at the last assignment, at the return
of the last static member, or at the moment the group was empty. Everything else is forgotten.
"""

from __future__ import annotations

from heartwheel.engine.rules import messages
from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.classic.rebalance import prepare_rebalance
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.java_map import grown_table_size, in_map_order
from heartwheel.engine.rules.model import GroupKind, GroupState, Member
from heartwheel.engine.rules.takeover import expect_unseen
from heartwheel.wire.verdicts import Cause


def unload(ctx: Context) -> Answer:
    """Stop every timer and forget parked requests. No request counts until the load."""
    group = ctx.group
    group.unloaded = True
    ctx.stop_group_timers()
    for member in group.all_members():
        ctx.timers.disarm(member)
        member.fingerprint = 0
    return Answer.NONE


def load(ctx: Context) -> Answer:
    """Give every member a whole session; pending members and an unfinished rebalance are forgotten."""
    group = ctx.group
    group.unloaded = False
    if group.kind is GroupKind.NEW:
        return Answer.NONE
    ctx.count_load()
    ctx.stop_group_timers()
    group.pending = {}
    expect_unseen(ctx)
    if group.kind is GroupKind.CLASSIC:
        _replay_record(ctx)
    for member in group.members.values():
        ctx.reset_session(member)
        member.fingerprint = 0
    if group.kind is GroupKind.CLASSIC and len(group.members) > ctx.config.group_max_size:
        reason = messages.over_capacity(group.group_id, len(group.members), ctx.config.group_max_size)
        prepare_rebalance(ctx, reason, Cause.OVER_CAPACITY)
    return Answer.NONE


def _replay_record(ctx: Context) -> None:
    """Restore the group from its last record."""
    group = ctx.group
    recorded = {i: m for i, m in [*group.members.items(), *group.departed.items()] if m.stored}
    by_age = sorted(recorded, key=lambda member_id: recorded[member_id].seq)
    # The record lists the members in the iteration order of Java's map. They are put into a new map in that order.
    group.members = {}
    for member_id in in_map_order(by_age, group.table_size):
        group.members[member_id] = _as_recorded(recorded[member_id], ctx.roster.new_seq(), group.stored_protocol_name)
    group.table_size = group.armed_table_size = grown_table_size(len(group.members), 0)
    group.departed = {}
    group.orphaned_syncs = ()
    group.generation = group.stored_generation
    group.leader = group.stored_leader
    group.protocol_name = group.stored_protocol_name
    group.new_member_added = False
    group.previous_state = GroupState.DEAD
    group.state = GroupState.STABLE if group.members else GroupState.EMPTY
    ctx.reindex()


def _as_recorded(member: Member, seq: int, protocol_name: str | None) -> Member:
    """Return a member as its record has it: it offers the one protocol that was selected, and has no parked request."""
    return Member(
        member_id=member.member_id,
        seq=seq,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=tuple(p for p in member.protocols if p.name == protocol_name),
        last_seen_ms=member.last_seen_ms,
        stored=True,
    )
