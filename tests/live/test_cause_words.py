"""The words for why a rebalance ended, on rows that the engine's own rules have written."""

from __future__ import annotations

from typing import cast

from coordinator.group_script import STATIC_AB, play
from heartwheel.readers.live.changes import cause_words
from heartwheel.wire.verdict_rows import TriggerRow, row_of
from heartwheel.wire.verdicts import Kind


def _last_completion(script: str) -> TriggerRow:
    ended = [verdict for verdict in play(script).verdicts if verdict.kind is Kind.REBALANCE_COMPLETED]
    return cast("TriggerRow", row_of(ended[-1], shard=0, detected_ms=0))


def test_first_generation_is_not_called_a_timeout() -> None:
    """The first join phase of a group always ends by its timer, the initial delay, and nobody was late."""
    first = _last_completion("A first -> PARKED\n+3000\n! rebalance_started, rebalance_completed")
    assert (first.generation_id, first.cause) == (1, "join_timeout")
    assert cause_words(first) == "the wait for members is over"


def test_members_that_did_not_join_in_time_are_told() -> None:
    """A later join phase that ends by its timer has waited in vain for those that it removes."""
    last = _last_completion(
        STATIC_AB.replace("p=", "s=15000 p=")
        + """
        C first s=15000 p=range -> PARKED
        A join -> PARKED
        B join -> PARKED
        A sync
        B sync
        C sync
        A join -> PARKED
        +10000
        """
    )
    assert (last.cause, last.removed) == ("join_timeout", ("C",))
    assert cause_words(last) == "not all members joined in time"
