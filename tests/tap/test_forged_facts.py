"""Lines of the broker's own log that a client may have written: they stop no timer of a group of other people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from heartwheel.sources.tap import own_log
from heartwheel.sources.tap.own_log import DISTRUST_MS
from support.job import wait_for
from support.request_lines import T0, fetch, heartbeat, join, line
from support.shared_lines import strangers_beside
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


FAILED = "Member m1 in group g has failed, removing it from the group."


def _leave(reason: str) -> tuple[int, dict[str, Any]]:
    return 13, {"groupId": "evil", "members": [{"memberId": "e", "groupInstanceId": None, "reason": reason}]}


@pytest.mark.parametrize(
    ("api", "request_"),
    [
        _leave("bye\n"),
        _leave("bye\r"),
        (13, {"groupId": "evil", "members": [{"memberId": "e\n", "groupInstanceId": None}]}),
        (11, {"groupId": "evil", "memberId": "", "protocolType": "a\nb", "protocols": []}),
        (11, {"groupId": "evil", "memberId": "", "protocols": [{"name": "a\nb", "metadata": ""}]}),
        (68, {"groupId": "evil", "memberId": "e", "memberEpoch": 0, "subscribedTopicRegex": "a\nb"}),
        (1, {"transactionalId": "a\nb"}),
    ],
)
def test_line_break_in_any_text_is_seen(scene: TapScene, api: int, request_: dict[str, Any]) -> None:
    """The broker logs other texts than ids, too: none of them expires a member of another group."""
    scene.write(fetch(T0))
    scene.say(T0 + 500, FAILED)
    scene.write(line(T0 + 501, api, request_, {"errorCode": 25}), *(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 3_000)
    assert ("expired" in _types(scene), tap.figures.distrusted) == (False, 1)


def test_line_break_in_an_answer_is_no_clients(scene: TapScene) -> None:
    """A configuration that the broker answers with, certificates for example, costs nothing."""
    scene.write(line(T0, 1, {"topics": []}, {"value": "a\nb"}))
    scene.say(T0 + 500, FAILED)
    scene.write(*(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
    _until(scene, T0 + 3_000)
    assert _types(scene) == ["expired"]


@pytest.mark.parametrize("logger", ["", " (org.apache.kafka.coordinator.group.GroupMetadataManager)"])
def test_broken_message_is_seen_without_its_request(scene: TapScene, logger: str) -> None:
    """A join is logged when it is answered, long after the coordinator has logged its ids."""
    scene.say(T0, "Loaded classic group h with 2 members.")
    scene.say(T0 + 1, "Loaded classic group h with 2 members.")
    scene.write(fetch(T0), fetch(T0 + 400))
    _until(scene, T0 + 100)
    with scene.own.open("a") as file:
        file.write("[2026-11-21 01:43:15,500] INFO [GroupCoordinator id=1 topic=t partition=0] ")
        file.write(f"Dynamic member with unknown member id joins group evil{logger}\n")
    scene.say(T0 + 500, FAILED)
    scene.say(T0 + 500, "x in Empty state. Created a new member id e and requesting the member to rejoin with this id.")
    scene.write(*(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
    _until(scene, T0 + 3_000)
    assert _types(scene) == ["load", "load"]


def test_client_that_has_not_logged_in_is_seen(scene: TapScene) -> None:
    """The SASL mechanism that it asks for is free text, logged at INFO, and no request of it is logged."""
    scene.write(fetch(T0), fetch(T0 + 400))
    _until(scene, T0 + 100)
    with scene.own.open("a") as file:
        file.write("\n".join(strangers_beside(T0 + 450)[:1]) + "\n")
    scene.say(T0 + 500, FAILED)
    scene.say(T0 + 600, "Unloading group metadata for g with generation 1.")
    scene.write(*(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
    _until(scene, T0 + 3_000)
    assert _types(scene) == []


def test_expiry_is_not_told_of_a_member_that_was_accepted_later(scene: TapScene) -> None:
    """What the request log contradicts a client has written, and more of it is not believed either."""
    scene.write(heartbeat(T0), fetch(T0 + 400))
    scene.say(T0 + 500, FAILED)
    scene.say(T0 + 501, "Loaded classic group g with 2 members.")
    scene.write(heartbeat(T0 + 600), *(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 3_000)
    assert (_types(scene), tap.figures.distrusted) == (["heartbeat", "heartbeat"], 2)


def test_join_phase_is_not_ended_by_a_forged_line(scene: TapScene) -> None:
    """Members that wait in a join are silent: a line that may be a client's does not let their time run."""
    scene.write(join(T0), _odd(T0 + 500), heartbeat(T0 + 1_000, error=27))
    scene.say(T0 + 1_500, "Stabilized group g generation 2 (__consumer_offsets-0) with 2 members.")
    scene.write(*(fetch(T0 + ms) for ms in range(2_000, 6_000, 500)))
    _until(scene, T0 + 5_000)
    assert scene.topic.marks[-1].held == {"g": T0 + 999}


