"""The change of a group from one protocol to the other."""

from __future__ import annotations

import msgspec

from heartwheel.proof.audit.rules import members
from heartwheel.proof.audit.rules.context import Run
from heartwheel.proof.audit.rules.epoch_model import CONSUMER, SESSION, Modern, Person
from heartwheel.proof.audit.rules.epoch_run import EpochRun
from heartwheel.proof.audit.rules.model import (
    CLASSIC,
    EMPTY,
    LOADED,
    NEVER,
    NOBODY,
    STABLE,
    AuditedGroup,
    AuditedMember,
)
from heartwheel.proof.audit.rules.phases import begin, write_record


def upgraded(group: AuditedGroup) -> Modern:
    """Return a consumer group with the members of a classic one; the generation is the epoch of all.

    If the group's generation is not confirmed, its members' epochs are assumed, and so are timeouts without a join.
    """
    sure = group.kind == CLASSIC and group.confirmed
    modern = Modern(epoch=group.generation, target=group.generation, met_late=not sure)
    for member in group.members.values():
        modern.people[member.member_id] = Person(
            member.member_id,
            place=modern.steps,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            epoch=group.generation,
            earlier=group.generation if sure else 0,
            proven=sure,
            patience_ms=(member.rebalance_ms or -1) if member.protocols else -1,
            classic_ms=member.session_ms or -1,
            offers=member.protocols,
            seen_ms=member.seen_ms,
        )
        modern.steps += 1
        if member.instance_id:
            modern.static[member.instance_id] = member.member_id
    return modern


def emit_upgraded(run: EpochRun) -> None:
    """Restart all sessions, each with its own length, and add the verdict of the upgrade."""
    for person in run.modern.people.values():
        if person.classic_ms > 0:
            run.start(person, SESSION, person.classic_ms)
    run.emit_epoch(
        "group_upgraded", f"Upgrade group {run.group.group_id} from classic to consumer.", "protocol_changed"
    )


def continue_upgraded(run: EpochRun, group: AuditedGroup, shown: int) -> None:
    """Continue with a group that was a consumer group all along, although only its classic members had sent requests.

    Args:
        run: the context of the group that `upgraded` made.
        group: the group before; only in a loaded group do all sessions run, and they continue.
        shown: the epoch in a heartbeat of the consumer protocol.
    """
    modern, runs_on = run.modern, group.kind == LOADED
    modern.epoch, modern.target = max(modern.epoch, shown), max(modern.target, shown)
    for person in modern.people.values():
        if person.classic_ms < 0:
            continue
        run.start(person, SESSION, person.classic_ms)
        if runs_on:
            end_ms = group.members[person.member_id].deadline_ms
            person.clocks[SESSION] = msgspec.structs.replace(person.clocks[SESSION], end_ms=end_ms)
            run.file(person)


def downgrade(run: Run, *, rebalances: bool) -> None:
    """Turn a consumer group in which only classic members are left into a classic group."""
    group, modern = run.group, run.group.modern
    assert modern is not None, "a consumer group has it"  # noqa: S101 - how it is called
    become_classic_shell(group, modern.epoch)
    group.met_late = modern.met_late
    for person in modern.people.values():
        assumed = run.config.default_rebalance_timeout_ms if person.classic_ms > 0 else 0
        member = AuditedMember(
            member_id=person.member_id,
            seq=members.take_seq(group),
            session_ms=max(person.classic_ms, 0),
            rebalance_ms=person.patience_ms if person.patience_ms >= 0 else assumed,
            instance_id=person.instance_id,
            client_id=person.client_id,
            client_host=person.client_host,
            protocols=person.offers,
            seen_ms=person.seen_ms,
        )
        group.leader = group.leader or member.member_id
        members.put(group, member)
        run.reset(member)
    group.walked_buckets = group.buckets
    group.protocol = members.vote(group)
    write_record(group)
    words = f"Downgrade group {group.group_id} from consumer to classic."
    run.emit("group_downgraded", words, "protocol_changed")
    if rebalances:
        begin(run, words, "protocol_changed")


def become_classic_shell(group: AuditedGroup, generation: int) -> None:
    """Reset a group to a Stable classic group without members, at a generation."""
    fresh = AuditedGroup(group.group_id)
    for name in AuditedGroup.__struct_fields__:
        if name not in ("verdicts", "now_ms", "renewed_ms"):
            setattr(group, name, getattr(fresh, name))
    group.kind, group.state, group.came_from = CLASSIC, STABLE, EMPTY
    group.generation, group.protocol_type = generation, "consumer"


def takes(group: AuditedGroup, kind: str, *, epoch: int, accepted: bool, policy: str) -> bool:
    """Return whether a group without member epochs may switch to the protocol of a heartbeat.

    Args:
        policy: `coordinator.group_consumer_migration_policy`.
    """
    if epoch < 0:
        return False
    if group.kind == NOBODY:
        return True
    if not group.members:
        return epoch == 0 or accepted
    if kind != CONSUMER or group.kind not in (CLASSIC, LOADED):
        return False
    if epoch != 0 and group.kind != LOADED and not accepted:
        return False
    return accepted or (policy in ("bidirectional", "upgrade") and group.protocol_type in (None, "consumer"))


def forget_classic(group: AuditedGroup) -> None:
    """Reset the fields that only a classic group has."""
    fresh = AuditedGroup(group.group_id)
    kept = ("group_id", "verdicts", "now_ms", "renewed_ms", "modern", "kind")
    for name in AuditedGroup.__struct_fields__:
        if name not in kept:
            setattr(group, name, getattr(fresh, name))
    group.forget_ms = NEVER
