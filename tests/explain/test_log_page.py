"""`heartwheel explain --page`: the dashboard's pages on a broker's log, with no Kafka and no engine behind them."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE

import httpx
import pytest
from playwright.sync_api import expect

from heartwheel.settings import Settings
from heartwheel.settings.servers import DashboardSettings
from heartwheel.sources.explain.page import LogPage
from heartwheel.sources.explain.run import explain_logs, follow_logs
from heartwheel.sources.explain.scan import Scanned
from support.broker_logs import REAL
from support.browser import Tab, chromium
from support.job import wait_for
from support.scripted_log import lines_of, preparing

LOG = str(REAL / "server.log")
ANY_PORT = Settings(dashboard=DashboardSettings(port=0))


@pytest.fixture(scope="module")
def page() -> Iterator[LogPage]:
    """Serve what the real log tells."""
    scanned = Scanned()
    with LogPage(ANY_PORT, [LOG]) as shown:
        shown.take(list(explain_logs([LOG], scanned, stdin=io.BytesIO())), scanned)
        yield shown


def test_who_was_out_and_why(page: LogPage) -> None:
    """Kicks and poll timeouts are the rows of page Expired, each with its place in the log and its explanation."""
    rows = httpx.get(f"{page.url}api/expirations").json()["rows"]
    assert [(row["group_id"], row["reason"]) for row in rows] == [
        ("video", "session_timeout"),
        ("billing", "poll_timeout"),
        ("orders", "session_timeout"),
        ("search", "rebalance_timeout"),
    ]
    assert [row["evidence"] for row in rows] == [f"{LOG}:{line}" for line in (932, 931, 926, 923)]
    assert [bool(row["returned_ms"]) for row in rows] == [True, True, False, False]
    detail = httpx.get(f"{page.url}api/expirations/{rows[1]['id']}").json()
    assert "max.poll.interval.ms" in " ".join(detail["why"])
    only = httpx.get(f"{page.url}api/expirations", params={"reason": "poll_timeout"}).json()
    assert only["matched"] == 1


def test_what_rebalances_cost(page: LogPage) -> None:
    """Of each group how long, why, who was waited for, and the time lost a day; the worst group first."""
    answer = httpx.get(f"{page.url}api/rebalances").json()
    groups = {group["group_id"]: group for group in answer["groups"]}
    assert answer["groups"][0]["group_id"] == "deploys"
    assert (groups["deploys"]["rebalances"], groups["search"]["lost_ms"]) == (17, 7_023)
    day = {"day": "2026-11-22", "rebalances": 2, "lost_ms": 7_023, "unmeasured": 0}
    assert groups["search"]["days"] == [day]
    slow = groups["search"]["longest"][0]
    assert slow["blocked_by"] == ["search-3-7e035d05-bd47-40a2-bd11-9d56dc90aec6"]
    assert (slow["duration_ms"], slow["generation_id"], slow["cause"]) == (5_002, 2, "member_joined")
    assert any(row["empty"] for row in groups["orders"]["longest"])
    one = httpx.get(f"{page.url}api/rebalances", params={"group": "video"}).json()
    assert [group["group_id"] for group in one["groups"]] == ["video"]


def test_groups_stand_as_the_log_ends(page: LogPage) -> None:
    """A group is stable at its last generation, or empty."""
    groups = {row["group_id"]: row for row in httpx.get(f"{page.url}api/groups").json()["rows"]}
    assert (groups["video"]["state"], groups["video"]["generation_id"], groups["video"]["members"]) == ("Stable", 3, 2)
    assert (groups["orders"]["state"], groups["video"]["kind"]) == ("Empty", "classic")


def test_it_says_that_a_log_is_behind_it(page: LogPage) -> None:
    """There is no engine to trust or mistrust: the first page is who was out, and readiness is that of the log."""
    health = httpx.get(f"{page.url}api/now").json()["health"]
    assert health["state"] == "log"
    assert "server.log, up to 2026-11-22 02:12:51. 256 of 1,322 lines" in health["sentence"]
    assert httpx.get(f"{page.url}readyz").status_code == 200
    answer = httpx.get(page.url)
    assert (answer.status_code, answer.headers["location"]) == (307, "/timeline")


def test_it_fills_live(tmp_path: Path) -> None:
    """With `--follow` what is appended to a log shows up, also that a member came back."""
    lines = Path(LOG).read_text().splitlines(keepends=True)
    log = tmp_path / "server.log"
    log.write_text("".join(lines[:920]))
    over, scanned = threading.Event(), Scanned()
    with LogPage(ANY_PORT, [str(log)], follows=True) as shown:

        def read() -> None:
            for events in follow_logs([str(log)], scanned, stdin=io.BytesIO(), go_on=lambda: not over.is_set()):
                shown.take(events, scanned)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            wait_for(lambda: httpx.get(f"{shown.url}api/groups").json()["rows"], "what was there before")
            assert httpx.get(f"{shown.url}api/expirations").json()["rows"] == []
            with log.open("a") as more:
                more.write("".join(lines[920:]))
            back = wait_for(
                lambda: [row for row in httpx.get(f"{shown.url}api/expirations").json()["rows"] if row["returned_ms"]],
                "an expiration whose member came back",
            )
            assert {row["group_id"] for row in back} <= {"video", "billing"}
        finally:
            over.set()
            reader.join()


def test_a_pipe_that_ends_is_a_log_that_has_ended() -> None:
    """With `--follow -` the end of the log is now while the pipe is open, and after that it is where the log ended."""
    command = [sys.executable, "-u", "-m", "heartwheel", "explain", "--page", "--follow", "-", "--port", "0"]
    open_rebalance = lines_of((0, preparing(1, "a test", "late")))
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            url = process.stdout.readline().decode().strip()
            process.stdin.write(Path(LOG).read_bytes() + open_rebalance.encode())
            process.stdin.flush()
            wait_for(lambda: _verdict(url, "orders"), "what was there before")
            assert "data-follows" in httpx.get(f"{url}groups").text
            assert httpx.get(f"{url}api/lanes").json()["is_now"]
            process.stdin.close()
            wait_for(lambda: "It was still rebalancing when the log ended" in _verdict(url, "late"), "the log's end")
            assert "data-follows" not in httpx.get(f"{url}groups").text
            lanes = httpx.get(f"{url}api/lanes").json()
            assert (lanes["is_now"], lanes["to_ms"]) == (False, lanes["newest_ms"] + 1)
            sentence = httpx.get(f"{url}api/now").json()["health"]["sentence"]
            assert sentence.startswith("From the broker's log: -, up to ")
        finally:
            process.kill()


def _verdict(url: str, group: str) -> str:
    rows = httpx.get(f"{url}api/groups").json()["rows"]
    return " ".join(sentence for row in rows if row["group_id"] == group for sentence in row["verdict"])


@pytest.mark.ui
def test_a_person_sees_it(page: LogPage) -> None:
    """The pages that need an engine are not offered; the others say whose word they show."""
    # A browser of its own, closed again: while one runs, no test of this process can run an event loop.
    with chromium() as browser:
        tab = Tab(browser, page.url.rstrip("/"), color_scheme="light")
        shown = tab.open("/")
        expect(shown.locator("h1")).to_have_text("Timeline")
        expect(shown.locator(".tabs a:visible")).to_have_text(["Timeline", "Expired", "Groups", "Rebalances"])
        shown.locator(".tabs a", has_text="Expired").click()
        expect(shown.locator("#health-pill")).to_have_text("From a log")
        expect(shown.locator(".table tbody tr")).to_have_count(4)
        expect(shown.locator(".table tbody tr").nth(1)).to_contain_text("Took itself out")
        expect(shown.locator(".table tbody tr").first).to_contain_text("server.log:932")
        shown.locator(".tabs a", has_text="Rebalances").click()
        expect(shown.locator(".rebalances").first).to_contain_text("17 rebalances")
        expect(shown.locator(".strip-bar.tone-bad")).not_to_have_count(0)
        shown.locator(".rebalances a", has_text=re.compile("^search-3-")).first.click()
        expect(shown.locator(".why")).to_contain_text("max.poll.interval.ms")
        assert tab.complaints == []
        tab.close()
