"""A tap on logs, without a Kafka: what it writes, what it does not write again, and what its marks say."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from heartwheel.base.errors import HeartwheelError
from heartwheel.front.cli.tap import said_of
from heartwheel.settings import EngineSettings, Settings, SettingsError, load_settings
from heartwheel.sources.tap.gaps import GAP_MS, LOADING_MS_MAX, PAUSE_MS, RESTART_MS
from heartwheel.sources.tap.plan import TapFigures, require_trusted
from heartwheel.sources.tap.settling import SETTLE_MS
from heartwheel.sources.tap.tap import Tap
from support.job import wait_for
from support.request_lines import T0, fetch, heartbeat, join, line, metadata, starting
from support.tap_scene import TapScene


@pytest.fixture
def scene(tmp_path: Path) -> TapScene:
    """Set up logs and a topic."""
    return TapScene(tmp_path)


def test_one_of_each_is_no_plural() -> None:
    """What a tap has done is said in words that fit a single line, event, gap or group."""
    said = said_of(
        TapFigures(lines=1, relayed=1, unreadable=1, too_large=1, failed=1, distrusted=1, refused=1, gaps=1, held=1)
    )
    assert said.startswith("1 line, 1 event passed on, 1 group held back")
    assert not re.search(r"\b1 \w+s\b", said)
    assert "2 lines" in said_of(TapFigures(lines=2))


def _passed(scene: TapScene) -> int:
    return scene.topic.marks[-1].passed_ms if scene.topic.marks else -1


def test_mark_stands_behind_what_was_passed_on(scene: TapScene) -> None:
    """Events come with their own times, and a mark after them says up to when that is all, a little behind the log."""
    scene.write(heartbeat(T0), heartbeat(T0 + 1_000, "m2", took_ms=4))
    scene.run(lambda: _passed(scene) >= 0)
    first, second = (msgspec.json.decode(value) for value in scene.topic.values[:2])
    assert (first["at_ms"], second["at_ms"], second["member_id"]) == (T0, T0 + 996, "m2")
    assert {first["feed"], second["feed"]} == {"tap"}
    assert _passed(scene) == T0 + 1_000 - SETTLE_MS


def test_other_requests_move_the_mark(scene: TapScene) -> None:
    """Where all members are silent the lines of other requests, such as the echo's, let time pass."""
    scene.write(heartbeat(T0))
    scene.write(*(fetch(T0 + step * 500) for step in range(1, 20)))
    scene.run(lambda: _passed(scene) == T0 + 9_500 - SETTLE_MS)
    assert len(scene.topic.ids) == 1


def test_tap_that_was_killed_writes_nothing_twice(scene: TapScene) -> None:
    """What was written after the last positions is found in the topic, and left out when the log is read again."""
    scene.write(heartbeat(T0), heartbeat(T0 + 100))
    scene.run(lambda: len(scene.topic.ids) == 2)
    positions = next(scene.log.parent.glob("positions/positions.json"))
    kept = positions.read_bytes()
    scene.write(heartbeat(T0 + 200), heartbeat(T0 + 300))
    scene.run(lambda: len(scene.topic.ids) == 4)
    positions.write_bytes(kept)  # as if it had been killed before it wrote them down
    scene.write(heartbeat(T0 + 400))
    tap = scene.run(lambda: len(scene.topic.ids) == 5)
    assert len(set(scene.topic.ids)) == 5
    assert tap.figures.skipped == 2


def test_kafka_that_fails_loses_nothing(scene: TapScene) -> None:
    """A write that fails is done again from the last positions, without what is in the topic."""
    scene.topic.breaks_after = 1
    scene.write(heartbeat(T0), heartbeat(T0 + 100), heartbeat(T0 + 200))
    tap = scene.run(lambda: _passed(scene) >= 0)
    assert tap.figures.retries == 1
    assert len(scene.topic.ids) == len(set(scene.topic.ids)) == 3


