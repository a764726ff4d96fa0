"""Page Timeline in a browser: a log that a person reads off it, hostile names, a time to choose, keys, and now."""

from __future__ import annotations

import gzip
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.sync_api import Page, expect

from heartwheel.settings import Settings
from heartwheel.settings.servers import DashboardSettings
from heartwheel.sources.explain.page import LogPage
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import Scanned
from support.broker_logs import REAL
from support.browser import Tab
from support.scripted_log import START_MS, lines_of, member, preparing, stable
from support.watching import watching

pytestmark = pytest.mark.ui

AXE = gzip.decompress((Path(__file__).parent / "vendor" / "axe.min.js.gz").read_bytes()).decode()
HOSTILE = ["<img src=x onerror=alert(1)>", '"><script>alert(2)</script>', "קבוצה", "x" * 240, "a/b?c#d%2e", ".."]
FAILS = "Member {} in group {} has failed, removing it from the group"


@pytest.fixture(scope="module")
def real() -> Iterator[SimpleNamespace]:
    """Serve the page on a real broker's log."""
    yield from _served(str(REAL / "server.log"))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Serve the page on a log whose groups and members were named by an enemy."""
    lines: list[tuple[float, str]] = []
    for number, group in enumerate(HOSTILE):
        names = [member(name, 10 * number + at) for at, name in enumerate(HOSTILE)]
        lines += [
            (number, preparing(at, f"Adding new member {name} with group instance id None", group))
            for at, name in enumerate(names)
        ]
        lines += [(number + 0.5, stable(9, group, 6)), (60 + number, FAILS.format(names[0], group))]
    log = tmp_path_factory.mktemp("hostile") / "server.log"
    log.write_text(lines_of(*sorted(lines)))
    yield from _served(str(log))


def _served(name: str) -> Iterator[SimpleNamespace]:
    scanned = Scanned()
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), [name]) as page:
        page.take(list(explain_logs([name], scanned, stdin=io.BytesIO(), joined=page.lanes.joined)), scanned)
        page.take([], scanned)
        yield SimpleNamespace(url=page.url.rstrip("/"))


def groups(page: Page) -> list[str]:
    """Read the names of the groups, in their order."""
    expect(page.locator(".group-lanes").first).to_be_visible()
    return page.locator(".group-lanes h2").all_inner_texts()


def test_who_was_removed_and_what_to_change(tab: Callable[..., Tab], real: SimpleNamespace) -> None:
    """The worst groups first; in each the members as lanes, and beside each removal its cause and its advice."""
    page = tab(real, color_scheme="light").open("/timeline")
    assert groups(page) == ["search", "billing", "video", "orders", "deploys", "clicks"]
    expect(page.locator(".figures-words")).to_contain_text("6 groups: 4 members removed, 34 rebalances, 1 storm")
    billing = page.locator(".group-lanes").nth(1)
    expect(billing.locator(".lane-name")).to_have_text(["4 rebalances", "billing-12 ids", "billing-2"])
    expect(billing.locator(".lane-mark.removed")).to_have_count(1)
    expect(billing.locator(".removal-head")).to_contain_text("Took itself out")
    expect(billing.locator(".removal-head")).to_contain_text("back 9.1 s later")
    expect(billing.locator(".removals")).to_contain_text("A max.poll.interval.ms of 14.1 s would have been enough.")
    expect(billing.locator(".removal-advice")).to_contain_text("raise max.poll.interval.ms")
    expect(page.locator(".group-lanes").nth(4).locator(".lane-storm")).to_have_count(1)
    waited = page.locator(".group-lanes").first.locator(".lane-rebalance.tone-bad")
    expect(waited).to_have_count(1)
    assert "waited for search-3-" in (waited.get_attribute("title") or "")
    label = billing.locator(".lane-track").nth(1).get_attribute("aria-label") or ""
    assert "removed: " in label
    assert label.endswith("a member at the end of the log")


def test_a_time_can_be_chosen_and_is_in_the_address(tab: Callable[..., Tab], real: SimpleNamespace) -> None:
    """By moments, by a click into the picture of all, and back by the browser's own way."""
    page = tab(real, color_scheme="light").open("/timeline")
    assert len(groups(page)) == 6
    page.get_by_label("From").fill("2026-11-22T02:12:24")
    expect(page.locator(".figures-words")).to_contain_text("22 Nov 02:12:24 to")
    assert "since_ms=" in page.url
    whole = page.url
    page.locator(".histogram-slot").first.click()
    expect(page).not_to_have_url(whole)
    page.go_back()
    expect(page).to_have_url(whole)
    page.locator(".segments button", has_text="Whole log").click()
    expect(page.locator(".figures-words")).to_contain_text("4 members removed")
    page.get_by_label("Filter by group").fill("vid")
    expect(page.locator(".group-lanes")).to_have_count(1)
    page.locator(".group-head a").click()
    expect(page.locator("h1")).to_have_text("video")
    expect(page.locator(".lane-mark.removed")).to_have_count(1)


