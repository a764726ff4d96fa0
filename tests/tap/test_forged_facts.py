"""Lines of the broker's own log that a client may have written: they stop no timer of a group of other people."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from heartwheel.tap.tap import DISTRUST_MS
from support.request_lines import T0, fetch, heartbeat, line
from support.tap_scene import TapScene


@pytest.fixture
def scene(tmp_path: Path) -> TapScene:
    """Set up logs and a topic."""
    return TapScene(tmp_path)


def _types(scene: TapScene) -> list[str]:
    found = [msgspec.json.decode(value) for value in scene.topic.values]
    return [each.get("type", "heartbeat") for each in found if each.get("type") != "mark"]


def _until(scene: TapScene, at_ms: int) -> None:
    scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > at_ms)


def _odd(logged_ms: int, group: str = "n\n[2026-11-22 01:00:00,000] INFO [GroupCoordinator id=1]: Unloaded") -> str:
    request = {"groupId": group, "generationId": 1, "memberId": "m", "groupInstanceId": None}
    return line(logged_ms, 12, request, {"errorCode": 25})


@pytest.mark.parametrize(
    "text", ["Unloading group metadata for g with generation 1", "Loaded classic group g with 2 members."]
)
def test_loads_beside_an_id_with_a_line_break_are_not_believed(scene: TapScene, text: str) -> None:
    """The broker writes ids as they are: beside such an id its log's loads are not passed on, and that is counted."""
    scene.write(heartbeat(T0), _odd(T0 + 1_001))
    scene.say(T0 + 1_000, text)
    scene.write(*(fetch(T0 + ms) for ms in range(1_500, 6_000, 500)))
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 5_000)
    assert (_types(scene), tap.figures.distrusted) == (["heartbeat"], 1)


def test_loads_are_believed_again_after_a_while(scene: TapScene) -> None:
    """One odd client does not cost what the log says for ever."""
    scene.write(_odd(T0), *(fetch(T0 + ms) for ms in range(0, DISTRUST_MS + 2_000, 1_000)))
    scene.say(T0 + DISTRUST_MS + 1_000, "Loaded classic group g with 2 members.")
    scene.write(*(fetch(T0 + DISTRUST_MS + ms) for ms in range(3_000, 6_000, 1_000)))
    _until(scene, T0 + DISTRUST_MS + 4_000)
    assert _types(scene) == ["load"]


def test_group_that_answers_was_not_let_go(scene: TapScene) -> None:
    """An unload that an accepted heartbeat contradicts is taken back: sessions run again from there."""
    scene.write(heartbeat(T0))
    scene.say(T0 + 500, "Unloading group metadata for g with generation 1")
    scene.write(fetch(T0 + 900), fetch(T0 + 1_200))
    scene.run(lambda: len(scene.topic.ids) == 2)
    scene.write(heartbeat(T0 + 1_500), heartbeat(T0 + 2_000), fetch(T0 + 4_000))
    scene.run(lambda: len(scene.topic.ids) >= 4)
    assert _types(scene)[:3] == ["heartbeat", "unload", "heartbeat"]
