"""The terminal: what stands on it at 80x24 and wide, its keys, and what comes out of a pipe."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from rich.console import Console
from textual.pilot import Pilot

from heartwheel.base.wall_clock import moment_words, time_of_day
from heartwheel.readers.live.at_risk import AtRisk
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.top.app import Top
from heartwheel.readers.top.cells import bar, short
from heartwheel.readers.top.detail import explanation
from heartwheel.readers.top.frame import Frame, frame_of, narrowed, risk_of
from heartwheel.readers.top.panes import Pane
from heartwheel.readers.top.snapshot import document, print_snapshot
from heartwheel.wire.job import Phase
from heartwheel.wire.status import AtRiskMember
from support.output_rows import T0, Row, begun, expired, job, joined, status, topic_rows

NASTY = "<b>[red]\x1b[31m"


class Scene:
    """Frames of a picture whose clock stands still unless a test moves it."""

    def __init__(self) -> None:
        self.picture = Picture()
        self.picture.link(True, now_ms=T0)
        self.now_ms = T0 + 5_000
        risk = [
            AtRiskMember(group_id="orders", member_id=f"orders-{n}", deadline_ms=self.now_ms + n * 1_000)
            for n in (-1, 2, 8)
        ]
        self.tell(
            job(T0 + 4_000),
            status(0, *risk, batch_ms=T0 + 4_000),
            expired("orders", "orders-1", T0),
            expired("payments", "payments-7", T0 + 100, client_id="billing", reason="rebalance_timeout"),
            expired("orders", NASTY, T0 + 200),
            begun("payments", "payments-8", "payments-9", at_ms=T0 + 100),
            joined("orders", "orders-1", at_ms=T0 + 900),
            expired("heartwheel-canary-0", "c", T0),
        )

    def tell(self, *rows: Row) -> None:
        """Let the topics tell something."""
        self.picture.apply(topic_rows(*rows), now_ms=self.now_ms)

    def frame(self, text: str = "") -> Frame:
        """Take a frame."""
        return frame_of(self.picture, View(), now_ms=self.now_ms, text=text)

    def at_risk(self, text: str = "") -> list[AtRisk]:
        """List who is next."""
        return risk_of(self.picture, now_ms=self.now_ms, text=text)


def on_screen(steps: Callable[[Pilot[None], Scene], Awaitable[None]], *, size: tuple[int, int] = (80, 24)) -> None:
    """Run the screen without a terminal, and steps on it."""

    async def run() -> None:
        scene = Scene()
        app = Top(scene, frame_s=60, risk_s=60)  # nothing changes by itself: steps say when
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await steps(pilot, scene)

    asyncio.run(run())


def table(pilot: Pilot[None], name: str) -> list[list[str]]:
    """Read a table: its rows, each cell as text."""
    pane = pilot.app.query_one(f"#{name}", Pane)
    return [[cell.plain for cell in pane.get_row_at(number)] for number in range(pane.row_count)]


def screen(pilot: Pilot[None]) -> list[str]:
    """Read the screen as a person sees it."""
    return ["".join(segment.text for segment in line) for line in pilot.app.screen._compositor.render_strips()]


def visible(pilot: Pilot[None]) -> list[str]:
    """Name the tables that are seen."""
    return [name for name in ("expired", "risk", "groups") if pilot.app.query_one(f"#{name}").region.area]


def test_a_small_screen_shows_what_matters() -> None:
    """At 80x24: whether the engine can be trusted, the figures, and who, why, when, how late, none of it cut off."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        lines = screen(pilot)
        text = "\n".join(lines)
        assert "Healthy: every shard decides as its members fall silent." in text
        for words in (
            "members 9",
            "groups 2",
            "expired/min 3",
            "beats 8/s",
            "batch 340 ms",
            "backlog 0",
            "canary 3 s ago",
        ):
            assert words in text
        (row,) = [line for line in lines if "payments-7" in line]
        assert [word in row for word in ("rebalance", "7.2 s", "1.2 s", "payments ")] == [True] * 4
        assert visible(pilot) == ["expired"]
        assert "Quit" in lines[-1]
        assert "Why" in lines[-1]

    on_screen(steps)


def test_a_wide_screen_shows_all_tables() -> None:
    """From 150x30 on nothing is hidden, and a window that shrinks goes back to one table at a time."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        assert visible(pilot) == ["expired", "risk", "groups"]
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert visible(pilot) == ["expired"]

    on_screen(steps, size=(180, 40))


def test_tab_goes_round_the_tables() -> None:
    """Tab shows the next table, and shift+Tab the one before."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        seen = []
        for key in ("tab", "tab", "tab", "shift+tab"):
            await pilot.press(key)
            seen += visible(pilot)
        assert seen == ["risk", "groups", "expired", "groups"]

    on_screen(steps)


