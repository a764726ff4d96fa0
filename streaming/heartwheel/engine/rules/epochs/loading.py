"""A coordinator that loads and unloads a group.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.model import TimerName
from heartwheel.engine.rules.epochs.reconcile import schedule_rebalance_timeout


def load(ctx: EpochContext) -> Answer:
    """Restart the group from what was stored: `onLoaded`.

    Every member gets a whole session, static members that are away included. For classic members it is the group's
    session timeout and not their own. A member that still has to give partitions back gets a whole rebalance timeout.
    Join and sync timers are not stored.
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
    """Stop every timer, because the coordinator is elsewhere from now on: `onUnloaded`."""
    ctx.group.unloaded = True
    ctx.clear_fingerprints()
    for member in ctx.group.members.values():
        member.timers.clear()
    return Answer.NONE
