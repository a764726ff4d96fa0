"""Requests that a client forges in a stream that the request logger shares: nobody leaves or is expired by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.shard import Shard, ShardLimits
from heartwheel.front.cli.tap import said_of
from heartwheel.proof.testing import OUTAGE_MIN_MS, LogBuilder, read_records
from heartwheel.sources.tap import shared_stream
from heartwheel.sources.tap.tap import Tap
from support.job import wait_for
from support.request_lines import T0, fetch, heartbeat, join, line
from support.shared_lines import CARRIERS, forged_beside, leave, strangers_beside
from support.tap_scene import TapScene

FORGED_MS = T0 + 2_500


@pytest.fixture
def scene(tmp_path: Path) -> TapScene:
    """Set up logs and a topic."""
    return TapScene(tmp_path)


def _verdicts(scene: TapScene, end_ms: int, first: int = 0) -> list[tuple[str, str]]:
    """Judge what is in the topic, the first records in a batch of their own."""
    log, last_ms = LogBuilder(), T0
    for value in scene.topic.values:
        told = msgspec.json.decode(value)
        last_ms = max(last_ms, told.get("passed_ms", told.get("at_ms", 0)))
        log.add(last_ms, value)
    log.tick(end_ms)
    rules = CoordinatorConfig(group_min_session_timeout_ms=200, group_initial_rebalance_delay_ms=0)
    blob, found = "", []
    for records in (log.records[:first], log.records[first:]):
        shard = Shard(coordinator=rules, limits=ShardLimits(), outage_min_ms=OUTAGE_MIN_MS, blob=blob)
        found += shard.apply(*read_records(records, feeds=("tap",))).verdicts
        blob = shard.encode()
    return [(each.kind.value, each.member_id or "") for each in found]


def _member(wrapped: Callable[[int, str], str], seconds: Iterable[int]) -> list[str]:
    return [wrapped(T0 + second * 1_000, heartbeat(T0 + second * 1_000)) for second in seconds]


def _begin(wrapped: Callable[[int, str], str]) -> list[str]:
    asked = {"groupId": "g", "generationId": 1, "memberId": "m1", "groupInstanceId": None}
    synced = line(T0 + 10, 14, asked, {"errorCode": 0})
    return [wrapped(T0, join(T0)), wrapped(T0 + 10, synced), *_member(wrapped, (1, 2))]


def _tap_with_a_leave(
    scene: TapScene, monkeypatch: pytest.MonkeyPatch, carrier: str, forge: Callable[..., list[str]]
) -> Tap:
    """Tap the log of a group whose member lives, with a forged leave among its heartbeats: nobody leaves.

    Args:
        scene: logs and a topic.
        monkeypatch: shortens the longest message.
        carrier: what writes the lines of the request logger, by its name in `CARRIERS`.
        forge: makes the lines of a request that carries the leave.
    """
    monkeypatch.setattr(shared_stream, "MESSAGE_BYTES_MAX", 1_500)
    wrapped = CARRIERS[carrier]
    lines = [wrapped(FORGED_MS, text) for text in forge(FORGED_MS, leave(FORGED_MS))]
    scene.write(*_begin(wrapped), *lines, *_member(wrapped, range(3, 20)))
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 18_000)
    assert _verdicts(scene, T0 + 19_000) == [("rebalance_completed", "")]
    return tap


@pytest.mark.parametrize("carrier", CARRIERS)
def test_leave_that_a_client_forges_is_left_out(scene: TapScene, monkeypatch: pytest.MonkeyPatch, carrier: str) -> None:
    """A group id with line breaks says that a member of another group has left: it is counted, and nobody leaves."""
    tap = _tap_with_a_leave(scene, monkeypatch, carrier, forged_beside)
    assert f"{tap.figures.left_out} lines left out that a client may have written" in said_of(tap.figures)
    assert scene.topic.marks[-1].since_ms > FORGED_MS


@pytest.mark.parametrize("carrier", CARRIERS)
def test_client_that_has_not_logged_in_forges_no_leave(
    scene: TapScene, monkeypatch: pytest.MonkeyPatch, carrier: str
) -> None:
    """The SASL mechanism that it asks for is in no request that is logged, and its first and last line look whole."""
    tap = _tap_with_a_leave(scene, monkeypatch, carrier, strangers_beside)
    assert tap.figures.left_out > 0


def test_time_that_a_client_forges_does_not_pass(scene: TapScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines that step less than a gap would end a session whose member lives."""
    monkeypatch.setattr(shared_stream, "MESSAGE_BYTES_MAX", 1_500)
    steps = [fetch(T0 + 2_500 + 900 * step) for step in range(1, 15)]
    scene.write(*_begin(CARRIERS["plain"]), *forged_beside(T0 + 2_500, *steps))
    scene.run(lambda: scene.topic.marks)
    first = len(scene.topic.values)
    scene.write(*_member(CARRIERS["plain"], range(3, 20)))
    scene.run(lambda: scene.topic.marks[-1].passed_ms > T0 + 18_000)
    assert _verdicts(scene, T0 + 19_000, first) == [("rebalance_completed", "")]


def test_heartbeat_that_is_left_out_expires_nobody(scene: TapScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """True requests stand behind a broken message, too: what is left out counts as missed, so sessions start anew."""
    monkeypatch.setattr(shared_stream, "MESSAGE_BYTES_MAX", 600)
    others = [fetch(T0 + 2_000 + ms) for ms in range(250, 16_000, 500)]
    broken = [*forged_beside(T0 + 4_900), heartbeat(T0 + 5_000)]
    scene.write(*_begin(CARRIERS["plain"]), *others[:6], *broken, *others[6:12], heartbeat(T0 + 8_100), *others[12:14])
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 8_200)
    assert (len(scene.topic.ids), tap.figures.left_out > 0) == (5, True)
    assert _verdicts(scene, T0 + 8_300) == [("rebalance_completed", "")]


def test_tap_that_is_restarted_in_a_doubt_reads_it_again(scene: TapScene) -> None:
    """What is in doubt when a tap ends is in doubt when it goes on, and is missed by it, too."""
    scene.write(*_begin(CARRIERS["plain"]), *forged_beside(T0 + 2_500, leave(T0 + 2_500)))
    for _ in range(2):
        with scene.running() as tap:
            wait_for(partial(getattr, tap.figures, "left_out"), "lines to be left out")
        assert (tap.figures.left_out, len(scene.topic.ids)) == (1, 4)
    assert scene.kept().request_log.offset == len("\n".join(_begin(CARRIERS["plain"]))) + 1
