"""The page of a member of which little is known: it says what there is, and makes nothing up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest
from playwright.sync_api import expect

from heartwheel.base.wall_clock import wall_ms
from heartwheel.readers.live.history import member_history
from heartwheel.readers.live.history_documents import GroupTail, MemberHistory
from heartwheel.readers.live.scan import Beat
from heartwheel.wire.events import Event, EventType, Leaving
from heartwheel.wire.verdict_rows import ExpirationRow
from support.browser import Tab
from support.dashboard_rows import expired
from support.dashboard_server import FedDashboard, dashboard

pytestmark = pytest.mark.ui

GROUP: Final = "mine"
NOW_MS: Final = wall_ms()
ONCE: Final = "curled-once"
LEFT: Final = "went-home"


def _beat(member_id: str, before_ms: int) -> Beat:
    return Beat(NOW_MS - before_ms, Event(group_id=GROUP, member_id=member_id))


def _leave(member_id: str, before_ms: int, reason: str) -> Beat:
    leaving = (Leaving(member_id=member_id, reason=reason),)
    return Beat(NOW_MS - before_ms, Event(group_id=GROUP, type=EventType.LEAVE, leaving=leaving))


class History:
    """Stands for the heartbeat topic."""

    def member(self, _group: str, member_id: str, *, newest: ExpirationRow | None, **_now: int) -> MemberHistory:
        """Return the few events that there are."""
        beats = {
            ONCE: [_beat(ONCE, 60_000)],
            LEFT: [_beat(LEFT, 90_000), _leave(LEFT, 60_000, "the shift is over")],
        }
        return member_history(member_id, beats.get(member_id, []), newest, lambda: "")

    def tail(self, _group: str, **_now: int) -> GroupTail:
        """Return that nobody was seen."""
        return GroupTail(members=[], note="")


@pytest.fixture(scope="module")
def server() -> Iterator[FedDashboard]:
    """Run a dashboard over a group in which one was expired and one has left."""
    with dashboard(history=History()) as fed:
        fed.tell([expired(GROUP, ONCE, NOW_MS - 50_000)])
        yield fed


def test_one_heartbeat_is_one_event(server: FedDashboard, tab: Callable[..., Tab]) -> None:
    """Who has beaten once with curl sees that event, and no word of a topic that no longer has it."""
    page = tab(server).open(f"/members/{GROUP}/{ONCE}")
    part = page.locator(".panel", has=page.get_by_role("heading", name="How long it was silent"))
    expect(part).to_contain_text("1 event around it, from the heartbeat topic")
    expect(part.locator(".empty")).to_have_text("There is one event.The chart needs two.")
    expect(part.locator("details li")).to_have_count(1)


def test_who_left_is_said_to_have_left(server: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A member that said why it goes is not "alive, or unknown, or expired longer ago"."""
    page = tab(server).open(f"/members/{GROUP}/{LEFT}")
    verdict = page.locator(".verdict")
    expect(verdict.locator(".tag")).to_have_text("Left")
    expect(verdict).to_contain_text(": the shift is over.")
    expect(page.locator("main")).not_to_contain_text("It is alive, or unknown")
