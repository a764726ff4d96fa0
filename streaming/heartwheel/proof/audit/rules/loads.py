"""Loads of a group by another coordinator, which reads the group's last record."""

from __future__ import annotations

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.java import walk
from heartwheel.proof.audit.rules.late import wait_for_unheard
from heartwheel.proof.audit.rules.model import (
    CLASSIC,
    DEAD,
    EMPTY,
    NEVER,
    NOBODY,
    STABLE,
    AuditedGroup,
    AuditedMember,
)
from heartwheel.proof.audit.rules.phases import (
    begin,
)


def unload(run: Run) -> None:
    """Stop every timer: no request of this group counts until its coordinator is back."""
    group = run.group
    group.away = True
    run.stop_phase_timers()
    for member in (*group.members.values(), *group.pending.values()):
        member.deadline_ms = NEVER


def load(run: Run) -> None:
    """Reset the group to what its coordinator reads at a load: whole sessions for all, and no running phase."""
    group = run.group
    group.away = False
    if group.kind == NOBODY:
        return
    group.note_read()
    run.stop_phase_timers()
    group.pending = {}
    wait_for_unheard(run)
    if group.kind == CLASSIC:
        _read_record(group)
    for member in group.members.values():
        run.reset(member)
    size, most = len(group.members), run.config.group_max_size
    if group.kind == CLASSIC and size > most:
        words = f"Freshly-loaded group {group.group_id} (size {size}) is over capacity {most}. "
        begin(run, words + "Rebalancing in order to give a chance for consumers to commit offsets", "over_capacity")


def _read_record(group: AuditedGroup) -> None:
    record = group.record
    by_age = sorted(record.members, key=lambda member_id: record.members[member_id].seq)
    order = walk(by_age, group.buckets or 16)
    group.members, group.static, group.buckets = {}, {}, 0
    for member_id in order:
        members.put(group, _as_read(group, record.members[member_id], record.protocol))
    group.walked_buckets = group.buckets
    record.members = dict(group.members)
    group.unsynced = {}
    group.generation, group.leader, group.protocol = record.generation, record.leader, record.protocol
    group.more_came = False
    group.came_from = DEAD
    group.state = STABLE if group.members else EMPTY


def _as_read(group: AuditedGroup, member: AuditedMember, protocol: str | None) -> AuditedMember:
    """Return a member as a load reads it: not waiting for an answer, and offering only the selected protocol."""
    return AuditedMember(
        member_id=member.member_id,
        seq=members.take_seq(group),
        session_ms=member.session_ms,
        rebalance_ms=member.rebalance_ms,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        protocols=tuple(offer for offer in member.protocols if offer[0] == protocol),
        seen_ms=member.seen_ms,
    )
