"""What is vendored is what was released: each VENDORED.md names every file of others with its hash."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("streaming/heartwheel/readers/dashboard/page/vendor", "tests/ui/vendor")


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_are_as_released(folder: str) -> None:
    """No file differs from its hash, none is unnamed, and none is missing."""
    path = ROOT / folder
    rows = (path / "VENDORED.md").read_text()
    named = dict(re.findall(r"^\| (\S+) \| \S+ \| [\d.]+ \| ([0-9a-f]{64}) \|$", rows, re.MULTILINE))
    there = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in path.iterdir()
        if file.name != "VENDORED.md"
    }
    assert there == named


def test_page_asks_no_other_host() -> None:
    """The page names no address of another host but the namespace of SVG, which nobody fetches."""
    page = ROOT / "streaming/heartwheel/readers/dashboard/page"
    ours = [
        file
        for file in page.rglob("*")
        if file.suffix in {".js", ".css", ".html", ".svg"} and "vendor" not in file.parts
    ]
    assert len(ours) > 30
    addresses = {address for file in ours for address in re.findall(r"https?://[^\s\"'<>)]+", file.read_text())}
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_page_needs_no_inline_script_or_style() -> None:
    """The content policy allows neither, so the markup holds neither."""
    html = (ROOT / "streaming/heartwheel/readers/dashboard/page/index.html").read_text()
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html) == []