def test_tables_say_who_is_next_and_who_blocks() -> None:
    """Members at risk with what is left to them, the nearest first; a rebalance with whom it waits for and how long."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        pilot.app._show(pilot.app._taken)  # type: ignore[attr-defined]  # by the scene's clock, not the wall's
        assert [row[:4] for row in table(pilot, "risk")] == [
            ["any moment", " " * 12, "orders", "orders--1"],
            ["2.0 s", "██          ", "orders", "orders-2"],
            ["8.0 s", "████████    ", "orders", "orders-8"],
        ]
        assert table(pilot, "groups")[0][:5] == [
            "payments",
            "rebalancing",
            "0",
            "member expired, 4 s ago",
            "payments-8, payments-9, 25.0 s left",
        ]

    on_screen(steps)


def test_filter_leaves_what_matches() -> None:
    """With f one asks for words, all tables follow while one types, Enter keeps them, Escape takes them away."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        await pilot.press("f", *"billing")
        assert [row[5] for row in table(pilot, "expired")] == ["payments-7"]
        assert table(pilot, "risk") == []
        await pilot.press("enter", "tab")
        assert [row[5] for row in table(pilot, "expired")] == ["payments-7"]
        await pilot.press("f", "escape")
        assert len(table(pilot, "expired")) == 3

    on_screen(steps)


def test_pause_holds_what_is_seen() -> None:
    """With p everything is held, also under a filter; another p shows what came meanwhile."""

    async def steps(pilot: Pilot[None], scene: Scene) -> None:
        await pilot.press("p")
        scene.tell(expired("clicks", "clicks-3", T0 + 300))
        pilot.app.refresh_frame()  # type: ignore[attr-defined]  # what its timer does
        assert len(table(pilot, "expired")) == 3
        assert any("PAUSED" in line for line in screen(pilot))
        await pilot.press("f", *"orders", "enter")
        assert len(table(pilot, "expired")) == 2
        await pilot.press("escape", "p")
        assert len(table(pilot, "expired")) == 4

    on_screen(steps)


