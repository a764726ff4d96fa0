"""Heartbeat and OffsetCommit of a classic group: what resets a session and what does not.

Read it next to `GroupMetadataManager` and `OffsetMetadataManager`.
"""

from __future__ import annotations

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.model import GroupState
from heartwheel.wire.events import ACCEPTED, UNCHECKED_GENERATION, Event


def heartbeat(ctx: Context, event: Event, fingerprint: int) -> Answer:
    """Handle a Heartbeat: `classicGroupHeartbeatToClassicGroup`.

    It resets the session in every state that has members. While members join, the answer tells the sender to join too.
    """
    refusal = _validate(ctx, event)
    if refusal is not Answer.NONE:
        return refusal
    _reset(ctx, event)
    member = ctx.group.members[event.member_id]
    preparing = ctx.group.state is GroupState.PREPARING_REBALANCE
    # From here on the same heartbeat only moves the deadline, unless the coordinator accepted it though members join:
    # if it comes again later, it shows that no join phase runs (`heartwheel.engine.rules.proof`).
    is_plain = member.session_timeout_ms and not (preparing and event.error_code == ACCEPTED)
    member.fingerprint = fingerprint if is_plain else 0
    member.fingerprint_generation = event.generation_id
    return Answer.REBALANCE_IN_PROGRESS if preparing else Answer.NONE


def commit(ctx: Context, event: Event) -> Answer:
    """Handle an OffsetCommit: `validateOffsetCommit`, then `commitOffset` resets the session (KAFKA-3470)."""
    group = ctx.group
    if event.generation_id == UNCHECKED_GENERATION and group.state is GroupState.EMPTY:
        return Answer.NONE  # a consumer that only stores its offsets here
    refusal = _validate(ctx, event)
    if refusal is not Answer.NONE:
        return refusal
    if group.state is GroupState.COMPLETING_REBALANCE:
        return Answer.REBALANCE_IN_PROGRESS
    _reset(ctx, event)
    return Answer.NONE


def _validate(ctx: Context, event: Event) -> Answer:
    """Return the refusal by state, member or generation, if any: `validateClassicGroupHeartbeat`."""
    group = ctx.group
    if group.state is GroupState.EMPTY:
        return Answer.UNKNOWN_MEMBER_ID
    refusal = ctx.roster.validate_member(event.member_id, event.group_instance_id)
    if refusal is Answer.NONE and event.generation_id not in (UNCHECKED_GENERATION, group.generation):
        return Answer.ILLEGAL_GENERATION
    return refusal


def _reset(ctx: Context, event: Event) -> None:
    member = ctx.group.members[event.member_id]
    member.last_seen_ms = ctx.now_ms
    ctx.reset_session(member)
