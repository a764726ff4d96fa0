"""Take the screenshots of the documentation: every page at one made-up moment, light and dark, wide and narrow.

Page Timeline is that of a watcher which reads a real broker's log, as if its last minute were the present one.
"""

from __future__ import annotations

import argparse
import datetime as dt
import io
import os
import re
import tempfile
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from support.broker_logs import REAL
from support.browser import Tab, chromium
from support.dashboard_scene import Scene, canary_figures
from support.dashboard_server import FedDashboard, dashboard
from support.watching import watching

ROOT = Path(__file__).parents[2]
MOMENT = dt.datetime(2026, 5, 12, 9, 41, 7, 500_000, tzinfo=dt.UTC)
MOMENT_MS = int(MOMENT.timestamp() * 1_000)
PAGES = {
    "now": "/",
    "expired": "/expired",
    "groups": "/groups",
    "at-risk": "/at-risk",
    "wheel": "/wheel?shard=5",
    "member": "",  # of the newest expiration whose member came back
    "group": "/groups/search-indexer",
    "storm": "/groups/fraud-scoring",
}
VIEWS = (("light", 1280), ("dark", 1280), ("light", 390))
HEIGHT_MAX = {1280: 1_640, 390: 2_000}
BYTES_MAX = 200_000
TIMELINE = "timeline"
TIMELINE_HEIGHT = {1280: 1_010, 390: 1_300}
LOG_TIME = re.compile(r"(?<=^\[)\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", re.MULTILINE)


def main() -> None:
    """Write the files, and say how large they are."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--to", type=Path, default=ROOT / "docs" / "images", help="the folder to write to")
    wanted.add_argument("--only", default=",".join((*PAGES, TIMELINE)), help="pages, with commas between them")
    asked = wanted.parse_args()
    asked.to.mkdir(parents=True, exist_ok=True)
    scene = Scene(MOMENT_MS, seed=17)
    with dashboard(history=scene, canary=canary_figures, now_ms=lambda: MOMENT_MS) as server, chromium() as browser:
        server.tell(scene.past())
        server.tell(scene.second(MOMENT_MS - 400))
        names = asked.only.split(",")
        for scheme, width in VIEWS:
            take(browser, server, scheme, width, asked.to, [name for name in names if name in PAGES])
        if TIMELINE in names:
            take_timeline(browser, asked.to.absolute())


def take(browser: Browser, server: FedDashboard, scheme: str, width: int, folder: Path, names: list[str]) -> None:
    """Take all pages in one scheme and width."""
    one = Tab(browser, server.url, color_scheme=scheme, viewport={"width": width, "height": 800})
    one.page.clock.set_fixed_time(MOMENT)
    for name in names:
        page = one.open(PAGES[name] or member_path(server))
        expect(page.locator("main").locator(".table tbody tr, .empty, .rings").first).to_be_visible()
        page.wait_for_timeout(700)  # charts are drawn a frame after their data
        file = folder / f"{name}-{scheme}{'' if width == 1280 else f'-{width}'}.png"
        file.write_bytes(shot(page, width))
        print(f"{file.name}: {file.stat().st_size / 1_000:.0f} kB")  # noqa: T201 - what the command is for
    one.close()


def take_timeline(browser: Browser, folder: Path) -> None:
    """Take the first page of a watcher on a real broker's log, with consumers killed, paused, slow and restarted."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as made:
        os.chdir(made)  # the page names its log as it was named to it
        Path("server.log").write_text(until_now((REAL / "server.log").read_text()))
        with watching(Path(made), Path("server.log")) as watcher:
            for scheme, width in VIEWS:
                one = Tab(
                    browser, watcher.url.rstrip("/"), color_scheme=scheme, viewport={"width": width, "height": 800}
                )
                page = one.open("/timeline?last=75000")
                expect(page.locator(".group-lanes").first).to_be_visible()
                page.wait_for_timeout(700)
                file = folder / f"{TIMELINE}-{scheme}{'' if width == 1280 else f'-{width}'}.png"
                file.write_bytes(shot(page, width, TIMELINE_HEIGHT[width]))
                print(f"{file.name}: {file.stat().st_size / 1_000:.0f} kB")  # noqa: T201 - what the command is for
                one.close()
        os.chdir(before)


def until_now(text: str) -> str:
    """Move the times of a log so that its last line is of a few seconds ago, in UTC."""
    layout = "%Y-%m-%d %H:%M:%S,%f"
    last = dt.datetime.strptime(LOG_TIME.findall(text)[-1], layout).replace(tzinfo=dt.UTC)
    later = dt.datetime.now(dt.UTC) - last

    def moved(found: re.Match[str]) -> str:
        at = dt.datetime.strptime(found[0], layout).replace(tzinfo=dt.UTC) + later
        return f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1_000:03d}"

    return LOG_TIME.sub(moved, text)


def member_path(server: FedDashboard) -> str:
    """Pick a member that was expired and came back."""
    row = next(row for row in reversed(server.picture.window.rows) if row.returned_ms and row.group_instance_id)
    return f"/members/{quote(row.group_id, safe='')}/{quote(row.member_id, safe='')}"


def shot(page: Page, width: int, height_max: int | None = None) -> bytes:
    """Take a page as far as it goes, with as few colours as keep the file small."""
    height = min(page.evaluate("document.documentElement.scrollHeight"), height_max or HEIGHT_MAX[width])
    taken = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
    for colours in (256, 128, 64):
        packed = io.BytesIO()
        Image.open(io.BytesIO(taken)).convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(
            packed, "PNG", optimize=True
        )
        if packed.tell() <= BYTES_MAX:
            break
    return packed.getvalue()


if __name__ == "__main__":
    main()
