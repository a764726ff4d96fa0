"""A streams group with static members in the log of a real broker of Kafka 4.4.0, whose requests were made by hand."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.explained import ExplainedEvent

LOG = Path(__file__).parent / "logs" / "4.4.0" / "streams.log"
"""s1 (instance i1) and s2 (i2) join. s1 leaves for a while. A return of i1 as s1b and a join of d1 are refused, because
their topology is another one. s2 says another rack, which bumps the epoch. i1 returns as s1c. Both fall silent."""


@pytest.fixture(scope="module")
def events() -> list[ExplainedEvent]:
    """Explain the log once, and check that every line of it is known."""
    scanned = Scanned()
    found = list(explain_logs([str(LOG)], scanned, stdin=io.BytesIO()))
    assert (dict(scanned.unknown), scanned.suspicious) == ({}, 0)
    return [event for event in found if event.group_id == "s"]


def _named(events: list[ExplainedEvent], *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(event, field) for field in ("kind", *fields)) for event in events]


def test_a_join_is_the_cause_of_its_rebalance(events: list[ExplainedEvent]) -> None:
    """Each static member's join bumps the epoch; a refused join is no cause of a later bump."""
    rebalances = [event for event in events if event.kind == "rebalance"]
    assert _named(rebalances, "epoch", "reason", "caused_by", "member_count") == [
        ("rebalance", 2, "member_joined", ("s1",), None),
        ("rebalance", 3, "member_joined", ("s2",), None),
        ("rebalance", 4, "metadata_changed", (), None),
    ]


def test_only_an_accepted_return_is_a_replacement(events: list[ExplainedEvent]) -> None:
    """The line of a refused return is the same, but the broker gives the member no assignment."""
    replaced = [event for event in events if event.kind == "replaced"]
    assert _named(replaced, "member_id", "new_member_id", "group_instance_id") == [("replaced", "s1", "s1c", "i1")]
    (left,) = [event for event in events if event.kind == "temporarily_left"]
    assert (left.member_id, left.group_instance_id, left.returned_as) == ("s1", "i1", "s1c")


def test_expired_static_members_have_their_instance_ids(events: list[ExplainedEvent]) -> None:
    """The line of an expiration does not name the instance id; the join or the return before it does."""
    expired = [event for event in events if event.kind == "expired"]
    assert _named(expired, "member_id", "group_instance_id") == [("expired", "s2", "i2"), ("expired", "s1c", "i1")]
