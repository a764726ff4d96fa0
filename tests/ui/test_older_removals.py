"""Page Expired of a watcher in a browser: it goes back through the history, and to the newest again."""

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


def test_the_list_goes_back_through_the_history(tmp_path: Path, tab: Callable[..., Tab]) -> None:
    """A hundred removals are in memory; a button at their end leads to older ones, and the way back to the newest."""
    log = tmp_path / "server.log"
    fails = "Member {} in group g has failed, removing it from the group"
    log.write_text(lines_of(*((number * 60, fails.format(member("m", number))) for number in range(130))))
    with watching(tmp_path, log):
        pass
    with watching(tmp_path, log, dashboard={"port": 0, "expirations_max": 100}) as watcher:
        page = tab(SimpleNamespace(url=watcher.url.rstrip("/"))).open("/expired")
        rows = page.locator("main tbody tr")
        expect(rows).to_have_count(100)
        expect(rows.first).to_contain_text(member("m", 129))
        page.get_by_role("button", name="Older, from the history").click()
        expect(rows).to_have_count(30)
        expect(rows.first).to_contain_text(member("m", 29))
        expect(page.get_by_label("to", exact=True)).not_to_have_value("")
        expect(page.get_by_role("button", name="Older, from the history")).to_have_count(0)
        page.go_back()
        expect(rows.first).to_contain_text(member("m", 129))
