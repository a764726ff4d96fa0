"""The state of an audit: new, or to and from a snapshot."""

from __future__ import annotations

import msgspec

from heartwheel.base.errors import HeartwheelError
from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.ledger import Ledger
from heartwheel.proof.audit.pace import LatenessJudge
from heartwheel.proof.audit.recent import Recent
from heartwheel.proof.audit.rules.model import AuditedGroup
from heartwheel.proof.audit.state import FORMAT, AuditState

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(AuditState).decode


class AuditStateError(HeartwheelError):
    """The audit cannot continue from a state."""


def new_state(config: AuditConfig) -> AuditState:
    """Return the state of an audit that has read nothing."""
    most = config.remembered_max
    return AuditState(
        config=config,
        ledger=Ledger(config.examples_max),
        pace=LatenessJudge(config.late_ms_max),
        confirmed=Recent(most),
        silences=Recent(most),
        excused=Recent(most),
        seen=Recent(2 * most),
        settled_rejects=Recent(most),
    )


def write_snapshot(state: AuditState) -> bytes:
    """Encode a state."""
    return _encode(state)


def read_snapshot(snapshot: bytes, config: AuditConfig) -> AuditState:
    """Decode a state.

    Raises:
        AuditStateError: it cannot be decoded, or has another version or configuration.
    """
    try:
        state = _decode(snapshot)
    except msgspec.DecodeError as error:
        hint = "start again without it, which reads the whole log"
        raise AuditStateError(f"the audit's state cannot be read: {error}", hint=hint) from None
    if state.format != FORMAT:
        hint = "start again without it, which reads the whole log"
        raise AuditStateError(f"the audit's state has format {state.format}, this release writes {FORMAT}", hint=hint)
    if state.config != config:
        changed = [
            name for name in AuditConfig.__struct_fields__ if getattr(state.config, name) != getattr(config, name)
        ]
        hint = "set it as before, or start again without the state, which reads the whole log"
        raise AuditStateError(f"the audit's state was made with another {', '.join(changed)}", hint=hint)
    for held in state.groups.values():
        _rejoin(held.group)
    return state


def _rejoin(group: AuditedGroup) -> None:
    """Make equal members of the group and its record the same object again, as they were before they were encoded."""
    recorded = group.record.members
    for member_id, member in group.members.items():
        if recorded.get(member_id) == member:
            recorded[member_id] = member
