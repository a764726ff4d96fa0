"""The whole screen of the terminal is drawn as `screen.txt` has it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from heartwheel.readers.live.at_risk import AtRisk
from heartwheel.readers.live.now import View
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.top.app import Top
from heartwheel.readers.top.frame import Frame, frame_of, risk_of
from support.output_rows import T0, Row, expired, job, joined, status, topic_rows

SCREEN = Path(__file__).parent / "screen.txt"
SIZE = (80, 24)
DEATHS = (
    ("orders", "orders-3-4f1c9d60-6d55-4a0c-a5b8-9a0c52c0aa01", "session_timeout"),
    ("payments", "payments-7", "rebalance_timeout"),
    ("email-2", "email-2-0", "session_timeout"),
    ("orders", "orders-1-0b8e4a6e-93c0-4c1e-8d3f-57ab0e1f22d7", "session_timeout"),
    ("shipping-eu-west", "shipping-eu-west-12", "sync_timeout"),
    ("clicks", "clicks-4", "pending_timeout"),
    ("clicks", "clicks-9", "session_timeout"),
)


class Scene:
    """Frames of a quiet minute in which seven members died."""

    def __init__(self) -> None:
        self._picture = Picture()
        self._picture.link(True, now_ms=T0)
        deaths = [
            expired(group, member, T0 + number * 4_300, reason=reason)
            for number, (group, member, reason) in enumerate(DEATHS)
        ]
        canary = expired("heartwheel-canary-3", "canary", T0 + 28_000)
        shards = [status(batch_ms=T0 + seconds * 1_000, members=184) for seconds in (24, 28, 31)]
        rows: list[Row] = [job(T0 + 31_000), *shards, *deaths, canary]
        self._picture.apply(topic_rows(*rows, joined("payments", "payments-7", at_ms=T0 + 9_000)), now_ms=T0 + 32_000)

    def frame(self, text: str = "") -> Frame:
        """Take a frame."""
        return frame_of(self._picture, View(), now_ms=T0 + 32_000, text=text)

    def at_risk(self, text: str = "") -> list[AtRisk]:
        """List who is next."""
        return risk_of(self._picture, now_ms=T0 + 32_000, text=text)


async def draw() -> str:
    """Draw the screen, and read it as a person does."""
    app = Top(Scene(), frame_s=60, risk_s=60)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        strips = app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def test_the_screen_is_drawn_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 80x24, in UTC: line by line what the file has."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        drawn = asyncio.run(draw())
    finally:
        monkeypatch.undo()
        time.tzset()
    assert SCREEN.read_text(encoding="utf-8") == drawn + "\n"
