"""What `heartwheel top` shows of a scripted world is what happened in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator

import pytest
from textual.pilot import Pilot

from heartwheel.readers.live.at_risk import AtRisk
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.top.app import Top
from heartwheel.readers.top.frame import Frame, frame_of, risk_of
from heartwheel.readers.top.panes import Pane
from support.told_world import DIED_MS, STORIES, T, history, killed


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let times of day be those of the script."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class World:
    """Frames of the world at one moment."""

    def __init__(self, *, is_dead: bool) -> None:
        self._picture, self._now_ms = Picture(), DIED_MS if is_dead else T
        self._picture.link(True, now_ms=T)
        self._picture.apply([*history(), *([killed()] if is_dead else [])], now_ms=self._now_ms)

    def frame(self, text: str = "") -> Frame:
        """Take a frame."""
        return frame_of(self._picture, View(), now_ms=self._now_ms, text=text)

    def at_risk(self, text: str = "") -> list[AtRisk]:
        """List who is next."""
        return risk_of(self._picture, now_ms=self._now_ms, text=text)


def on_screen(steps: Callable[[Pilot[None]], Awaitable[None]], *, is_dead: bool = False) -> None:
    """Run the terminal over the world, on a screen that shows all tables."""

    async def run() -> None:
        app = Top(World(is_dead=is_dead), frame_s=60, risk_s=60)
        async with app.run_test(size=(240, 60)) as pilot:
            await pilot.pause()
            await steps(pilot)

    asyncio.run(run())


def table(pilot: Pilot[None], name: str) -> list[list[str]]:
    """Read a table: its rows, each cell as text."""
    pane = pilot.app.query_one(f"#{name}", Pane)
    return [[cell.plain for cell in pane.get_row_at(number)] for number in range(pane.row_count)]


def text(pilot: Pilot[None]) -> str:
    """Read the screen as a person does."""
    lines = pilot.app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in line) for line in lines)


def cut(name: str) -> str:
    """Cut a long id in its middle, as a column of 25 cells has it."""
    return name if len(name) <= 25 else f"{name[:12]}\u2026{name[-12:]}"


def test_terminal_shows_what_happened() -> None:
    """Both lights, the figures, each expiration and each group, as the script has them."""

    async def steps(pilot: Pilot[None]) -> None:
        shown = text(pilot)
        assert "\u25cf Healthy, with 1 warning: every shard decides as its members fall silent." in shown
        assert "\u25b2 4 groups in trouble" in shown
        assert "night: no members for 3 min 20 s; 2 expired members not back" in shown
        assert "fraud: 6 rebalances in 5 min, the first by: member joined" in shown
        assert "backup: no run for 1 h 12 min; one was expected within 1 h 10 min" in shown
        assert "exports: 2 members did not poll in time" not in shown  # the least of the four
        assert "  and 1 more" in shown
        for words in (
            "members 22",
            "groups 10",
            "expired/min 3",
            "late p50/max 730 ms / 790 ms",
            "beats 4/s",
            "backlog 0",
        ):
            assert words in shown
        expired = {row[5]: (row[4], row[1], row[2], row[3], row[6]) for row in table(pilot, "expired")}
        assert expired == {cut(gone.member_id): (story.group_id, *gone.top) for story in STORIES for gone in story.gone}
        groups = {row[0]: (row[1], row[2], row[3], row[5]) for row in table(pilot, "groups")}
        assert groups == {story.group_id: story.top for story in STORIES}
        assert [row[0] for row in table(pilot, "risk")] == ["4.0 s"]

    on_screen(steps)


def test_terminal_shows_a_dead_job_as_dead() -> None:
    """A minute after the job was killed: the cause, as of when the members are, and nothing made up."""

    async def steps(pilot: Pilot[None]) -> None:
        shown = text(pilot)
        assert "Stalled for 59 s: the job has ended: Spark's JVM was ended by signal 9." in shown
        assert "\u25cb Not known which groups are in trouble; 4 groups were before" in shown
        for words in ("members 22 at 09:41:07", "expired/min -", "beats -", "backlog -"):
            assert words in shown
        assert [row[0] for row in table(pilot, "risk")] == ["not decided"]

    on_screen(steps, is_dead=True)
