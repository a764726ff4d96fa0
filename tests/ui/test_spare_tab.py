"""The tab that tests share: each finds it as a new one."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from support.browser import Tab
from support.dashboard_server import FedDashboard

pytestmark = pytest.mark.ui


def test_tab_that_was_left_is_as_new(empty_dashboard: FedDashboard, browser: Browser) -> None:
    """What one test picked, or the browser complained of in it, is nothing that the next one finds."""
    one = Tab(browser, empty_dashboard.url, color_scheme="dark")
    page = one.open("/")
    page.get_by_role("button", name="Switch to light colours").click()
    page.evaluate("console.error('of the last test')")
    one.leave()
    one.turn_to(empty_dashboard.url, color_scheme="dark")
    one.open("/")
    expect(page.get_by_role("button", name="Switch to light colours")).to_be_visible()
    assert one.complaints == []
    one.close()
