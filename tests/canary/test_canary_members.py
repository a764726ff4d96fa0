"""The members of a canary: one group a shard, shifted against each other, counted together."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from heartwheel.readers.canary.members import CanaryMembers
from heartwheel.readers.canary.plan import groups_of, plan_of
from heartwheel.settings import Settings
from heartwheel.wire.events import EventType
from heartwheel.wire.partitioner import shard_of
from heartwheel.wire.verdict_rows import ExpirationRow


def settings_of(**sections: dict[str, object]) -> Settings:
    """Make a configuration of some sections."""
    return Settings.model_validate(sections)


def expiration(group_id: str, member_id: str, *, last_seen_ms: int, session_ms: int = 6_000) -> ExpirationRow:
    """Make a row of the expirations topic."""
    deadline_ms = last_seen_ms + session_ms
    return ExpirationRow(
        id=f"{group_id}-{deadline_ms}",
        group_id=group_id,
        member_id=member_id,
        group_instance_id=None,
        client_id=None,
        client_host=None,
        generation_id=1,
        reason="session_timeout",
        last_seen_ms=last_seen_ms,
        session_timeout_ms=session_ms,
        deadline_ms=deadline_ms,
        detected_ms=deadline_ms + 500,
        lateness_ms=500,
        group_state="Stable",
        shard=0,
    )


def members_of(settings: Settings) -> CanaryMembers:
    """Make the members of a canary."""
    return CanaryMembers(plan_of(settings), member_id="canary-1", missed_after_ms=30_000, objective_ms=3_500)


@pytest.mark.parametrize("shards", [1, 2, 8, 100])
def test_every_shard_has_its_group(shards: int) -> None:
    """The engine's own hash puts one group into each shard, the same ones at every start."""
    groups = groups_of("heartwheel-canary", shards)
    assert [shard_of(group, shards) for group in groups] == list(range(shards))
    assert groups == groups_of("heartwheel-canary", shards)


@pytest.mark.parametrize("shards", [1, 8])
def test_each_shard_is_tried_within_a_minute_and_verdicts_are_spread(shards: int) -> None:
    """By default every member falls silent for longer than its session twice a minute, and no two at one moment."""
    plan = plan_of(settings_of(engine={"shards": shards}))
    starts = {}
    for probe in plan.probes:
        silent = [at for at in range(0, 60_000, 50) if not plan.talks(probe, at)]
        assert len(silent) * 50 == 2 * plan.silent_ms
        starts[probe.shard] = min(at for at in silent if plan.talks(probe, at - 50))
    assert plan.silent_ms > plan.session_ms
    assert len(set(starts.values())) == shards


def test_long_sessions_lengthen_the_period() -> None:
    """Where the engine accepts no session below a minute the canary asks for that, and still beats in between."""
    plan = plan_of(settings_of(coordinator={"group_min_session_timeout": "1m", "default_session_timeout": "1m"}))
    assert (plan.session_ms, plan.silent_ms, plan.period_ms) == (60_000, 62_000, 66_000)


def test_a_member_beats_once_an_interval_and_is_silent_in_between() -> None:
    """It beats at its pace while it talks; after a pause of the process it goes on, and makes up for nothing."""
    members = members_of(settings_of(engine={"shards": 1}))
    sent = [at for at in range(0, 60_000, 50) for _ in members.due(at)]
    gaps = sorted({b - a for a, b in pairwise(sent)})
    assert gaps[0] == 1_000
    assert gaps[-1] > 6_000
    assert len(list(members.due(120_000))) == 1
    assert list(members.due(120_050)) == []


def test_figures_add_up() -> None:
    """Known, missed, void and pending are all that was expected; expirations of others' members count nowhere."""
    members = members_of(settings_of(engine={"shards": 4}))
    probes = members.plan.probes
    for at in range(0, 1_000, 50):
        for probe in members.due(at):
            members.answered(probe, 1_000)
    heard: list[tuple[int, str]] = []

    def hear(probe: object, judged: object) -> None:
        heard.append((probe.shard, judged.outcome.value))  # type: ignore[attr-defined]

    members.claimed(expiration(probes[0].group_id, "canary-1", last_seen_ms=1_000), 8_000)
    members.claimed(expiration(probes[1].group_id, "canary-2", last_seen_ms=1_000), 8_000)
    members.claimed(expiration("orders", "canary-1", last_seen_ms=1_000), 8_000)
    members.settle(10_000, on_judged=hear)
    figures = members.figures(enabled=True)
    talking = figures.beats
    assert heard == [(0, "in_time")]
    assert (figures.expected, figures.known, figures.pending) == (talking, 1, talking - 1)
    members.settle(40_000, on_judged=hear)
    figures = members.figures(enabled=True)
    assert figures.expected == figures.known + figures.missed + figures.void + figures.pending
    assert (figures.missed, figures.false_, figures.last_ms) == (talking - 1, 0, 8_000)
    assert figures.lateness_ms.p50 == figures.lateness_ms.p99 == figures.lateness_ms.max == 1_000


def test_figures_are_told_under_plain_names() -> None:
    """The JSON of the dashboard says `false`, which is no name in Python."""
    seen = msgspec.json.decode(msgspec.json.encode(members_of(Settings()).figures(enabled=False)))
    assert (seen["enabled"], seen["false"], seen["lateness_ms"]) == (
        False,
        0,
        {"p50": None, "p99": None, "max": None},
    )


def test_it_says_goodbye() -> None:
    """A canary that stops leaves by name, so that nobody waits for its silence."""
    members = members_of(Settings())
    goodbye = members.goodbye_of(members.plan.probes[0])
    assert (goodbye.type, goodbye.member_id) == (EventType.LEAVE, "canary-1")
