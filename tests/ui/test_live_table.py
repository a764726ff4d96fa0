"""The table of expired members as it lives: rows come as they happen, filters stay, a cut connection costs nothing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from support.browser import Tab
from support.dashboard_rows import expired, job, status, triggered
from support.dashboard_server import FedDashboard
from support.dashboard_wire import wire_to

pytestmark = pytest.mark.ui

HOSTILE = "<script>document.title = 'owned'</script><img src=x onerror=alert(1)>/../%2F'\"&"


def alive(server: FedDashboard) -> None:
    """Tell that a job runs, so that pages have a health to show."""
    now_ms = server.now_ms()
    server.tell([job(now_ms), *(status(shard, now_ms) for shard in range(8))])


def members(page: Page) -> list[str]:
    """List the members that the table shows, from the top."""
    found: list[str] = page.evaluate(
        "[...document.querySelectorAll('tbody td:nth-child(4) a')].map((a) => a.textContent)"
    )
    return found


def test_member_shows_up_with_reason_and_lateness(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A member that is expired while the page is open shows up, with its reason and lateness, and is explained."""
    server = empty_dashboard
    alive(server)
    page = tab(server).open("/expired")
    expect(page.get_by_text("No member was expired yet.")).to_be_visible()
    now_ms = server.now_ms()
    server.tell([expired("orders", "worker-1", now_ms - 700, late_ms=640)])
    row = page.locator("tbody tr").first
    expect(row).to_contain_text("worker-1")
    expect(row.locator("td").nth(1)).to_have_text("Silent")
    expect(row.locator("td").nth(4)).to_contain_text("6.6 s")
    expect(row.locator("td").nth(5)).to_contain_text("730 ms")
    expect(row.locator("td").nth(7)).to_have_text("not yet")
    back = triggered("rebalance_completed", "orders", now_ms, joined=("worker-1",), leader="worker-1", member_count=3)
    server.tell([back])
    expect(row.locator("td").nth(7)).to_have_text("700 ms")
    row.get_by_role("link", name="worker-1").click()
    expect(page.locator(".why")).to_contain_text("session.timeout.ms")
    expect(page.get_by_text("Came back 700 ms after its deadline")).to_be_visible()


def test_filters_survive_reload_and_going_back(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """Filters stand in the address: a reload and the way back from a detail keep them, and new rows obey them."""
    server = empty_dashboard
    alive(server)
    now_ms = server.now_ms()
    server.tell(expired(f"group-{i % 3}", f"m-{i}", now_ms - 90_000 + i * 1_000) for i in range(30))
    server.tell([expired("group-1", "m-late", now_ms - 50_000, reason="sync_timeout")])
    page = tab(server).open("/expired")
    page.keyboard.press("/")
    page.keyboard.type("group-1")
    expect(page.locator("tbody tr")).to_have_count(11)
    page.get_by_label("Filter by reason").select_option("sync_timeout")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.reload()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.get_by_label("Filter by text")).to_have_value("group-1")
    page.get_by_role("link", name="m-late").click()
    expect(page.locator("h1")).to_have_text("m-late")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Filter by reason")).to_have_value("sync_timeout")
    server.tell([expired("group-1", "m-new", now_ms, reason="sync_timeout"), expired("group-2", "m-other", now_ms)])
    expect(page.locator("tbody tr")).to_have_count(2)
    assert members(page) == ["m-new", "m-late"]


