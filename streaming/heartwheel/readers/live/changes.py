"""Rows of the triggers topic in words, the same on the page, in `top` and in the demo's terminal."""

from __future__ import annotations

from typing import Final

from heartwheel.wire.verdict_rows import TriggerRow
from heartwheel.wire.verdicts import EPOCH_KINDS, Cause

_EMPTY: Final = "group_empty"
_OF_TYPE: Final = {
    "group_upgraded": "now a consumer group",
    "group_downgraded": "a classic group again",
}
_OF_EPOCHS: Final = {
    Cause.MEMBER_UPDATED.value: "subscription changed",
    Cause.METADATA_CHANGED.value: "topics changed",
    Cause.MEMBER_REJOINED.value: "member came back",
}
_OF_PRESENCE: Final = {Cause.MEMBER_JOINED.value: "member arrived", Cause.NO_MEMBERS.value: "last member gone"}


def cause_words(row: TriggerRow) -> str:
    """Return why a row was written, in words.

    Members of a presence group arrive and go; only those of Kafka's classic protocol join a rebalance.
    """
    if row.type == _EMPTY and row.is_rebalance:
        return "no members left"
    if row.type in _OF_TYPE:
        return _OF_TYPE[row.type]
    if row.cause == Cause.JOIN_TIMEOUT:
        # The first join phase of a group ends in this way, too, after the initial delay, and then no member was late.
        return "not all members joined in time" if row.removed_count else "the wait for members is over"
    cause = row.cause or "cause not known"
    spaced = cause.replace("_", " ")
    if row.group_kind in EPOCH_KINDS:
        return _OF_EPOCHS.get(cause, spaced)
    return spaced if row.is_rebalance else _OF_PRESENCE.get(cause, spaced)
