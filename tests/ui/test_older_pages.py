"""Pages of groups and members of a watcher in a browser: what is not in memory comes from the history."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import expect

from support.browser import Tab
from support.scripted_log import lines_of, member
from support.watching import watching

pytestmark = pytest.mark.ui


def test_groups_and_members_go_back_through_the_history(tmp_path: Path, tab: Callable[..., Tab]) -> None:
    """A group with removals in memory says since when, and leads to older ones; one without any shows the old ones."""
    log = tmp_path / "server.log"
    fails = "Member {} in group {} has failed, removing it from the group"
    old = [(number * 60, fails.format(member("m", number % 9), f"a/{number % 2}")) for number in range(30)]
    new = [(90_000 + number, fails.format(member("m", number % 9), "a/1")) for number in range(1_000)]
    log.write_text(lines_of(*old, *new))
    with watching(tmp_path, log):
        pass
    kept = {"page_events_max": 1_000, "history_file": str(tmp_path / "history.db")}
    with watching(tmp_path, log, watch=kept) as watcher:
        page = tab(SimpleNamespace(url=watcher.url.rstrip("/"))).open("/groups/a%2F0")
        expect(page.locator(".verdict")).to_contain_text("15 times a member was thrown out")
        expect(page.locator("ol.timeline li")).to_have_count(15)
        page.get_by_role("link", name=member("m", 1)).first.click()
        expect(page.get_by_role("heading", name="Out 2 times in this log")).to_be_visible()
        page.goto(f"{watcher.url}groups/a%2F1")
        expect(page.locator(".facts")).to_contain_text("1,000 times since")
        expect(page.locator(".verdict")).to_contain_text("count for none of that")
        for shown in range(100, 1_000, 100):
            expect(page.locator("ol.timeline li")).to_have_count(shown)
            page.get_by_role("button", name="Older", exact=True).click()
        page.get_by_role("button", name="Older, from the history").click()
        expect(page.locator("ol.timeline li")).to_have_count(1_015)
        expect(page.get_by_text("1,015 of 1,015 lines.")).to_be_visible()
        page.get_by_role("link", name="Older, from the history").click()
        expect(page.locator("main tbody tr")).to_have_count(15)
        page.goto(f"{watcher.url}members/a%2F1/{member('m', 1)}")
        expect(page.get_by_role("heading", name="Out 111 times since")).to_be_visible()
        page.get_by_role("link", name="Older", exact=True).click()
        expect(page.get_by_role("heading", name="Out 63 times until")).to_be_visible()
        page.get_by_role("link", name="Older", exact=True).click()
        expect(page.get_by_role("heading", name="Out 13 times until")).to_be_visible()
        expect(page.locator("main tbody tr")).to_have_count(13)