def test_join_phase_is_not_begun_by_a_forged_line(scene: TapScene) -> None:
    """A group whose time stands still reports nobody who died."""
    scene.write(join(T0), _odd(T0 + 500))
    scene.say(T0 + 1_500, "Preparing to rebalance group g in state Stable with old generation 1 (reason: x).")
    scene.write(*(fetch(T0 + ms) for ms in range(2_000, 6_000, 500)))
    _until(scene, T0 + 5_000)
    assert not scene.topic.marks[-1].held


def test_line_of_the_far_future_stops_none_behind_it(scene: TapScene) -> None:
    """Such a line is dropped and counted; the next expiry is told at its time."""
    scene.write(fetch(T0))
    scene.say(4_070_908_800_000, "Group x with generation 3 is now empty.")
    scene.say(T0 + 500, FAILED)
    scene.write(*(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 3_000)
    assert (_types(scene), tap.figures.distrusted) == (["expired"], 1)


def test_line_out_of_its_time_stops_none_behind_it(scene: TapScene) -> None:
    """A line may claim a time that requests reach much later: what follows it does not wait for that."""
    scene.write(fetch(T0))
    scene.say(T0 + 50_000, "Group x with generation 3 is now empty.")
    scene.say(T0 + 500, FAILED)
    scene.write(*(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
    _until(scene, T0 + 3_000)
    assert _types(scene) == ["expired"]


def test_no_more_is_read_than_may_wait(scene: TapScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a bound the rest stays in the file, and is read once there is room."""
    monkeypatch.setattr(own_log, "_WAITING_MAX", 1)
    scene.write(fetch(T0))
    scene.say(T0 + 500, FAILED)
    scene.run(lambda: scene.topic.marks)
    with scene.running():
        scene.say(T0 + 600, "Loaded classic group g with 2 members.")
        scene.write(*(fetch(T0 + ms) for ms in range(1_000, 4_000, 500)))
        wait_for(lambda: len(_types(scene)) == 2, "both to be told")
    assert _types(scene) == ["expired", "load"]


def test_request_of_the_future_moves_no_time(scene: TapScene) -> None:
    """Who can write lines of a stream that both logs share does not end the time of all groups."""
    scene.write(heartbeat(T0), fetch(T0 + 1_000), fetch(T0 + 315_360_000_000), heartbeat(T0 + 315_360_000_001))
    scene.write(heartbeat(T0 + 2_000), fetch(T0 + 4_000), fetch(T0 + 315_360_000_002))
    tap = scene.run(lambda: scene.topic.marks and scene.topic.marks[-1].passed_ms > T0 + 3_000)
    newest_ms = max(mark.passed_ms for mark in scene.topic.marks)
    assert (len(_types(scene)), newest_ms < T0 + 4_000, tap.figures.gaps, tap.figures.unreadable) == (2, True, 0, 1)
