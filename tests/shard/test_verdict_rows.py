"""The rows of the output topics: bounded, and with an id that depends on what they say alone."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from heartwheel.wire.verdict_rows import NAMES_MAX, TriggerRow, row_of
from heartwheel.wire.verdicts import Cause, Kind, Verdict, verdict_id

_ids = st.text(max_size=3)


def _started(**changes: object) -> Verdict:
    fields: dict[str, object] = {
        "kind": Kind.REBALANCE_STARTED,
        "group_id": "g",
        "time_ms": 1,
        "generation_id": 1,
        "reason": "because",
    }
    return Verdict(**(fields | changes))  # type: ignore[arg-type]  # fields by name


def test_p6_a_row_names_only_so_many_members() -> None:
    """P6: a trigger of a group of ten thousand names the first hundred it waits for, and their number."""
    row = row_of(_started(awaiting=tuple(f"m{i}" for i in range(10_000))), shard=0, detected_ms=2)
    assert isinstance(row, TriggerRow)
    assert (len(row.awaiting), row.awaiting_count) == (NAMES_MAX, 10_000)
    assert row.awaiting[0] == "m0"


@given(st.lists(st.tuples(_ids, st.none() | _ids, st.integers(0, 3), st.integers(0, 3)), min_size=2, unique=True))
def test_p3_different_verdicts_have_different_ids(rows: list[tuple[str, str | None, int, int]]) -> None:
    """P3: group, member, generation, cause and deadline each make another id; words for people do not."""
    verdicts = [
        _started(group_id=group, member_id=member or "", generation_id=generation, time_ms=time)
        for group, member, generation, time in {(g, m or "", n, t) for g, m, n, t in rows}
    ]
    for one, two in itertools.combinations(verdicts, 2):
        assert verdict_id(one) != verdict_id(two)
    assert verdict_id(_started(cause=Cause.MEMBER_LEFT)) != verdict_id(_started(cause=Cause.MEMBER_JOINED))
    told_apart_by_words = _started(reason="for another reason", member_count=7)
    assert verdict_id(told_apart_by_words) == verdict_id(_started())
