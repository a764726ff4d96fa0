"""What `make dist` builds: the same bytes of the same commit, with its metadata as an index wants it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.distributions import FOLDERS, ROOT, build

COMMITTED_S = "1795600000"
VENV = Path(sys.prefix)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the tracked files to another place, with other times and rights."""
    target = tmp_path / "elsewhere"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith(("tests/", "node_modules")) or not (ROOT / name).exists():
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target / name, follow_symlinks=False)
        if not (target / name).is_symlink():
            (target / name).chmod(0o600)
            os.utime(target / name, (1_000_000_000, 1_000_000_000))
    return target


@pytest.mark.parametrize("name", FOLDERS)
def test_two_builds_have_the_same_bytes(name: str, copy: Path, tmp_path: Path) -> None:
    """Wheel and source depend on the commit, and not on the folder, the clock or the rights of files."""
    here = build(FOLDERS[name], tmp_path / "one", SOURCE_DATE_EPOCH=COMMITTED_S)
    there = build(copy / FOLDERS[name].relative_to(ROOT), tmp_path / "other", SOURCE_DATE_EPOCH=COMMITTED_S)
    for one, other in zip(here, there, strict=True):
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes()


def test_version_has_its_section_in_the_changelog() -> None:
    """The newest section is that of this version, dated unless it is still in work, and each entry is one line."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.MULTILINE)
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version is not None
    assert heads[0] == ("Unreleased", "") or heads[0][0] == version[1]
    assert all(date for name, date in heads if name != "Unreleased")
    newest = text.split("\n## ")[1]
    assert [line for line in newest.splitlines() if line.startswith("  ")] == []


@pytest.mark.proof
@pytest.mark.timeout(900)  # two environments are installed, and all is built twice
def test_dist_is_checked_and_reproducible(tmp_path: Path) -> None:
    """`make dist` of the last commit, twice: the same checksums, which are those of the files."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    sums = []
    for _ in range(2):
        # -o: the environment that runs the tests is not installed again.
        folders = [f"VENV={VENV}", f"SUPPLY={tmp_path}/supply", f"RELEASE={tmp_path}/release"]
        command = ["make", "-o", f"{VENV}/.installed", "dist", *folders]
        done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
        if done.returncode and re.search(r"No matching distribution|[Cc]onnection", done.stderr):
            pytest.skip("no index can be reached here for the tools of the release")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("PASSED") == 4
        sums.append((clone / "dist" / "SHA256SUMS").read_text(encoding="utf-8"))
    assert sums[0] == sums[1]
    assert subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=clone / "dist", check=False).returncode == 0
