"""What rows of the triggers topic say in words, the same on the page, in `top` and in the demo's terminal."""

from __future__ import annotations

from typing import Final

from heartwheel.wire.verdicts import Cause, TriggerRow

_EMPTY: Final = "group_empty"
_OF_PRESENCE: Final = {Cause.MEMBER_JOINED.value: "member arrived", Cause.NO_MEMBERS.value: "last member gone"}


def cause_words(row: TriggerRow) -> str:
    """Return why a row was written, in words.

    Members of a presence group arrive and go; only those of Kafka's protocol join a rebalance.

    Args:
        row: of the triggers topic.
    """
    if row.type == _EMPTY and row.is_rebalance:
        return "no members left"
    cause = row.cause or "cause not known"
    spaced = cause.replace("_", " ")
    return spaced if row.is_rebalance else _OF_PRESENCE.get(cause, spaced)
