"""The charts of page Now: axes that can be read, and as far back as the server keeps what happened."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from support.browser import Tab
from support.dashboard_rows import expired, job, status
from support.dashboard_server import FedDashboard, dashboard

pytestmark = pytest.mark.ui

RECORDS_LABELS = """
const drawn = new Map();
const paint = CanvasRenderingContext2D.prototype;
const { clearRect, fillText } = paint;
paint.clearRect = function (...box) {
  drawn.set(this.canvas, new Map());
  clearRect.apply(this, box);
};
paint.fillText = function (text, x, y, ...rest) {
  if (this.textAlign === "right") drawn.get(this.canvas)?.set(y, text);
  fillText.call(this, text, x, y, ...rest);
};
globalThis.labelsOf = (chart) => {
  const labels = [...drawn.get(chart.querySelector("canvas"))];
  return labels.sort(([one], [other]) => other - one).map(([, text]) => text);
};
"""
"""Keeps what stands at the y axis of each chart, from the bottom up: labels of that axis end where it begins."""


def labels(page: Page) -> list[list[str]]:
    """Read the y axes: expired, lateness, heartbeats, batches."""
    charts = page.locator(".charts .chart")
    expect(charts.locator("canvas")).to_have_count(4)
    return [chart.evaluate("labelsOf") for chart in charts.all()]


@pytest.mark.parametrize(("dead", "records"), [(1, 1), (2, 3), (3, 9), (0, 7)])
def test_no_two_lines_of_an_axis_read_the_same(
    tab: Callable[..., Tab], empty_dashboard: FedDashboard, dead: int, records: int
) -> None:
    """Small numbers have lines that are told apart: members are whole, and a rate below one is not written as 0."""
    now_ms = empty_dashboard.now_ms()
    empty_dashboard.tell(expired("orders", f"m{number}", now_ms - 30_000) for number in range(dead))
    empty_dashboard.tell(status(0, at_ms, counts={"records": records}) for at_ms in (now_ms - 20_000, now_ms - 15_000))
    empty_dashboard.tell([job(now_ms, shards=1)])
    one = tab(empty_dashboard, own=True)
    one.page.add_init_script(RECORDS_LABELS)
    members, lateness, heartbeats, batches = labels(one.open("/"))
    for axis in (members, lateness, heartbeats, batches):
        assert axis[0] == "0"
        assert len(set(axis)) == len(axis) >= 2, axis
    for axis in (members, heartbeats):
        apart = {round(float(above) - float(below), 6) for below, above in pairwise(axis)}
        assert len(apart) == 1, axis
    assert all(label.isdigit() for label in members)


def test_charts_go_back_as_far_as_is_kept(tab: Callable[..., Tab]) -> None:
    """An hour is offered where an hour is kept, no more; it is in the address, and shows what was half an hour ago."""
    with dashboard() as server:
        server.tell([expired("orders", "m", server.now_ms() - 1_800_000)])
        page = tab(server).open("/")
        field = page.get_by_role("combobox", name="Charts")
        expect(field.locator("option")).to_have_text(["Last 10 min", "Last 1 h"])
        expect(page.get_by_text("Kept: the last 1 h (dashboard.window).")).to_be_visible()
        chart = page.locator(".chart").first
        expect(chart).to_have_attribute("aria-label", "Expired members. expired: now 0, at most 0.")
        field.select_option("Last 1 h")
        expect(chart).to_have_attribute("aria-label", "Expired members. expired: now 0, at most 1.")
        expect(page.get_by_text("each bar is 30 s")).to_be_visible()
        assert page.url.endswith("/?range=3600000")
        page.reload()
        expect(chart).to_have_attribute("aria-label", "Expired members. expired: now 0, at most 1.")
