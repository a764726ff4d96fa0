"""A real browser: Debian's Chromium, driven by Playwright; what a page complains of is kept for the test to see.

Its headless shell is the same engine without the windows of Chromium around it, which nobody sees in a test: a page
costs it three fifths of the CPU time.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

_PROGRAMS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM: Final = next(filter(None, map(shutil.which, _PROGRAMS)), None)
NO_CHROMIUM: Final = "no Chromium here; apt-get install chromium-headless-shell"

_FLAGS: Final = (
    "--no-sandbox",  # tests run as root in containers; the page is ours
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    # Two processes fewer to talk to: a twentieth of the CPU time.
    "--in-process-gpu",
    "--enable-features=NetworkServiceInProcess2",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # containers have little of it
    "--enable-precise-memory-info",
    "--js-flags=--expose-gc",
)

expect.set_options(timeout=30_000)  # a busy machine is slow, and no test is about speed

HEAP_BYTES: Final = "(gc(), performance.memory.usedJSHeapSize)"
"""Asks a page how much its scripts hold, once what they let go is gone."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a headless Chromium with a profile of its own, or skip by name where there is none."""
    if CHROMIUM is None:
        pytest.skip(NO_CHROMIUM)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


_CLICK: Final = """(url) => {
  const link = Object.assign(document.createElement("a"), { href: url });
  document.body.append(link);
  link.click();
  link.remove();
}"""
_SIZE: Final[ViewportSize] = {"width": 1280, "height": 800}


class Tab:
    """One tab, and what the browser complained of in it.

    Args:
        browser: where to open it.
        url: what addresses are relative to.
        context: of Playwright, such as `viewport` or `color_scheme`.
    """

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        wanted = {"viewport": _SIZE, "locale": "en-GB", "timezone_id": "Europe/Berlin"}
        self._context = browser.new_context(**{**wanted, **context})
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(60_000)
        self.complaints: list[str] = []
        self._url = url
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type in {"error", "warning"}:
            self.complaints.append(said.text)

    def open(self, path: str) -> Page:
        """Go to a page, and wait until it shows data."""
        self.page.goto(self._url + path)
        expect(self.page.locator("#health-pill")).to_be_visible()
        return self.page

    def go(self, path: str) -> Page:
        """Go to another page of the server as by a click on a link, for a seventh of the CPU time of opening it."""
        if self.page.url == "about:blank":
            return self.open(path)
        self.page.evaluate(_CLICK, self._url + path)
        return self.page

    def turn_to(
        self, url: str, *, viewport: ViewportSize = _SIZE, color_scheme: Literal["light", "dark"] = "light"
    ) -> None:
        """Use it for another server, as a new tab of that size and colour scheme."""
        self._url = url
        self.page.set_viewport_size(viewport)
        self.page.emulate_media(color_scheme=color_scheme)

    def leave(self) -> None:
        """Leave the page, and forget what it kept and what the browser complained of."""
        self.page.goto("about:blank")
        self.page.mouse.move(0, 0)  # or the next page finds the mouse where the last click was
        devtools = self._context.new_cdp_session(self.page)
        devtools.send("Storage.clearDataForOrigin", {"origin": self._url, "storageTypes": "cookies,local_storage"})
        devtools.detach()
        self.complaints.clear()

    def close(self) -> None:
        """Close it."""
        self._context.close()
