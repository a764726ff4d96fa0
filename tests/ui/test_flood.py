"""A flood of expirations: the page stays small and goes on answering."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from support.browser import HEAP_BYTES, Tab
from support.dashboard_rows import expired, job, status
from support.dashboard_server import FedDashboard, dashboard

pytestmark = pytest.mark.ui

FLOOD = 120_000
"""Two minutes of a thousand a second."""

PIECE = 2_000
HEAP_BYTES_MAX = 150_000_000


def flood(server: FedDashboard) -> None:
    """Tell of all of them, in pieces that leave the server time to send each as a frame of its own."""
    for first in range(0, FLOOD, PIECE):
        now_ms = server.now_ms()
        rows = [expired(f"group-{i % 50}", f"member-{i}", now_ms, shard=i % 8) for i in range(first, first + PIECE)]
        server.tell([*rows, job(now_ms), status(0, now_ms)])
        time.sleep(0.1)  # paces the flood; nothing is judged by it


@pytest.mark.proof
def test_flood_leaves_the_page_small_and_alive(tab: Callable[..., Tab]) -> None:
    """After 120,000 expirations the heap is under 150 MB, the rows are bounded, the newest is on top, clicks work."""
    with dashboard(expirations_max=20_000) as server:
        server.tell([job(server.now_ms())])
        one = tab(server, own=True)
        page = one.open("/expired")
        flood(server)
        expect(page.locator("tbody tr").first).to_contain_text(f"member-{FLOOD - 1}")
        assert page.locator("tbody tr").count() == 100
        assert page.evaluate("document.querySelectorAll('*').length") < 6_000
        assert 0 < page.evaluate(HEAP_BYTES) < HEAP_BYTES_MAX
        expect(page.locator(".pager")).to_contain_text("came faster than could be sent one by one")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Go on")).to_be_visible()
        page.get_by_role("link", name="Now", exact=True).click()
        expect(page.locator(".tile", has_text="Expired a minute")).to_contain_text("20,000 in")
