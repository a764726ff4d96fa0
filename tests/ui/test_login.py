"""Logging in and out in a real browser, on a dashboard that lies under a path, as behind a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from heartwheel.base.wall_clock import wall_ms
from heartwheel.settings import Settings
from support.browser import Tab
from support.dashboard_scene import Scene
from support.dashboard_server import FedDashboard, dashboard
from support.login import PASSWORD, write_users

pytestmark = pytest.mark.ui

BASE = "/heartwheel"


class Clock:
    """The wall clock of a dashboard, which a test may set ahead."""

    ahead_ms = 0

    def __call__(self) -> int:
        """Return the time, epoch ms."""
        return wall_ms() + self.ahead_ms


@pytest.fixture
def clock() -> Clock:
    """Make the clock by which sessions end."""
    return Clock()


@pytest.fixture
def guarded(tmp_path: Path, clock: Clock) -> Iterator[FedDashboard]:
    """Run a dashboard over a shop's groups, under a path, that asks for a login."""
    scene = Scene(wall_ms())
    settings = {"base_path": BASE, "users_file": str(write_users(tmp_path / "users"))}
    with dashboard(now_ms=clock, history=scene, settings=settings) as server:
        server.tell(scene.past())
        server.tell(scene.second(server.now_ms()))
        yield server


@pytest.fixture
def page(browser: Browser, guarded: FedDashboard) -> Iterator[Page]:
    """Open a tab; it may complain of refused requests, of nothing else."""
    tab = Tab(browser, guarded.url)
    yield tab.page
    complaints = [text for text in tab.complaints if "401" not in text]
    tab.close()
    assert complaints == []


def log_in(page: Page, password: str = PASSWORD) -> None:
    """Fill in the form and send it."""
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def path_of(page: Page) -> str:
    """Tell which path a tab shows."""
    return urlsplit(page.url).path


def test_a_person_logs_in_walks_around_and_logs_out(page: Page, guarded: FedDashboard) -> None:
    """From the login back to what was wanted; every link stays under the base; after logging out all is closed."""
    page.goto(f"{guarded.url}/expired")
    assert path_of(page) == f"{BASE}/login"
    log_in(page, "wrong")
    expect(page.get_by_role("alert")).to_contain_text("Wrong name or password")
    log_in(page)
    expect(page.locator("h1")).to_have_text("Expired members")
    assert path_of(page) == f"{BASE}/expired"
    expect(page.locator(".account")).to_have_text("alice")
    for tab in ("Groups", "At risk", "Wheel", "Now", "Expired"):
        page.locator(".tabs").get_by_role("link", name=tab, exact=True).click()
        expect(page.locator(".tabs a[aria-current]")).to_have_text(tab)
        expect(page.locator("#health-pill")).to_be_visible()
        expect(page.locator("main").locator(".table tbody tr, .empty, .rings, .tile").first).to_be_visible()
    page.locator(".table tbody tr a").first.click()
    page.reload()
    expect(page.locator("#health-pill")).to_be_visible()
    addresses = page.evaluate(
        "[...document.querySelectorAll('a[href], link[href]')].map((one) => new URL(one.href).pathname)"
    )
    assert [each for each in addresses if not each.startswith(f"{BASE}/") and each != BASE] == []
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    page.go_back()
    # The page that the browser has kept asks anew, and is sent to the login: the next address has to wait for that.
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    page.goto(f"{guarded.url}/groups")
    assert path_of(page) == f"{BASE}/login"


def test_news_come_and_downloads_are_under_the_base(page: Page, guarded: FedDashboard) -> None:
    """The stream and the downloads work with the session's cookie, under the base path."""
    page.goto(f"{guarded.url}/expired")
    log_in(page)
    expect(page.locator("#health-pill")).to_be_visible()
    expect(page.locator(".table tbody tr").first).to_be_visible()
    with page.expect_download() as file:
        page.get_by_role("link", name="CSV").click()
    assert file.value.path().read_text(encoding="utf-8-sig").startswith("id,")
    expect(page.locator("#link-banner")).to_be_hidden()


def test_a_session_that_ended_leads_to_the_login_and_back(page: Page, guarded: FedDashboard, clock: Clock) -> None:
    """A page that stays open while its session ends sends its reader to the login, and then back to where they were."""
    page.goto(f"{guarded.url}/groups")
    log_in(page)
    expect(page.locator("h1")).to_have_text("Groups")
    # The server is there all the time: a page that finds nobody would complain of that.
    clock.ahead_ms = Settings().dashboard.session_ttl_ms
    page.wait_for_url(lambda url: "/login" in url)
    log_in(page)
    expect(page.locator("h1")).to_have_text("Groups")
    assert path_of(page) == f"{BASE}/groups"