def test_keys_lead_everywhere(tab: Callable[..., Tab], real: SimpleNamespace) -> None:
    """All that can be clicked to go somewhere can be reached by Tab."""
    page = tab(real, color_scheme="light").open("/timeline")
    assert groups(page)
    reached: set[str] = set()
    page.locator("h1").focus()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.textContent.trim() || document.activeElement.ariaLabel || ''")
        )
    assert {"Whole log", "1 h", "Earlier", "Later", "search", "billing", "video-2"} <= reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(tab: Callable[..., Tab], real: SimpleNamespace, scheme: str) -> None:
    """axe-core finds nothing serious: contrast, names of what can be used, roles."""
    one = tab(real, color_scheme=scheme)
    for path in ("/timeline", "/groups/deploys"):
        page = one.open(path)
        expect(page.locator(".lane-mark").first).to_be_visible()
        page.evaluate(AXE)
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []


@pytest.mark.parametrize("path", ["/timeline", "/groups/~.."])
@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_names_are_texts(tab: Callable[..., Tab], hostile: SimpleNamespace, path: str, width: int) -> None:
    """Markup is shown and not run, the longest is no wider than the page, and each group's page is found."""
    page = tab(hostile, viewport={"width": width, "height": 800}, color_scheme="dark").open(path)
    expect(page.locator(".lane").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    assert page.locator("main img, main script, main [onerror]").count() == 0
    if path == "/timeline":
        assert set(groups(page)) == set(HOSTILE)
        page.locator(".group-lanes h2 a", has_text="a/b?c#d%2e").click()
        expect(page.locator("h1")).to_have_text("a/b?c#d%2e")
        expect(page.locator(".lane")).to_have_count(1 + len(HOSTILE))


def test_a_log_that_is_followed_ends_now(tab: Callable[..., Tab], tmp_path: Path) -> None:
    """No page of a watcher speaks of the end of the log, a removal appears live, and a chosen time has its own end."""
    log, now = tmp_path / "server.log", time.time() - START_MS / 1000
    joins = f"Adding new member {member('a')} with group instance id None"
    log.write_text(lines_of((now - 60, preparing(0, joins)), (now - 59, stable(1, members=1))))
    with watching(tmp_path, log) as watcher:
        page = tab(SimpleNamespace(url=watcher.url.rstrip("/")), color_scheme="light").open("/")
        expect(page.locator(".figures-words")).to_contain_text("1 group: 0 members removed, 1 rebalance")
        expect(page.locator(".figures-words")).to_contain_text("until now")
        with log.open("a") as more:
            more.write(lines_of((time.time() - START_MS / 1000, FAILS.format(member("a"), "g"))))
        expect(page.locator(".removal-head")).to_contain_text("not back until now")
        until_ms = round(time.time() * 1000) + 1_000
        page.goto(f"{watcher.url.rstrip('/')}/timeline?since_ms={until_ms - 600_000}&until_ms={until_ms}")
        expect(page.locator(".removal-head")).to_contain_text("not back by the end of this time")
        label = page.locator(".lane-track").last.get_attribute("aria-label") or ""
        assert label.endswith("; not a member at the end of this time")
        texts = [page.locator("main").inner_text()]
        for path in ("/expired", "/groups", "/groups/g", "/rebalances"):
            page.goto(f"{watcher.url.rstrip('/')}{path}")
            expect(page.locator("main .panel:visible").first).to_be_visible()
            texts.append(page.locator("main").inner_text())
        assert [text for text in texts if "end of the log" in text or "log ended" in text] == []