def test_enter_says_why() -> None:
    """Enter explains the expiration under the cursor, and Escape goes back to it."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        await pilot.press("down", "enter")
        await pilot.pause()
        text = "\n".join(screen(pilot))
        assert "max.poll.interval.ms" in text
        assert "payments-7" in text
        await pilot.press("escape")
        assert "why was it expired?" not in "\n".join(screen(pilot))

    on_screen(steps)


def test_the_cursor_stays_with_its_row() -> None:
    """New rows push down the one that somebody reads; the cursor goes with it, and at the top it stays at the top."""

    async def steps(pilot: Pilot[None], scene: Scene) -> None:
        pane = pilot.app.query_one("#expired", Pane)
        await pilot.press("down")
        chosen = pane.chosen
        scene.tell(expired("clicks", "clicks-3", T0 + 300))
        pilot.app.refresh_frame()  # type: ignore[attr-defined]  # what its timer does
        assert (pane.chosen, pane.cursor_row) == (chosen, 2)
        await pilot.press("home")
        scene.tell(expired("clicks", "clicks-4", T0 + 400))
        pilot.app.refresh_frame()  # type: ignore[attr-defined]  # likewise
        assert pane.cursor_row == 0
        assert table(pilot, "expired")[0][5] == "clicks-4"

    on_screen(steps)


def test_ids_are_shown_as_text() -> None:
    """Markup is text, and nothing in an id reaches the terminal as a command."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        assert "<b>[red]\ufffd[31m" in [row[5] for row in table(pilot, "expired")]
        assert "\x1b[31m" not in "".join(screen(pilot))

    on_screen(steps)


def test_q_quits() -> None:
    """It ends without an error."""

    async def steps(pilot: Pilot[None], _: Scene) -> None:
        await pilot.press("q")
        await pilot.pause()
        assert pilot.app.return_code == 0

    on_screen(steps)


def test_an_empty_picture_says_what_to_do() -> None:
    """Before any job has told something the first line says how to start it, and the tables why they are empty."""
    picture = Picture()
    picture.link(True, now_ms=T0)
    output = io.StringIO()
    frame = frame_of(picture, View(bootstrap="kafka:9092"), now_ms=T0)
    print_snapshot(Console(file=output, width=200), frame)
    assert "heartwheel run --bootstrap-servers kafka:9092" in output.getvalue()
    assert output.getvalue().count("nothing") == 3


def test_a_pipe_gets_everything_uncut() -> None:
    """The snapshot has whole ids and no colour; JSON has the fields of the dashboard's API."""
    long_id = "orders-consumer-with-a-long-name-4f1c9d60-6d55-4a0c-a5b8-9a0c52c0aa01"
    scene = Scene()
    scene.tell(expired("orders", long_id, T0 + 300))
    output = io.StringIO()
    print_snapshot(Console(file=output, width=200), scene.frame())
    assert long_id in output.getvalue()
    assert "\x1b" not in output.getvalue()
    found = json.loads(json.dumps(document(scene.frame())))
    assert found["expirations"][0]["member_id"] == long_id
    assert found["now"]["health"]["state"] == "healthy"
    assert [row["group_id"] for row in found["groups"]] == ["payments", "orders"]


def test_a_held_frame_can_be_narrowed() -> None:
    """The filter on a held frame finds what the filter on the picture finds."""
    scene = Scene()
    for text in ("", "orders", "PAY", "billing", "nobody", "orders 1"):
        assert msgspec.json.encode(narrowed(scene.frame(), text)) == msgspec.json.encode(scene.frame(text)), text


@pytest.mark.parametrize(
    ("left_ms", "drawn"),
    [
        (-5, ""),
        (0, ""),
        (124, ""),
        (125, "▏"),
        (999, "▉"),
        (1_000, "█"),
        (1_500, "█▌"),
        (12_000, "█" * 12),
        (10**9, "█" * 12),
    ],
)
def test_bars(left_ms: int, drawn: str) -> None:
    """A second is a cell, an eighth of it the smallest step; the bar is never longer than its column."""
    assert bar(left_ms) == drawn.ljust(12)


@pytest.mark.parametrize(
    ("text", "cells_max", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcdefghij", 7, "abc…hij"),
        ("abcdefghij", 6, "abc…ij"),
        ("a\nb\x07", 9, "a\ufffdb\ufffd"),
        (None, 5, ""),
    ],
)
def test_long_ids_lose_their_middle(text: str | None, cells_max: int, shown: str) -> None:
    """An id begins with a name and ends with what tells it from others."""
    assert short(text, cells_max=cells_max) == shown


def test_second_light_is_about_the_groups() -> None:
    """Below the engine's health stands how many groups are in trouble, and the worst of them with the reason."""

    async def steps(pilot: Pilot[None], scene: Scene) -> None:
        assert "● No group in trouble" in "\n".join(screen(pilot))
        flaps = [expired("orders", "flappy", T0 + i, id=f"flap{i}") for i in range(3)]
        scene.tell(*flaps)
        pilot.app.refresh_frame()  # type: ignore[attr-defined]
        await pilot.pause()
        text = "\n".join(screen(pilot))
        assert "▲ 1 group in trouble" in text
        assert "orders: flappy expired 3 times in 15 min" in text

    on_screen(steps)


def test_dead_engine_shows_nothing_as_if_it_were_now() -> None:
    """Once the job has ended, members are as of its last batch, deadlines are not decided, and no rate is made up."""

    async def steps(pilot: Pilot[None], scene: Scene) -> None:
        scene.tell(job(T0 + 5_000, phase=Phase.STOPPED, phase_since_ms=T0 + 5_000, fault="the disk is full"))
        scene.now_ms += 60_000
        pilot.app.refresh_frame()  # type: ignore[attr-defined]
        await pilot.pause()
        text = "\n".join(screen(pilot))
        assert "the job has ended: the disk is full" in text
        assert "○ Not known which groups are in trouble" in text
        for words in (f"members 9 at {time_of_day(T0 + 5_000)}", "expired/min -", "beats -", "backlog -"):
            assert words in text
        await pilot.press("tab")
        assert {row[0] for row in table(pilot, "risk")} == {"not decided"}
        assert {row[1].partition(" ")[0] for row in table(pilot, "groups")} == {"was"}
        assert not any("left" in row[4] for row in table(pilot, "groups"))

    on_screen(steps)


@pytest.mark.parametrize("odd_ms", [2**53, 2**63 - 1, -(2**63), 253_402_300_800_000, -62_135_596_800_001, -1])
def test_times_that_no_calendar_has_end_nothing(odd_ms: int) -> None:
    """Rows of a topic with CreateTime say any time: the snapshot and the window of a row show its number."""
    scene = Scene()
    rows = topic_rows(expired("orders", "odd", T0, last_seen_ms=odd_ms), begun("orders", "odd", at_ms=T0), offset=1_000)
    scene.picture.apply([row._replace(append_ms=odd_ms) for row in rows], now_ms=scene.now_ms)
    out = io.StringIO()
    print_snapshot(Console(file=out, width=200), scene.frame())
    assert "odd" in out.getvalue()
    assert all(explanation(row).plain for row in scene.frame().expirations)
    assert re.match(r"\d\d:\d\d:\d\d$|-?\d+ ms$", time_of_day(odd_ms))
    assert re.match(r"\d{4}-\d\d-\d\d |-?\d+ ms$", moment_words(odd_ms))
