"""Whether a recorded answer fits the state in which it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from heartwheel.engine.replay.recorded import Recorded
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group, GroupState, Member
from heartwheel.wire.events import Event, EventType, Leaving

QUICK_MS: Final = 25
"""A busy broker may take this long for an answer that it gives at once, ms."""


def explains(machine: GroupMachine, recorded: Recorded, near: Sequence[Recorded] = ()) -> bool:
    """Return whether a request, decided now, could have got the answer that was recorded.

    Args:
        machine: the group as it would be at that moment; it is not changed.
        recorded: the request and its answer.
        near: requests that arrived at about the same time and were not decided yet; those that would end the join phase
            differently may have come first.
    """
    event, error = recorded.event, recorded.evidence.error
    if error is None or event.type in (EventType.LOAD, EventType.UNLOAD):
        return True
    if event.type is EventType.JOIN:
        return _explains_join(machine, recorded, near)
    if event.type is EventType.LEAVE:
        known = [_is_known(machine.group, leaver) for leaver in event.leaving or (event,)]
        return any(known) if error == "NONE" else not all(known)
    return _explains_request(machine.group, recorded, near)


def _explains_request(group: Group, recorded: Recorded, near: Sequence[Recorded]) -> bool:
    event, error = recorded.event, recorded.evidence.error
    if event.member_id not in group.members or event.generation_id != group.generation:
        return False
    if event.type is EventType.COMMIT:
        return group.state is not GroupState.COMPLETING_REBALANCE
    if event.type is not EventType.SYNC:
        return True
    if error == "NONE" or recorded.was_parked:
        return group.state is not GroupState.PREPARING_REBALANCE
    return group.state is GroupState.PREPARING_REBALANCE or not any(_starts_join_phase(group, r) for r in near)


def _starts_join_phase(group: Group, recorded: Recorded) -> bool:
    """Return whether a request is a join that would make members that wait for the assignment join again."""
    ahead = recorded.evidence.response_generation_id == group.generation + 1
    return group.state is GroupState.COMPLETING_REBALANCE and ahead and _is_parked(group, recorded.event)


def _was_sent_back(group: Group, recorded: Recorded) -> bool:
    """Return whether a request is a sync of this generation that waited for the assignment in vain."""
    event, refused = recorded.event, recorded.evidence.error == "REBALANCE_IN_PROGRESS"
    sync = event.type is EventType.SYNC and event.generation_id == group.generation
    return sync and refused and recorded.was_parked


def _is_known(group: Group, event: Event | Leaving) -> bool:
    return not event.member_id or event.member_id in group.members or event.member_id in group.pending


def _explains_join(machine: GroupMachine, recorded: Recorded, near: Sequence[Recorded]) -> bool:
    group, event, evidence = machine.group, recorded.event, recorded.evidence
    if evidence.error == "MEMBER_ID_REQUIRED":
        return not any(other is not recorded and _ends_join_phase(group, other) for other in near)
    if evidence.error == "GROUP_MAX_SIZE_REACHED":
        return not machine.has_room_for(event.member_id)
    if evidence.error == "NONE":
        return _explains_accepted_join(machine, recorded, near)
    # A parked join ends with an error only after a while; a quick error shows that the member was gone already.
    return _is_known(group, event) == (not event.member_id or recorded.wait_ms > QUICK_MS)


def _explains_accepted_join(machine: GroupMachine, recorded: Recorded, near: Sequence[Recorded]) -> bool:
    group, event = machine.group, recorded.event
    if not _is_known(group, event) or not machine.has_room_for(event.member_id):
        return False
    if group.leader is None and not recorded.came_to_lead and any(other.came_to_lead for other in near):
        return False  # the first to join leads
    if _starts_join_phase(group, recorded) and any(_was_sent_back(group, other) for other in near):
        return False
    ahead = (recorded.evidence.response_generation_id or 0) - group.generation
    if not _is_parked(group, event):
        return ahead == 0
    return ahead == 1 and _fits_its_wait(group, recorded, near)


def _fits_its_wait(group: Group, recorded: Recorded, near: Sequence[Recorded]) -> bool:
    """Return whether the time that a join was parked fits its effect: whether it would end the join phase."""
    if not _would_end_join_phase(group, recorded.event):
        return True
    same = recorded.evidence.response_generation_id
    others = (r for r in near if r is not recorded and r.evidence.response_generation_id == same)
    return recorded.was_prompt and not any(others)


def _ends_join_phase(group: Group, recorded: Recorded) -> bool:
    """Return whether a request is a join that ended the join phase, as its prompt answer shows."""
    evidence = recorded.evidence
    if recorded.event.type is not EventType.JOIN or evidence.error != "NONE" or not recorded.was_prompt:
        return False
    return evidence.response_generation_id == group.generation + 1 and _would_end_join_phase(group, recorded.event)


def _is_parked(group: Group, event: Event) -> bool:
    """Return whether a join waits for a join phase, the running one or the one that it starts."""
    member = group.members.get(event.member_id)
    if member is None:
        return not (_returns(group, event) and group.state is GroupState.STABLE)
    if group.state is GroupState.STABLE and group.leader == member.member_id:
        return True
    return group.state is GroupState.PREPARING_REBALANCE or member.protocols != event.protocols


def _returns(group: Group, event: Event) -> bool:
    instance = event.group_instance_id
    return instance is not None and any(m.group_instance_id == instance for m in group.members.values())


def _would_end_join_phase(group: Group, event: Event) -> bool:
    if group.state is not GroupState.PREPARING_REBALANCE or group.previous_state is GroupState.EMPTY:
        return False
    if any(member_id != event.member_id for member_id in group.pending):
        return False
    absent = [m for m in group.members.values() if not m.awaiting_join and not _is_sender(m, event)]
    return not absent


def _is_sender(member: Member, event: Event) -> bool:
    instance = event.group_instance_id
    return member.member_id == event.member_id or (instance is not None and member.group_instance_id == instance)