def test_time_without_lines_is_no_silence(scene: TapScene) -> None:
    """After a gap a mark says since when everything is known again: the broker was away, or its logger was off."""
    scene.write(heartbeat(T0), heartbeat(T0 + GAP_MS), heartbeat(T0 + 2 * GAP_MS + 1), heartbeat(T0 + 2 * GAP_MS + 300))
    tap = scene.run(lambda: _passed(scene) >= T0 + 2 * GAP_MS)
    since = [mark.since_ms for mark in scene.topic.marks]
    assert since[0] <= T0
    assert since[-1] == T0 + 2 * GAP_MS + 1
    assert tap.figures.gaps == 1


_NEW = "127.0.0.1:9092-10.0.0.7:40002-1-0"
"""A connection that is not that of other lines."""


def _restarted(at_ms: int) -> list[str]:
    """Write what a broker logs that was restarted while members were away: all by connections that are new."""
    asked = [metadata(at_ms + step * 500, connection="127.0.0.1:9092-10.0.0.7:40001-0-0") for step in range(7)]
    return [*asked[:2], heartbeat(at_ms + 700, connection=_NEW), *asked[2:]]


def test_short_restart_is_no_silence(scene: TapScene) -> None:
    """However soon a broker is back, its coordinator begins every session anew: from the first that it answers on."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    scene.write(fetch(T0), heartbeat(T0 + 300), *_restarted(back_ms))
    tap = scene.run(lambda: _passed(scene) > back_ms)
    before, since = scene.topic.marks[-2], scene.topic.marks[-1]
    assert (before.passed_ms, since.since_ms, since.passed_ms > since.since_ms) == (T0 + 301, back_ms + 699, True)
    assert tap.figures.gaps == 1


def test_restart_that_a_tap_was_stopped_in_is_found_by_the_next(scene: TapScene) -> None:
    """What is in doubt is kept with the positions, and so is by which connections it is told."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    lines = _restarted(back_ms)
    scene.write(fetch(T0), heartbeat(T0 + 300))
    scene.run(lambda: _passed(scene) >= 0)
    scene.write(lines[0])
    scene.run(lambda: scene.kept().pause is not None)
    scene.write(*lines[1:])
    scene.run(lambda: _passed(scene) > back_ms)
    assert scene.topic.marks[-1].since_ms == back_ms + 699


def test_restart_after_which_nobody_comes_is_over_in_time(scene: TapScene) -> None:
    """If all members are dead, their sessions begin anew when a connection from before has been waited for."""
    back_ms = T0 + 300 + GAP_MS + 1
    scene.write(fetch(T0), heartbeat(T0 + 300), *(each for each in _restarted(back_ms) if "HEARTBEAT" not in each))
    scene.run(lambda: _passed(scene) > T0 + 301)
    assert scene.topic.marks[-1].since_ms == back_ms + RESTART_MS


