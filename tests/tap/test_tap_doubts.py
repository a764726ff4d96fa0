"""What a tap cannot know by the logs that it is given: it says so at its start, and expires nobody if it is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from heartwheel.front.cli.app import app
from heartwheel.sources.tap.tap import Tap
from support.request_lines import T0, fetch, heartbeat, join
from support.tap_scene import TapScene


@pytest.mark.parametrize("is_given", [False, True], ids=["request log alone", "both logs"])
def test_tap_without_the_brokers_own_log_says_what_it_cannot_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_given: bool
) -> None:
    """A join phase that a member began of its own accord stands in the broker's own log alone."""
    monkeypatch.setattr(Tap, "run", lambda _: None)
    own = ["--broker-log", str(tmp_path / "server.log")] if is_given else []
    words = ["tap", str(tmp_path / "requests.log"), "--set", "engine.feeds=tap", *own]
    said = " ".join(CliRunner().invoke(app, words, catch_exceptions=False).stderr.split())
    assert ("no --broker-log: a member that joins again on its own" in said) is not is_given


def test_join_phase_that_a_member_began_unasked_holds_its_group(tmp_path: Path) -> None:
    """Nobody is told to rejoin, as the other member is dead; the broker's own log says that a phase is on."""
    scene = TapScene(tmp_path)
    scene.write(join(T0), join(T0 + 1, "m2"), heartbeat(T0 + 3_000), heartbeat(T0 + 5_500, "m2"))
    scene.say(
        T0 + 5_900,
        "Preparing to rebalance group g in state PreparingRebalance with old generation 1 "
        "(reason: Updating metadata for member m1 during Stable; client reason: not provided).",
    )
    scene.write(*(fetch(T0 + ms) for ms in range(6_000, 11_500, 500)))
    scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms >= T0 + 10_000)
    assert scene.topic.marks[-1].held == {"g": T0 + 5_900}
    scene.write(join(T0 + 11_502, took_ms=5_602, generation=2), heartbeat(T0 + 12_500, generation=2))
    scene.run(lambda: scene.topic.marks[-1].passed_ms >= T0 + 12_000)
    assert scene.topic.marks[-1].held == {}
