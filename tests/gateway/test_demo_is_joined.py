"""The demo can be fed by curl while it runs."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from support.job import wait_for


@pytest.mark.proof
@pytest.mark.spark
@pytest.mark.kafka
def test_a_newcomer_with_curl_comes_and_goes(tmp_path: Path) -> None:
    """A beat by the line that the demo prints makes a member whom the page lists, and whom silence expires."""
    flags = ["--groups", "3", "--members", "4", "--set", "engine.trigger_interval=500ms", "--set", "dashboard.port=0"]
    command = [sys.executable, "-m", "heartwheel", "demo", "--folder", str(tmp_path / "demo"), *flags]
    said = tmp_path / "said"
    with said.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            wait_for(lambda: "  expired  " in said.read_text(), "the demo to be live")
            text = said.read_text()
            page = re.search(r"http://127\.0\.0\.1:\d+/(?=\s)", text)
            line = re.search(r"curl -X POST '(\S+)/beat/mine/me\?session=10s'", text)
            assert page is not None
            assert line is not None
            assert httpx.post(f"{line[1]}/beat/mine/me?session=10s", timeout=20).json() == {"accepted": 1}
            begun = time.monotonic()
            wait_for(lambda: httpx.get(f"{page[0]}api/groups/mine", timeout=20).is_success, "the group to be listed")
            print(f"listed after {time.monotonic() - begun:.1f} s")  # noqa: T201 - how long it took is worth to know
            wait_for(
                lambda: '"me"' in httpx.get(f"{page[0]}api/expirations", timeout=20).text, "the member to be expired"
            )
            process.send_signal(signal.SIGINT)
            assert process.wait(120) == 0, said.read_text()
        finally:
            process.kill()