def test_sessions_begin_no_sooner_than_groups_are_loaded(scene: TapScene) -> None:
    """As long as the coordinator says that it loads a group it expires nobody of it, so marks wait for the end."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    loading = [heartbeat(back_ms + at_ms, error=14, connection=_NEW) for at_ms in range(0, 8_000, 500)]
    loaded = [heartbeat(back_ms + at_ms, connection=_NEW) for at_ms in range(8_000, 8_000 + RESTART_MS, 500)]
    scene.write(fetch(T0), heartbeat(T0 + 300), *loading, *loaded)
    scene.run(lambda: _passed(scene) > back_ms)
    assert scene.topic.marks[-1].since_ms == back_ms + 7_999


@pytest.mark.parametrize(
    "sooner",
    [
        pytest.param(
            [starting(T0 + ms, connection=_NEW) for ms in range(2_000, 9_000, 500)], id="its controller is there"
        ),
        pytest.param(
            [heartbeat(T0 + ms, error=16, connection=_NEW) for ms in range(2_000, 9_000, 500)], id="no coordinator"
        ),
    ],
)
def test_sessions_begin_no_sooner_than_a_slow_broker_serves(scene: TapScene, sooner: list[str]) -> None:
    """A broker that takes long to start has lines long before it coordinates anybody; nobody is expired meanwhile."""
    loading = [heartbeat(T0 + ms, error=14, connection=_NEW) for ms in range(9_000, 13_000, 500)]
    loaded = [heartbeat(T0 + ms, connection=_NEW) for ms in range(13_000, 17_000, 500)]
    scene.write(fetch(T0), heartbeat(T0 + 300), *sooner, *loading, *loaded)
    scene.run(lambda: _passed(scene) > T0 + 2_000)
    assert scene.topic.marks[-1].since_ms == T0 + 12_999


@pytest.mark.parametrize(
    ("load_ms", "join_ms", "at_once"),
    [
        pytest.param(1_500, 1_498, False, id="before all sessions begin anew"),
        pytest.param(1_500, 1_498, True, id="likewise, and all of it is read at once"),
        pytest.param(2_450, 2_440, False, id="after that"),
    ],
)
def test_load_after_a_restart_counts_when_it_was(scene: TapScene, load_ms: int, join_ms: int, at_once: bool) -> None:  # noqa: FBT001
    """Sessions begin with it, though it is told later; and a join that had arrived before it was let in after it."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    # As it took 2 s, what the own log says is taken for complete 4 s later.
    slow = heartbeat(back_ms + 2_100, error=16, took_ms=2_000, connection=_NEW)
    scene.write(fetch(T0), heartbeat(T0 + 300), *_restarted(back_ms)[:2], slow)
    scene.say(back_ms + load_ms, "Loaded classic group g with 2 members.")
    scene.write(
        heartbeat(back_ms + 2_200, "m2", connection=_NEW), heartbeat(back_ms + 2_400, error=14, connection=_NEW)
    )
    scene.write(*(metadata(back_ms + ms, connection=_NEW) for ms in range(2_500, 5_001, 500)))
    late = [metadata(back_ms + ms, connection=_NEW) for ms in range(5_500, 14_000, 500)]
    late.insert(5, join(back_ms + 7_999, took_ms=7_999 - join_ms, connection=_NEW))
    if at_once:
        scene.write(*late)
    with scene.running() as tap:
        wait_for(lambda: tap.figures.gaps, "the restart to be certain")
        if not at_once:
            scene.write(*late)
        wait_for(lambda: _passed(scene) > back_ms + 8_000, "the mark behind the join")
    events = [msgspec.json.decode(value) for value in scene.topic.values if b'"mark"' not in value]
    at_ms = {each["type"]: each["at_ms"] - back_ms for each in events if "type" in each}
    assert at_ms["load"] == load_ms < at_ms["join"]
    assert tap.figures.gaps == 1


def test_load_without_end_holds_nobody_for_ever(scene: TapScene) -> None:
    """A coordinator that never has loaded some group does not stop the time of all others."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    loading = [heartbeat(back_ms + at_ms, error=14, connection=_NEW) for at_ms in range(0, LOADING_MS_MAX + 1, 500)]
    scene.write(fetch(T0), heartbeat(T0 + 300), *loading)
    scene.run(lambda: _passed(scene) > back_ms)
    assert scene.topic.marks[-1].since_ms == back_ms + LOADING_MS_MAX - 1


def test_new_connections_after_every_pause_stop_no_time(scene: TapScene) -> None:
    """Where clients come and go, and no echo is there, every pause may have been a restart, and marks go on."""
    visits = [
        metadata(T0 + 300 + 1_200 * n, connection=f"127.0.0.1:9092-10.0.0.7:{41_000 + n}-0-{n}") for n in range(1, 9)
    ]
    scene.write(fetch(T0), heartbeat(T0 + 300), *visits)
    tap = scene.run(lambda: _passed(scene) > T0 + 5_000)
    assert tap.figures.gaps >= 1


def test_gap_that_comes_while_a_pause_is_in_doubt_is_part_of_it(scene: TapScene) -> None:
    """A broker that goes away again before it was known again has told nothing: one gap, from the first pause."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    again_ms = back_ms + GAP_MS + 101
    scene.write(fetch(T0), heartbeat(T0 + 300), fetch(back_ms, connection=_NEW), fetch(back_ms + 100, connection=_NEW))
    scene.write(*_restarted(again_ms))
    tap = scene.run(lambda: _passed(scene) > again_ms)
    assert (scene.topic.marks[-2].passed_ms, scene.topic.marks[-1].since_ms) == (T0 + 301, again_ms + 699)
    assert tap.figures.gaps == 1


