"""What a broker decided is found again in its request log, though the log is not in the order of the decisions."""

from __future__ import annotations

import pytest

from heartwheel.engine.replay.log import replay_log
from heartwheel.wire.verdicts import Kind, Verdict
from support.listened_broker import CONFIG, listened

TOLERANCE_MS = 50
"""That of the recordings of real brokers."""


def _differences(decided: list[Verdict], told: list[Verdict]) -> tuple[list[Verdict], list[Verdict]]:
    missing, left = [], list(told)
    for one in decided:
        same = (v for v in left if _about(v) == _about(one) and abs(v.time_ms - one.time_ms) <= TOLERANCE_MS)
        match = next(same, None)
        if match is None:
            missing.append(one)
        else:
            left.remove(match)
    return missing, left


def _about(verdict: Verdict) -> tuple[Kind, str | None, int]:
    return verdict.kind, verdict.member_id, verdict.generation_id


@pytest.mark.parametrize("late_share", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(30))
def test_verdicts_of_a_broker_are_found_in_its_log(seed: int, late_share: float) -> None:
    """Every verdict of a broker that was listened to, and no other, even if a third of its joins are logged late."""
    lines, verdicts, told_ms = listened(seed, late_share)
    until_ms = told_ms - TOLERANCE_MS
    told = [verdict for verdict in replay_log(lines, CONFIG, told_ms) if verdict.time_ms < until_ms]
    assert told
    assert _differences([verdict for verdict in verdicts if verdict.time_ms < until_ms], told) == ([], [])
