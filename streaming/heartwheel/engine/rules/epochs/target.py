"""When the epoch of a group and of its target assignment are bumped.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.engine.rules.epochs import messages
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.model import EpochMember, GroupType, StreamsMetadata
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.verdicts import Cause, Kind

RESOLVE_MS: Final = 25
"""How long a broker takes to look up the topics of a new pattern, ms. 10 to 50 were measured; no request shows it."""

CATCH_UP_MAX: Final = 100
"""The most epochs in one answer that are reported one by one, as a broker does. More are reported as one, so that no
record, whatever it claims, makes many rows."""


_METADATA: Final = StreamsMetadata.__struct_fields__


def bump_epoch(
    ctx: EpochContext,
    cause: Cause,
    *,
    silently: bool = False,
    joined: tuple[str, ...] = (),
    removed: tuple[str, ...] = (),
    by: str = "",
) -> None:
    """Bump the group's epoch and emit its line: `newConsumerGroupEpochRecord`.

    Args:
        silently: whether to leave out that line, as share and streams groups do when they lose a member.
        joined: the members that joined by it.
        removed: the members that left.
        by: the member whose request caused it, which the line of a streams group names.
    """
    ctx.group.epoch += 1
    if not ctx.group.target_is_current:
        ctx.clear_fingerprints()
    kind = Kind.EPOCH_MOVED if silently else Kind.EPOCH_BUMPED
    ctx.report(kind, messages.bumped(ctx.group, by), cause, epoch=ctx.group.epoch, joined=joined, removed=removed)


def catch_up_with(ctx: EpochContext, epoch: int, *, by: str = "") -> None:
    """Bump the epoch to the one in an answer: the topics have changed, or a share group's state is ready."""
    if epoch - ctx.group.epoch > CATCH_UP_MAX:
        ctx.group.epoch = epoch - 1
    while ctx.group.epoch < epoch:
        bump_epoch(ctx, Cause.METADATA_CHANGED, by=by)


def update_subscription(ctx: EpochContext, member: EpochMember, beat: GroupHeartbeat, *, is_new: bool) -> None:
    """Bump the epoch if the member's subscription changes: `hasMemberSubscriptionChanged`.

    A pattern that is new in the group bumps it when its topics have been looked up, not now
    (`maybeUpdateRegularExpressions`, `handleRegularExpressionsResult`). A new member whose source does not know its
    subscription is assumed to have one.
    """
    group = ctx.group
    had_none = not member.topics and not member.regex
    cause = Cause.MEMBER_JOINED if had_none else Cause.MEMBER_UPDATED
    topics = member.topics if beat.subscribed_topics is None else tuple(sorted(set(beat.subscribed_topics)))
    regex = member.regex if beat.subscribed_regex is None else beat.subscribed_regex
    is_unknown = beat.subscribed_topics is None and beat.subscribed_regex is None
    changed = topics != member.topics or (is_new and is_unknown)
    if regex != member.regex:
        others = (other for other in group.members.values() if other.member_id != member.member_id)
        if not regex or (regex not in group.resolving and any(other.regex == regex for other in others)):
            changed = True
        else:
            group.resolving.setdefault(regex, ctx.now_ms + RESOLVE_MS)
    member.topics, member.regex = topics, regex
    if changed:
        bump_epoch(ctx, cause, joined=(member.member_id,) if is_new else (), by=member.member_id)


def update_metadata(member: EpochMember, beat: GroupHeartbeat) -> bool:
    """Update what a streams member said of itself; return whether that changed: `hasStreamsMemberMetadataChanged`.

    A change of the client or of the rebalance timeout counts for dynamic members only
    (`hasEpochRelevantMemberConfigChanged`). If it is not known what the member said before, nothing has changed.
    """
    if beat.type is not HeartbeatType.STREAMS:
        return False
    known = member.metadata
    given = {name: value for name in _METADATA if (value := getattr(beat, name)) is not None}
    if given:
        member.metadata = msgspec.structs.replace(known or StreamsMetadata(), **given)
    if known is None:
        return False
    if member.group_instance_id is None:
        given |= {name: getattr(beat, name) or getattr(member, name) for name in ("client_id", "client_host")}
        timeout_ms = beat.rebalance_timeout_ms
        given["rebalance_timeout_ms"] = member.rebalance_timeout_ms if (timeout_ms or -1) < 0 else timeout_ms
    return any(value != getattr(known if name in _METADATA else member, name) for name, value in given.items())


def end_resolving(ctx: EpochContext, pattern: str) -> None:
    """Bump the epoch when a pattern's topics are known: `handleRegularExpressionsResult`."""
    del ctx.group.resolving[pattern]
    if any(member.regex == pattern for member in ctx.group.members.values()):
        bump_epoch(ctx, Cause.MEMBER_UPDATED)


def maybe_update_target(ctx: EpochContext, answer_epoch: int | None) -> None:
    """Compute a target assignment if the group's epoch has moved: `updateTargetAssignment`.

    This happens at least `group.consumer.assignment.interval.ms` after the last one (KIP-1263). An answer with the
    group's epoch proves that it was computed.
    """
    group = ctx.group
    if group.epoch <= group.target_epoch or group.target_due_ms >= 0:
        return
    interval_ms = ctx.config.assignment_interval_ms(group.group_id, group.type, ctx.now_ms)
    is_shown = answer_epoch is not None and answer_epoch == group.epoch
    if is_shown or group.target_ms < 0 or ctx.now_ms - group.target_ms >= interval_ms:
        compute_target(ctx)


def compute_target(ctx: EpochContext) -> None:
    """Compute the target assignment of the group's epoch."""
    group = ctx.group
    group.target_epoch, group.target_due_ms = group.epoch, -1
    group.target_ms = max(ctx.now_ms, ctx.answered_ms)
    ctx.report(Kind.TARGET_COMPUTED, messages.target_computed(group), epoch=group.target_epoch)


def end_delay(ctx: EpochContext) -> None:
    """Compute the first target of a streams group, unless its members are gone: `computeDelayedTargetAssignment`."""
    if ctx.group.members:
        compute_target(ctx)
    else:
        ctx.group.target_due_ms = -1


def reset_empty_target(ctx: EpochContext) -> None:
    """Set an empty group's target to its epoch, so that its next member has one at once: Kafka 4.4 and newer.

    `consumerGroupFenceMembers` and its twins then store a target of the new epoch, computed at time 0.
    """
    group = ctx.group
    if not group.members and not ctx.config.before_4_4:
        group.target_epoch, group.target_ms = group.epoch, 0


def delay_first_target(ctx: EpochContext) -> None:
    """Delay the first target of a streams group for more members: `group.streams.initial.rebalance.delay.ms`."""
    group = ctx.group
    delay_ms = ctx.config.initial_rebalance_delay_ms(group.group_id, ctx.now_ms)
    is_first = group.type is GroupType.STREAMS and not group.members
    if is_first and delay_ms > 0 and group.target_due_ms < 0:
        group.target_due_ms = ctx.now_ms + delay_ms
