"""How the page bears 1,000 expirations a second for two minutes: heap, frames, long tasks.

Run it alone: `.venv/bin/python tests/benchmarks/page_bench.py`; `--json FILE` keeps the figures.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from heartwheel.base.percentiles import percentile

sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import Page
from rich.console import Console
from rich.table import Table

from support.browser import CHROMIUM, HEAP_BYTES, NO_CHROMIUM, Tab, chromium
from support.dashboard_rows import expired, job, status
from support.dashboard_server import FedDashboard, dashboard

WATCH = """
() => {
  window.frames_ms = [];
  window.tasks_ms = [];
  let last = performance.now();
  const step = (at) => { window.frames_ms.push(at - last); last = at; requestAnimationFrame(step); };
  requestAnimationFrame(step);
  new PerformanceObserver((list) => list.getEntries().forEach((one) => window.tasks_ms.push(one.duration)))
    .observe({ type: "longtask" });
}
"""


def main() -> None:
    """Measure, and print."""
    wanted = argparse.ArgumentParser(description=__doc__)
    wanted.add_argument("--seconds", type=int, default=120)
    wanted.add_argument("--rate", type=int, default=1_000, help="expirations a second")
    wanted.add_argument("--json", type=Path)
    asked = wanted.parse_args()
    if CHROMIUM is None:
        print(f"skipped: {NO_CHROMIUM}")  # noqa: T201 - what the command is for
        return
    figures = measure(asked.seconds, asked.rate)
    table = Table("figure", "value", title=f"{asked.rate:,} expirations a second for {asked.seconds} s")
    for name, value in figures.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=2) + "\n")


def measure(seconds: int, rate: int) -> dict[str, Any]:
    """Let a page follow the flood, and ask it how it fared."""
    with dashboard() as server, chromium() as browser:
        server.tell([job(server.now_ms())])
        page = Tab(browser, server.url).open("/expired")
        page.wait_for_timeout(2_000)
        page.evaluate(WATCH)
        cpu_s = time.process_time()
        highest = flood(server, page, seconds, rate)
        cpu_s = time.process_time() - cpu_s
        frames, tasks = page.evaluate("[window.frames_ms.slice(5), window.tasks_ms]")
        return {
            "heap MB at the end": round(page.evaluate(HEAP_BYTES) / 1e6, 1),
            "heap MB at most": round(highest / 1e6, 1),
            "frames": len(frames),
            "frame ms p50": round(percentile(frames, 0.5), 1),
            "frame ms p99": round(percentile(frames, 0.99), 1),
            "frame ms longest": round(percentile(frames, 1), 1),
            "tasks over 50 ms": len(tasks),
            "longest task ms": round(percentile(tasks, 1), 1),
            "elements": page.evaluate("document.querySelectorAll('*').length"),
            "server CPU share, feeding it included": round(cpu_s / seconds, 2),
        }


def flood(server: FedDashboard, page: Page, seconds: int, rate: int) -> float:
    """Tell expirations at an even pace; return the largest heap that was seen, bytes."""
    started, pushed, highest = time.monotonic(), 0, 0.0
    while (passed := time.monotonic() - started) < seconds:
        due = int(passed * rate) - pushed
        now_ms = server.now_ms()
        rows = [expired(f"group-{i % 50}", f"member-{i}", now_ms, shard=i % 8) for i in range(pushed, pushed + due)]
        server.tell([*rows, job(now_ms), status(0, now_ms)])
        pushed += due
        page.wait_for_timeout(100)
        highest = max(highest, page.evaluate("performance.memory.usedJSHeapSize"))
    return highest


if __name__ == "__main__":
    main()