def test_busy_broker_was_not_restarted(scene: TapScene) -> None:
    """A connection that outlives a pause says that the broker is the same, and silence in it is silence."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    scene.write(fetch(T0), heartbeat(T0 + 300), *_restarted(back_ms), fetch(back_ms + 3_100))
    tap = scene.run(lambda: _passed(scene) == back_ms + 3_100 - SETTLE_MS)
    assert {mark.since_ms for mark in scene.topic.marks} == {T0}
    assert tap.figures.gaps == 0


def test_nothing_is_certain_until_a_pause_is_explained(scene: TapScene) -> None:
    """Marks stand still at the pause, as what came before it may have to wait for a session that begins behind it."""
    back_ms = T0 + 300 + PAUSE_MS + 1
    scene.write(fetch(T0), heartbeat(T0 + 300))
    scene.run(lambda: _passed(scene) >= 0)
    scene.write(*_restarted(back_ms)[:4])
    scene.run(lambda: len(scene.topic.ids) == 2)
    assert _passed(scene) <= T0 + 301
    scene.write(fetch(back_ms + 1_600))
    scene.run(lambda: _passed(scene) > back_ms)
    assert {mark.since_ms for mark in scene.topic.marks} == {T0}


def test_first_log_that_is_gone_is_a_gap(scene: TapScene) -> None:
    """If the file that was to be read on was deleted, what stood in it is not known, and a mark says so."""
    scene.write(heartbeat(T0))
    scene.run(lambda: _passed(scene) >= 0)
    scene.log.rename(scene.log.parent / "kept elsewhere")
    scene.write(heartbeat(T0 + 1_000), heartbeat(T0 + 1_500))
    scene.run(lambda: _passed(scene) >= T0 + 1_000)
    assert scene.topic.marks[-1].since_ms == T0 + 1_000


def test_marks_hold_back_whose_join_may_be_parked(scene: TapScene) -> None:
    """A mark names the groups of which a join may be parked, each with its time, until the phase is over."""
    scene.write(heartbeat(T0), heartbeat(T0 + 1_000, error=27), heartbeat(T0 + 2_000, "m2", error=27))
    scene.run(lambda: _passed(scene) >= T0 + 1_700)
    assert scene.topic.marks[-1].held == {"g": T0 + 999}
    scene.write(join(T0 + 4_000, took_ms=2_900), heartbeat(T0 + 4_400))
    scene.run(lambda: _passed(scene) >= T0 + 4_200)
    assert scene.topic.marks[-1].held == {}


def test_restart_forgets_no_timeout(scene: TapScene) -> None:
    """A join phase after a restart of the tap is held for as long as the joins of before it say."""
    scene.write(join(T0, rebalance_ms=3_600_000), heartbeat(T0 + 1_000))
    scene.run(lambda: _passed(scene) >= T0 + 800)
    scene.write(heartbeat(T0 + 2_000, error=27), *(fetch(T0 + step * 1_000) for step in range(3, 500)))
    scene.run(lambda: _passed(scene) >= T0 + 498_000)
    assert scene.topic.marks[-1].held == {"g": T0 + 1_999}


def test_kafka_that_fails_takes_no_timeout_away(scene: TapScene) -> None:
    """The same where the tap only connected to Kafka anew."""
    scene.write(join(T0, rebalance_ms=3_600_000), heartbeat(T0 + 1_000))
    scene.run(lambda: _passed(scene) >= T0 + 800)
    with scene.running() as tap:
        scene.topic.breaks_after = 0
        scene.write(heartbeat(T0 + 2_000, error=27), *(fetch(T0 + step * 1_000) for step in range(3, 500)))
        wait_for(lambda: _passed(scene) >= T0 + 498_000, "the marks behind the long join phase")
    assert tap.figures.retries == 1
    assert scene.topic.marks[-1].held == {"g": T0 + 1_999}


def test_coordinators_own_log_tells_loads_and_ends_holds(scene: TapScene) -> None:
    """A group that was loaded is passed on as such; a group that is stable or empty by that log is held no more."""
    scene.write(heartbeat(T0), heartbeat(T0 + 1_000, error=27))
    scene.say(T0 + 1_200, "Group g with generation 2 is now empty.")
    scene.say(T0 + 1_300, "Loaded classic group g with 2 members.")
    scene.write(heartbeat(T0 + 2_000, "m2", error=25))
    scene.run(lambda: _passed(scene) >= T0 + 1_800)
    assert scene.topic.marks[-1].held == {}
    load = msgspec.json.decode(scene.topic.values[-2])
    assert (load["type"], load["group_id"], load["at_ms"]) == ("load", "g", T0 + 1_300)


def test_commits_of_unknown_groups_are_not_passed_on(scene: TapScene) -> None:
    """A commit does not say of which protocol its group is; in the newer ones it keeps nobody alive."""
    commit = {"groupId": "g", "generationIdOrMemberEpoch": 1, "memberId": "m1", "topics": []}
    scene.write(line(T0, 8, commit, {"topics": []}), heartbeat(T0 + 10), line(T0 + 20, 8, commit, {"topics": []}))
    scene.run(lambda: _passed(scene) >= 0)
    assert [msgspec.json.decode(value).get("type") for value in scene.topic.values[:-1]] == [None, "commit"]


def test_two_taps_on_one_folder_are_refused(scene: TapScene) -> None:
    """Positions belong to one tap at a time."""
    scene.write(heartbeat(T0))
    with scene.running() as first:
        while not scene.topic.marks:
            pass
        with pytest.raises(HeartwheelError, match="another tap runs"):
            type(first)(Settings(), first.plan, open_writer=scene.topic.writer).run()


def test_feed_that_the_job_does_not_trust_is_refused_at_once() -> None:
    """A tap whose events would all be rejected does not start, and says what to set."""
    with pytest.raises(SettingsError, match=r"--set engine\.feeds=broker-1"):
        require_trusted(Settings(), "broker-1")
    require_trusted(Settings(engine=EngineSettings(feeds="broker-1,broker-2")), "broker-2")


def test_command_of_the_page_has_a_trusted_feed() -> None:
    """The commands of docs/tap.md do what they say: job and tap are given the same feed."""
    page = (Path(__file__).parents[2] / "docs" / "tap.md").read_text(encoding="utf-8")
    block = page[page.index("## Run it") :].partition("```sh\n")[2].partition("```")[0].replace("\\\n", " ")
    commands = [shlex.split(each, comments=True) for each in block.splitlines()]
    for words in commands:
        settings = load_settings(overrides=[words[words.index("--set") + 1]]).settings
        require_trusted(settings, "broker-1")
    assert [words[1] for words in commands] == ["run", "tap"]
    assert commands[1][commands[1].index("--feed") + 1] == "broker-1"


def test_file_that_is_no_request_log_is_reported(scene: TapScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's own log, given as its request log, passes nothing on, and a person is told once."""
    said: list[str] = []
    init = Tap.__init__

    def listened(tap: Tap, *args: Any, **more: Any) -> None:
        init(tap, *args, **{**more, "report": said.append})

    monkeypatch.setattr(Tap, "__init__", listened)
    own = "[2026-11-22 01:00:00,000] INFO [SocketServer listenerType=BROKER] Enabling (kafka.network.SocketServer)"
    scene.write(*[own] * 50)
    scene.run(lambda: said)
    assert len(said) == 1
    assert "50 lines, and none of the request logger" in said[0]
    assert "--broker-log" in said[0]
