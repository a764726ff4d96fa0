"""One dashboard with an hour of a shop's life in it for tests that only look."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from heartwheel.base.wall_clock import wall_ms
from support.browser import Tab
from support.dashboard_scene import Scene, canary_figures
from support.dashboard_server import FedDashboard, dashboard


@pytest.fixture(scope="session")
def shop() -> Iterator[FedDashboard]:
    """Run a dashboard over a shop's groups, whose shards and job go on telling how they stand."""
    scene = Scene(wall_ms())
    settings = {"gateway_url": "http://127.0.0.1:8486"}
    with dashboard(history=scene, canary=canary_figures, settings=settings) as server:
        server.tell(scene.past())
        server.tell(scene.second(server.now_ms()))
        over = threading.Event()

        def go_on() -> None:
            while not over.wait(1):
                server.tell(scene.second(server.now_ms()))

        thread = threading.Thread(target=go_on)
        thread.start()
        yield server
        over.set()
        thread.join()


@pytest.fixture
def empty_dashboard() -> Iterator[FedDashboard]:
    """Run a dashboard that has been told nothing."""
    with dashboard() as server:
        yield server


@pytest.fixture(scope="module")
def spare_tab(browser: Browser) -> Iterator[Tab]:
    """Keep a tab from test to test: a new one loads and compiles every script again, for twice the CPU time."""
    one = Tab(browser, "about:blank")
    yield one
    one.close()


@pytest.fixture
def tab(browser: Browser, spare_tab: Tab) -> Iterator[Callable[..., Tab]]:
    """Give a function that opens a tab on a server; at the end no tab may have complained.

    The first tab of a test is the spare one, unless the test asks for its own or for more than a size and a colour
    scheme.
    """
    opened: list[Tab] = []

    def open_tab(server: Any, *, own: bool = False, **context: Any) -> Tab:
        if own or opened or context.keys() - {"viewport", "color_scheme"}:
            opened.append(Tab(browser, server.url, **context))
        else:
            spare_tab.turn_to(server.url, **context)
            opened.append(spare_tab)
        return opened[-1]

    yield open_tab
    complaints = [text for each in opened for text in each.complaints]
    for each in opened:
        if each is spare_tab:
            each.leave()
        else:
            each.close()
    assert complaints == []
