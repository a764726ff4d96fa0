"""What an audit knows, begun anew or read from a snapshot."""

from __future__ import annotations

import msgspec

from heartwheel.audit.config import AuditConfig
from heartwheel.audit.ledger import Ledger
from heartwheel.audit.pace import Pace
from heartwheel.audit.recent import Recent
from heartwheel.audit.rules.model import Group
from heartwheel.audit.state import FORMAT, State
from heartwheel.errors import HeartwheelError

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(State).decode


class AuditStateError(HeartwheelError):
    """Tell that a state cannot be carried on."""


def new_state(config: AuditConfig) -> State:
    """Return what an audit knows before it has read anything."""
    most = config.remembered_max
    return State(
        config=config,
        ledger=Ledger(config.examples_max),
        pace=Pace(config.late_ms_max),
        confirmed=Recent(most),
        silences=Recent(most),
        excused=Recent(most),
        seen=Recent(2 * most),
        settled_rejects=Recent(most),
    )


def write_snapshot(state: State) -> bytes:
    """Write down all that an audit knows."""
    return _encode(state)


def read_snapshot(snapshot: bytes, config: AuditConfig) -> State:
    """Return what was written down.

    Raises:
        AuditStateError: it cannot be read, or is that of another version or configuration.
    """
    try:
        state = _decode(snapshot)
    except msgspec.DecodeError as error:
        hint = "start again without it: the whole log is read then"
        raise AuditStateError(f"the audit's state cannot be read: {error}", hint=hint) from None
    if state.format != FORMAT:
        hint = "start again without it: the whole log is read then"
        raise AuditStateError(f"the audit's state has format {state.format}, this release writes {FORMAT}", hint=hint)
    if state.config != config:
        changed = [
            name for name in AuditConfig.__struct_fields__ if getattr(state.config, name) != getattr(config, name)
        ]
        hint = "set it as before, or start again without the state: the whole log is read then"
        raise AuditStateError(f"the audit's state was made with another {', '.join(changed)}", hint=hint)
    for held in state.groups.values():
        _rejoin(held.group)
    return state


def _rejoin(group: Group) -> None:
    """Make the record's members those of the group again, which those that are alike were before they were written."""
    recorded = group.record.members
    for member_id, member in group.members.items():
        if recorded.get(member_id) == member:
            recorded[member_id] = member
