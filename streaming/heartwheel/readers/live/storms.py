"""Storms: groups that rebalance again and again, with the first cause and the members that keep expiring."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from heartwheel.readers.live.expiration import Expiration
from heartwheel.wire.verdict_rows import TriggerRow
from heartwheel.wire.verdicts import EPOCH_KINDS

OFFENDERS_MAX: Final = 5
"""Most repeat offenders that a storm names."""


class StormRule(NamedTuple):
    """The definition of a storm: so many rebalances of a group within so long, ms."""

    rebalances: int = 5
    window_ms: int = 300_000


class Offender(msgspec.Struct, frozen=True, kw_only=True):
    """A member that was expired more than once: its name, or that of its instance or client, and how often."""

    member_id: str
    count: int


class Storm(msgspec.Struct, frozen=True, kw_only=True):
    """A storm of rebalances.

    Args:
        count: how many began in the window.
        window_ms: how long the window is, ms.
        first_cause: the cause of the first of them.
        offenders: the members that were expired more than once, the worst first.
    """

    count: int
    window_ms: int
    first_cause: str
    offenders: list[Offender]


def storm_of(
    triggers: Sequence[TriggerRow], expirations: Sequence[Expiration], rule: StormRule, *, now_ms: int
) -> Storm | None:
    """Return the storm that a group is in, if it is; a presence group never is, because it has no rebalances.

    Args:
        triggers: rows of the group, the oldest first.
        expirations: of the group, the oldest first.
    """
    from_ms = now_ms - rule.window_ms
    begun = [
        row for row in triggers if row.type == "rebalance_triggered" and row.is_rebalance and row.time_ms >= from_ms
    ]
    if len(begun) < rule.rebalances:
        return None
    return Storm(
        count=len(begun),
        window_ms=rule.window_ms,
        first_cause=begun[0].cause or "unknown",
        offenders=offenders_of([each for each in expirations if each.deadline_ms >= from_ms]),
    )


def offenders_of(expirations: Sequence[Expiration]) -> list[Offender]:
    """Return the members that were expired more than once, the worst first.

    A dynamic member has a new id after each return: it is identified by its instance id, or by its client's id and
    host.
    """
    counts = Counter(name_of(each) for each in expirations)
    return [Offender(member_id=name, count=n) for name, n in counts.most_common(OFFENDERS_MAX) if n > 1]


def name_of(each: Expiration) -> str:
    """Return the name of a member that stays the same through all its returns, for people."""
    if each.group_instance_id:
        return each.group_instance_id
    has_new_ids = each.group_kind in EPOCH_KINDS or each.member_id.startswith(f"{each.client_id}-")
    if each.client_id and each.client_host and has_new_ids:
        return f"{each.client_id} at {each.client_host}"
    return each.member_id
