"""The page is package data: who installs heartwheel from its wheel or builds its image has all of it, and no tests."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = "streaming/heartwheel/readers/dashboard/page"


def test_wheel_holds_the_page(tmp_path: Path) -> None:
    """Every file of the page is in the built wheel, beside the module that serves it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as wheel:
        packed = set(wheel.namelist())
        help_page = wheel.read("heartwheel/readers/dashboard/troubleshooting.md")
    page = {file.relative_to(ROOT / "streaming").as_posix() for file in (ROOT / PAGE).rglob("*") if file.is_file()}
    assert len(page) > 40
    assert page <= packed
    assert help_page == (ROOT / "docs" / "troubleshooting.md").read_bytes()
    assert not any(name.startswith("tests") for name in packed)


def test_image_is_given_what_it_copies() -> None:
    """Whatever docker/Dockerfile copies passes .dockerignore, and what the wheel is built of is copied."""
    passed = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE)
    image = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    copied = [source for line in re.findall(r"^COPY (?!--)(.+) \S+$", image, re.MULTILINE) for source in line.split()]
    assert len(copied) >= 8
    assert [source for source in copied if source not in passed] == []
    linked = [file.resolve() for file in (ROOT / "streaming").rglob("*") if file.is_symlink()]
    outside = {file.relative_to(ROOT).as_posix() for file in linked if not file.is_relative_to(ROOT / "streaming")}
    assert "docs/troubleshooting.md" in outside
    assert outside <= set(copied)
