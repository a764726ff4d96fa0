"""The longest rows that there can be still are short enough for a Kafka producer (P6)."""

from __future__ import annotations

import msgspec

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.engine.shard.status import AT_RISK_BYTES_MAX, STRAYS_MAX, status_of
from heartwheel.proof.testing import LogBuilder, read_records
from heartwheel.wire.events import ID_BYTES_MAX
from heartwheel.wire.status import StatusRow
from heartwheel.wire.verdict_rows import NAMES_BYTES_MAX, NAMES_MAX, TriggerRow, row_of
from heartwheel.wire.verdicts import ExpiryReason, Kind, Verdict

REQUEST_BYTES_MAX = 1_000_000
"""A little less than Kafka's `max.request.size`."""

LONGEST = "\0" * (ID_BYTES_MAX - 4)
"""Nearly the longest id; each of its bytes becomes six in JSON."""

IDS = tuple(f"{LONGEST}{i:04}" for i in range(NAMES_MAX + 50))


def _verdict(**changes: object) -> Verdict:
    fields: dict[str, object] = {
        "kind": Kind.REBALANCE_STARTED,
        "group_id": LONGEST,
        "time_ms": 2**62,
        "generation_id": 2**31 - 1,
        "reason": f"explicit `LeaveGroup` request for ({', '.join(IDS * 60)}) members.",
        "awaiting": IDS,
        "removed": IDS,
        "joined": IDS,
        "leader": LONGEST,
    }
    return Verdict(**(fields | changes))  # type: ignore[arg-type]  # fields by name


def _bytes(row: msgspec.Struct) -> int:
    return len(msgspec.json.encode(row))


def test_p6_the_longest_trigger_row() -> None:
    """P6: a trigger of a huge group with the longest ids names fewer members, tells how many there are, and fits."""
    row = row_of(_verdict(), shard=0, detected_ms=2**62)
    assert isinstance(row, TriggerRow)
    assert _bytes(row) < REQUEST_BYTES_MAX
    for names, count in ((row.awaiting, row.awaiting_count), (row.removed, row.removed_count)):
        assert names == IDS[: NAMES_BYTES_MAX // ID_BYTES_MAX]
        assert count == len(IDS)
    assert row.reason.endswith(" ...")


def test_p6_the_longest_expiration_row() -> None:
    """P6: an expiration with the longest ids in every field fits."""
    ids = dict.fromkeys(("member_id", "group_instance_id", "client_id", "client_host"), LONGEST)
    row = row_of(_verdict(expiry_reason=ExpiryReason.SESSION_TIMEOUT, **ids), shard=0, detected_ms=2**62)
    assert _bytes(row) < REQUEST_BYTES_MAX // 10


def test_p6_an_id_says_what_a_cut_row_does_not() -> None:
    """P3, P6: a row that is cut keeps the id of the whole verdict."""
    whole, brief = _verdict(), _verdict(awaiting=(), reason="")
    assert row_of(whole, shard=0, detected_ms=1).id == row_of(brief, shard=0, detected_ms=1).id


def _status(ids: list[str], at_risk_count: int) -> StatusRow:
    log = LogBuilder()
    for id_ in ids:
        log.beat(1_000, id_, id_, session_timeout_ms=10_000)
        log.beat(1_000, id_, id_, session_timeout_ms=10_000, partition=1)
    shard = Shard(coordinator=CoordinatorConfig(), limits=ShardLimits())
    outcome = shard.apply(*read_records(log.records, clock_ms=2_000))
    return status_of(shard, outcome, index=0, batch_ms=2_000, held=False, at_risk_count=at_risk_count, state_bytes=0)


def test_p6_the_longest_status_row() -> None:
    """P6: a status row that is to name a thousand members at risk, all with the longest ids, names fewer, and fits."""
    row = _status(list(IDS), 1_000)
    assert _bytes(row) < REQUEST_BYTES_MAX
    assert len(row.at_risk) == AT_RISK_BYTES_MAX // (2 * ID_BYTES_MAX)
    assert len(row.strays) == STRAYS_MAX
    assert row.members == len(IDS)


def test_member_at_risk_has_the_length_of_its_session() -> None:
    """What is left to a member means nothing without the length of its own session."""
    assert {member.session_timeout_ms for member in _status(["m1", "m2"], 7).at_risk} == {10_000}


def test_p6_at_risk_count() -> None:
    """P6: of ordinary members a status row names as many as it is asked to, and no more."""
    assert len(_status([f"m{i}" for i in range(30)], 7).at_risk) == 7
    assert len(_status([f"m{i}" for i in range(30)], 0).at_risk) == 0