def test_cut_connection_costs_nothing(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """What happens while the connection is cut is there when it is back: no gap, no double; a banner said so."""
    server = empty_dashboard
    alive(server)
    now_ms = server.now_ms()
    with wire_to(server.port) as wire:
        one = tab(wire)
        page = one.open("/expired")
        server.tell([expired("orders", "before", now_ms)])
        expect(page.locator("tbody tr")).to_have_count(1)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        wire.cut()
        expect(page.locator("#link-banner")).to_contain_text("Connection lost")
        server.tell(expired("orders", f"meanwhile-{i}", now_ms + i) for i in range(20))
        wire.mend()
        expect(page.locator("#link-banner")).to_be_hidden()
        server.tell([expired("orders", "after", now_ms + 99)])
        expect(page.locator("tbody tr").first).to_contain_text("after")
        assert members(page) == ["after", *(f"meanwhile-{i}" for i in reversed(range(20))), "before"]
        # It was the stream that went on where it was, not the page that loaded anew.
        assert [url for url in asked if "/api/expirations" in url] == []
        assert all("ERR_" in text for text in one.complaints)  # of the cut itself the browser must complain
        one.complaints.clear()


def test_restarted_server_is_read_anew(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A server that was started anew knows no old ids: the page loads what it shows again, and goes on."""
    server = empty_dashboard
    alive(server)
    one = tab(server)
    page = one.open("/expired")
    now_ms = server.now_ms()
    server.tell([expired("orders", "before", now_ms)])
    expect(page.locator("tbody tr")).to_have_count(1)
    server.stop()
    server.tell([expired("orders", "meanwhile", now_ms + 1)])
    server.start()
    expect(page.locator("tbody tr")).to_have_count(2)
    server.tell([expired("orders", "after", now_ms + 2)])
    expect(page.locator("tbody tr")).to_have_count(3)
    assert members(page) == ["after", "meanwhile", "before"]
    one.complaints.clear()  # the server was away


def test_pause_holds_the_table_still(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A paused table does not move; it counts what came meanwhile, and shows it when it goes on."""
    server = empty_dashboard
    alive(server)
    now_ms = server.now_ms()
    server.tell([expired("orders", "first", now_ms)])
    page = tab(server).open("/expired")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Pause").click()
    server.tell(expired("orders", f"later-{i}", now_ms + i) for i in range(3))
    expect(page.get_by_role("button", name="Go on, 3 new")).to_be_visible()
    assert members(page) == ["first"]
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("tbody tr")).to_have_count(4)


def test_older_pages_and_back(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A hundred rows are on the page; older ones are one click away, the address names them, and Back leads back."""
    server = empty_dashboard
    alive(server)
    now_ms = server.now_ms()
    server.tell(expired("orders", f"m-{i}", now_ms - 300_000 + i) for i in range(250))
    page = tab(server).open("/expired")
    expect(page.locator("tbody tr")).to_have_count(100)
    page.get_by_role("button", name="Older").click()
    expect(page.locator("tbody tr").first).to_contain_text("m-149")
    assert "before=" in page.url
    page.go_back()
    expect(page.locator("tbody tr").first).to_contain_text("m-249")


def test_download_has_what_is_shown(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """CSV and JSON hold the rows that the filters let through."""
    server = empty_dashboard
    alive(server)
    now_ms = server.now_ms()
    server.tell(expired("orders" if i % 2 else "mails", f"m-{i}", now_ms + i) for i in range(6))
    page = tab(server).open("/expired?text=orders")
    expect(page.locator("tbody tr")).to_have_count(3)
    with page.expect_download() as csv_file:
        page.get_by_role("link", name="CSV").click()
    with page.expect_download() as json_file:
        page.get_by_role("link", name="JSON").click()
    rows = list(csv.DictReader(io.StringIO(csv_file.value.path().read_text())))
    assert [row["member_id"] for row in rows] == ["m-5", "m-3", "m-1"]
    assert [row["member_id"] for row in json.loads(json_file.value.path().read_bytes())] == ["m-5", "m-3", "m-1"]


def test_ids_full_of_markup_are_text(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A script tag as group and member id is shown as it is, everywhere, and its pages can be opened."""
    server = empty_dashboard
    alive(server)
    now_ms = server.now_ms()
    server.tell([expired(HOSTILE, HOSTILE, now_ms, client_id=HOSTILE, client_host=HOSTILE, group_instance_id=HOSTILE)])
    server.tell(
        [triggered("rebalance_triggered", HOSTILE, now_ms, awaiting=(HOSTILE + "!",), reason=HOSTILE, cause=HOSTILE)]
    )
    one = tab(server)
    for path in ("/", "/expired", "/groups"):
        page = one.open(path)
        expect(page.get_by_role("link", name=HOSTILE, exact=True).first).to_be_visible()
    page.get_by_role("link", name=HOSTILE, exact=True).first.click()
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(page.locator(".callout")).to_contain_text(HOSTILE)
    page = one.open(f"/members/{quote(HOSTILE, safe='')}/{quote(HOSTILE, safe='')}")
    expect(page.locator("h1")).to_have_text(HOSTILE)
    expect(page.locator(".why")).to_be_visible()
    assert page.title() == f"{HOSTILE} · heartwheel"
    assert page.locator("main script, main img").count() == 0


def test_unknown_ids_are_said_to_be_unknown(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """A deep link to a group, member or shard that nobody knows says so, and what to do."""
    server = empty_dashboard
    server.tell([job(server.now_ms())])
    one = tab(server)
    for path in ("/groups/nobody", "/members/nobody/nothing", "/wheel?shard=7"):
        page = one.open(path)
        expect(page.locator(".empty").first).to_be_visible()
    assert all("404" in text for text in one.complaints)  # the browser notes each answer that is no success
    one.complaints.clear()


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ("new DOMException('gone', 'AbortError')", "AbortError: gone"),
        ("new TypeError('network error')", "Error: The server's answer broke off."),
    ],
)
def test_half_an_answer_is_none(
    empty_dashboard: FedDashboard, tab: Callable[..., Tab], broken: str, error: str
) -> None:
    """An answer that ends in its middle, as its page is left or the server goes, is never shown as an empty one."""
    page = tab(empty_dashboard).open("/groups")
    asked = f"""async () => {{
      const {{ get }} = await import("/page/js/api.js");
      globalThis.fetch = async () => ({{ ok: true, json: () => Promise.reject({broken}) }});
      return get("/api/groups").then(() => "an answer", String);
    }}"""
    assert page.evaluate(asked) == error


def test_empty_dashboard_says_what_to_do(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """Before any job was seen every page says what it would show, and how to start one."""
    one = tab(empty_dashboard)
    page = one.open("/")
    expect(page.locator(".health h2").first).to_contain_text("Waiting")
    expect(page.locator(".health").first).to_contain_text("heartwheel run")
    expect(page.locator(".tile .figure").first).to_have_text("\u2013")
    expect(page.locator("#groups-pill")).to_have_text("Groups: not known")
    for path in ("/expired", "/groups", "/at-risk", "/wheel"):
        page = one.open(path)
        expect(page.locator(".empty")).to_be_visible()
    one.complaints.clear()  # of a wheel that is not there


def test_keyboard_alone_is_enough(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """Tab reaches the skip link first, then everything; Enter opens a member, Escape closes it; focus can be seen."""
    server = empty_dashboard
    alive(server)
    server.tell([expired("orders", "worker-1", server.now_ms())])
    page = tab(server).open("/expired")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    for _ in range(60):  # fields of a time have a stop for each of their parts
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "worker-1":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("worker-1")
    expect(page.locator("h1")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Expired members")


def test_theme_is_kept(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """The scheme of the system holds until a reader picks another one, which a reload keeps."""
    alive(empty_dashboard)
    page = tab(empty_dashboard, color_scheme="dark").open("/")
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Switch to light colours").click()
    light = page.evaluate(ground)
    assert light != dark
    page.reload()
    expect(page.get_by_role("button", name="Switch to dark colours")).to_be_visible()
    assert page.evaluate(ground) == light


def test_screen_readers_get_a_summary(empty_dashboard: FedDashboard, tab: Callable[..., Tab]) -> None:
    """New expirations are announced together in a polite region, not one by one."""
    server = empty_dashboard
    alive(server)
    page = tab(server).open("/")
    now_ms = server.now_ms()
    server.tell(expired("orders", f"m-{i}", now_ms + i) for i in range(12))
    announcer = page.locator("#announcer")
    expect(announcer).to_have_text("12 members expired.")
    expect(announcer).to_have_attribute("aria-live", "polite")


def test_what_the_wheel_has_moved_is_told_from_the_last_batch(
    empty_dashboard: FedDashboard, tab: Callable[..., Tab]
) -> None:
    """Two numbers beside one another are two numbers to a reader, too."""
    server = empty_dashboard
    now_ms = server.now_ms()
    server.tell([job(now_ms), status(0, now_ms, wheel_moves=99, wheel_fires=7)])
    page = tab(server).open("/wheel?shard=0")
    moved = page.locator(".facts div", has_text="Filed again").locator("dd")
    expect(moved).to_have_text("99")
    server.tell([status(0, now_ms + 1_000, wheel_moves=100, wheel_fires=7)])
    expect(moved).to_have_text("100, of these 1 in the last batch")
    expect(page.locator(".facts div", has_text="Ran out").locator("dd")).to_have_text("7")
