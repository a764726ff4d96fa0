"""The page is package data: who installs heartwheel from its wheel has all of it, and nothing of the tests."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = "streaming/heartwheel/dashboard/page"


def test_wheel_holds_the_page(tmp_path: Path) -> None:
    """Every file of the page is in the built wheel, beside the module that serves it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(built).namelist())
    page = {file.relative_to(ROOT / "streaming").as_posix() for file in (ROOT / PAGE).rglob("*") if file.is_file()}
    assert len(page) > 40
    assert page <= packed
    assert not any(name.startswith("tests") for name in packed)
