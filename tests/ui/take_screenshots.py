"""Take the screenshots of the documentation: every page at one made-up moment, light and dark, wide and narrow."""

from __future__ import annotations

import argparse
import datetime as dt
import io
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from support.browser import Tab, chromium
from support.dashboard_scene import Scene, canary_figures
from support.dashboard_server import FedDashboard, dashboard

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


def main() -> None:
    """Write the files, and say how large they are."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--to", type=Path, default=ROOT / "docs" / "images", help="the folder to write to")
    wanted.add_argument("--only", default=",".join(PAGES), help="pages, with commas between them")
    asked = wanted.parse_args()
    asked.to.mkdir(parents=True, exist_ok=True)
    scene = Scene(MOMENT_MS, seed=17)
    with dashboard(history=scene, canary=canary_figures, now_ms=lambda: MOMENT_MS) as server, chromium() as browser:
        server.tell(scene.past())
        server.tell(scene.second(MOMENT_MS - 400))
        for scheme, width in VIEWS:
            take(browser, server, scheme, width, asked.to, asked.only.split(","))


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


def member_path(server: FedDashboard) -> str:
    """Pick a member that was expired and came back."""
    row = next(row for row in reversed(server.picture.window.rows) if row.returned_ms and row.group_instance_id)
    return f"/members/{quote(row.group_id, safe='')}/{quote(row.member_id, safe='')}"


def shot(page: Page, width: int) -> bytes:
    """Take a page as far as it goes, with as few colours as keep the file small."""
    height = min(page.evaluate("document.documentElement.scrollHeight"), HEIGHT_MAX[width])
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
