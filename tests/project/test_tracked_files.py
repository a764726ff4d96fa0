"""The files of the project: no address of a service in them but those that people are meant to see."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

HOSTS = {
    "www.apache.org",  # the licence
    "json-schema.org",  # the name of a schema's dialect, never fetched
    "www.w3.org",  # the name of SVG's namespace, never fetched
}
"""Full host names that may stand in the project."""


def tracked_files() -> list[Path]:
    """List the files under version control, or skip where there is none (an unpacked archive)."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_files_name_no_service() -> None:
    """Where packages, jars and images come from is the machine's business: no file names such a host."""
    address = re.compile(r"[a-z][a-z0-9+]*://(?:[^/\s\"'<>@]*@)?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,})")
    found = [
        f"{file.relative_to(ROOT)}: {host}"
        for file in tracked_files()
        if file.parent.name != "vendor"  # kept as released, licences and all
        for host in address.findall(file.read_text(encoding="utf-8", errors="ignore"))
        if host not in HOSTS and not host.endswith((".example", ".invalid", ".test", ".local"))
    ]
    assert found == []


def test_scripts_can_be_run() -> None:
    """Every file that begins with an interpreter's line is executable, as the checkout gives it to others."""
    scripts = [file for file in tracked_files() if file.read_bytes().startswith(b"#!")]
    assert scripts
    assert [str(file.relative_to(ROOT)) for file in scripts if not file.stat().st_mode & 0o100] == []


def test_checkpoints_are_not_tracked() -> None:
    """Nobody's state ends up in the project: of checkpoints/ only the README is tracked."""
    inside = [file.name for file in tracked_files() if file.parent.name == "checkpoints" or "checkpoints" in file.parts]
    assert inside == ["README.md"]
