"""A classic group becomes a consumer group when a member of the new protocol joins, and back when the last one leaves.

Read it next to `GroupMetadataManager`: every function names the method it mirrors.
"""

from __future__ import annotations

from collections.abc import Callable

from heartwheel.engine.rules.classic.rebalance import prepare_rebalance
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.context import Context
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.context import EpochContext
from heartwheel.engine.rules.epochs.messages import downgrade
from heartwheel.engine.rules.epochs.model import ClassicProtocol, EpochGroup, EpochMember, TimerName
from heartwheel.engine.rules.model import Group, GroupKind, GroupState, Member
from heartwheel.wire.events import CONSUMER_PROTOCOL
from heartwheel.wire.verdicts import Cause, Kind, Verdict


def validate_online_upgrade(group: Group, config: EpochConfig) -> bool:
    """Return whether a classic group may become a consumer group: `validateOnlineUpgrade`."""
    return config.upgrade and group.protocol_type in (None, CONSUMER_PROTOCOL)


def convert_to_consumer_group(
    group: Group, config: EpochConfig, now_ms: int, emit: Callable[[Verdict], None]
) -> EpochGroup:
    """Return a classic group as a consumer group: `convertToConsumerGroup`, `ConsumerGroup.fromClassicGroup`.

    Every member gets a whole session of its own length, and the generation becomes its epoch. An Empty group leaves
    nothing, and the new one begins with the first epoch.
    """
    if not group.members:
        return EpochGroup(group.group_id, last_event_ms=now_ms)
    fresh = _epoch_group(group, group.generation, now_ms)
    ctx = EpochContext(fresh, config, emit)
    for upgraded, member in zip(fresh.members.values(), group.members.values(), strict=True):
        if member.session_timeout_ms:
            ctx.arm(upgraded, TimerName.SESSION, member.session_timeout_ms)
    reason = f"Upgrade group {group.group_id} from classic to consumer."
    ctx.report(Kind.GROUP_UPGRADED, reason, Cause.PROTOCOL_CHANGED, epoch=fresh.epoch)
    return fresh


def recognize_consumer_group(group: Group, config: EpochConfig, epoch: int, now_ms: int) -> EpochGroup:
    """Return a group, seen only through its classic members so far, as the consumer group that it always was.

    The group itself has not changed, so no verdict is emitted, and sessions run on. Each member has an epoch of its
    own, which its next request shows. A member that seemed parked in a join phase, which did not exist, gets a whole
    session.

    Args:
        group: the group as the requests of its classic members showed it.
        epoch: the one that a heartbeat of the new protocol shows.
        now_ms: when that arrived, epoch ms.
    """
    fresh = _epoch_group(group, max(group.generation, epoch), now_ms)
    fresh.taken_over = True
    ctx = EpochContext(fresh, config, lambda _: None)
    for recognized, member in zip(fresh.members.values(), group.members.values(), strict=True):
        if not member.session_timeout_ms:
            continue
        ctx.arm(recognized, TimerName.SESSION, member.session_timeout_ms)
        if group.kind is GroupKind.LOADED:
            ctx.postpone(recognized, TimerName.SESSION, member.deadline_ms)
    return fresh


def _epoch_group(group: Group, epoch: int, now_ms: int) -> EpochGroup:
    """Return a group as an epoch group without timers.

    In a group first seen in mid-life, a member's epoch is only assumed. If its join was not seen, its rebalance timeout
    is unknown too.
    """
    is_seen = group.kind is GroupKind.CLASSIC and group.confirmed
    fresh = EpochGroup(
        group.group_id,
        epoch=epoch,
        target_epoch=epoch,
        last_event_ms=now_ms,
        taken_over=not is_seen,
        members={
            member.member_id: EpochMember(
                member_id=member.member_id,
                seq=number,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                epoch=group.generation,
                previous_epoch=group.generation if is_seen else 0,
                epoch_is_known=is_seen,
                rebalance_timeout_ms=(member.rebalance_timeout_ms or -1) if member.protocols else -1,
                classic=ClassicProtocol(member.session_timeout_ms, member.protocols),
                last_seen_ms=member.last_seen_ms,
            )
            for number, member in enumerate(group.members.values())
        },
    )
    fresh.next_seq = len(fresh.members)
    return fresh


def convert_to_classic_group(
    group: EpochGroup, config: CoordinatorConfig, *, rebalance: bool, emit: Callable[[Verdict], None]
) -> Group:
    """Return a consumer group as a classic group: `convertToClassicGroup`, `ClassicGroup.fromConsumerGroup`.

    Args:
        group: the consumer group, without the member that left.
        rebalance: whether a member left, so that the others join again. A static member that came back with the classic
            protocol needs no rebalance.
    """
    classic = Group(
        group.group_id,
        kind=GroupKind.CLASSIC,
        state=GroupState.STABLE,
        previous_state=GroupState.EMPTY,
        generation=group.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        last_event_ms=group.last_event_ms,
        taken_over=group.taken_over,
    )
    ctx = Context(classic, config, emit)
    for member in group.members.values():
        joined_with = member.classic or ClassicProtocol(config.default_session_timeout_ms)
        rebalance_ms = member.rebalance_timeout_ms
        assumed_ms = config.default_rebalance_timeout_ms if joined_with.session_timeout_ms else 0
        added = Member(
            member_id=member.member_id,
            seq=ctx.roster.new_seq(),
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            session_timeout_ms=joined_with.session_timeout_ms,
            rebalance_timeout_ms=assumed_ms if rebalance_ms < 0 else rebalance_ms,
            protocols=joined_with.protocols,
            last_seen_ms=member.last_seen_ms,
            stored=True,
        )
        ctx.roster.add(added, CONSUMER_PROTOCOL, awaiting_join=False)
        ctx.reset_session(added)
    classic.protocol_name = ctx.roster.select_protocol()
    # The conversion writes the group's record (`createClassicGroupRecords`).
    classic.armed_table_size = classic.table_size
    classic.stored_generation = classic.generation
    classic.stored_leader, classic.stored_protocol_name = classic.leader, classic.protocol_name
    ctx.report(Kind.GROUP_DOWNGRADED, downgrade(group.group_id), Cause.PROTOCOL_CHANGED)
    if rebalance:
        prepare_rebalance(ctx, downgrade(group.group_id), Cause.PROTOCOL_CHANGED)
    return classic
