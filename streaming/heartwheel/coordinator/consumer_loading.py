"""A coordinator that comes and goes.

Read beside `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.consumer_context import EpochContext
from heartwheel.coordinator.consumer_model import TimerName
from heartwheel.coordinator.consumer_reconcile import schedule_rebalance_timeout


def load(ctx: EpochContext) -> Answer:
    """Begin anew with what was stored: `onLoaded`.

    Everybody gets a whole session, static members that are away too and classic members the group's, not their own;
    who owes partitions gets a whole rebalance timeout. Join and sync timers are not stored.
    """
    group = ctx.group
    group.unloaded = False
    ctx.clear_fingerprints()
    for member in group.members.values():
        member.timers.clear()
        length_ms = ctx.config.session_timeout_ms(group.group_id, group.type, ctx.now_ms)
        ctx.arm(member, TimerName.SESSION, length_ms)
        if member.unrevoked:
            schedule_rebalance_timeout(ctx, member)
    return Answer.NONE


def unload(ctx: EpochContext) -> Answer:
    """Stop every timer, as the coordinator is elsewhere from now on: `onUnloaded`."""
    ctx.group.unloaded = True
    ctx.clear_fingerprints()
    for member in ctx.group.members.values():
        member.timers.clear()
    return Answer.NONE
