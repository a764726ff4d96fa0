"""What a person sees who opens the page of a running demo."""

from __future__ import annotations

from typing import Any, NamedTuple

from playwright.sync_api import Browser, expect

from support.browser import Tab


class Sight(NamedTuple):
    """Hold the oldest row of the table of expired members, cell by cell; what the API says of it; complaints."""

    cells: list[str]
    row: dict[str, Any]
    health: str
    complaints: list[str]


def look_at(browser: Browser, url: str) -> Sight:
    """Open the page, wait until somebody is in the table, and read."""
    one = Tab(browser, url.rstrip("/"))
    page = one.open("/expired")
    page.get_by_role("button", name="Pause").wait_for()
    expect(page.locator("tbody tr").first).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Pause").click()
    last = page.locator("tbody tr").last
    cells = [cell.inner_text() for cell in last.locator("td").all()]
    found = page.request.get(f"{url.rstrip('/')}/api/expirations", params={"member": cells[3].split("\n")[0]}).json()
    health = page.locator("#health-pill").inner_text()
    one.close()
    return Sight(cells, found["rows"][-1], health, one.complaints)
