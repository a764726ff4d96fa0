"""Whether an expired member has come back: the one place for that rule.

A dynamic or static member comes back under a new id, `<client id or instance id>-<uuid>`; a worker that only sends
heartbeats comes back under the same one. Completed rebalances name who is new in their generation.
"""

from __future__ import annotations

from typing import Final

from heartwheel.wire.verdicts import ExpirationRow, TriggerRow

_UUID_CHARS: Final = 36
_COMPLETED: Final = "rebalance_completed"


def came_back(expiration: ExpirationRow, trigger: TriggerRow) -> bool:
    """Tell whether a rebalance has an expired member in it again.

    Several members with one client id look alike from outside: for them this tells that one of them came back, and a
    caller that counts returns lets each joined id stand for one of them (`heartwheel.live.group_book`).

    Args:
        expiration: who was expired.
        trigger: a row of the triggers topic.
    """
    return (
        trigger.type == _COMPLETED
        and trigger.group_id == expiration.group_id
        and trigger.time_ms >= expiration.deadline_ms
        and any(is_return(expiration, member_id) for member_id in trigger.joined)
    )


def is_return(expiration: ExpirationRow, joined_id: str) -> bool:
    """Tell whether a member that joined is, by its id, the one that was expired.

    Args:
        expiration: who was expired.
        joined_id: the id under which somebody joined the same group later.
    """
    if joined_id == expiration.member_id:
        return True
    named = expiration.group_instance_id or expiration.client_id
    return bool(named) and joined_id[:-_UUID_CHARS] == f"{named}-"
