"""The order of the tests over two workers, and what the end of a run says of their durations."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
QUICK = ("tests/wheel/test_wheel_geometry.py", "tests/project/test_memory_guard.py")


@pytest.fixture(scope="module")
def lanes() -> ModuleType:
    """Load the conftest.py of the project; tests import another one by that name."""
    spec = importlib.util.spec_from_file_location("lanes", ROOT / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_comes_first_is_there(lanes: ModuleType) -> None:
    """Each name is a lane or a file that is a unit: one that was renamed would come last, and nobody would see it."""
    files = [name for name in lanes.LONGEST if name not in lanes.LANES]
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert [file for file in files if lanes._lane_of(file) != file] == []


def test_the_longest_come_first(lanes: ModuleType) -> None:
    """A file that is not named comes after all that are."""
    files = [*QUICK, "tests/tap/test_truth.py", "tests/spark/test_job.py"]
    assert sorted(files, key=lanes._turn_of) == ["tests/spark/test_job.py", "tests/tap/test_truth.py", *QUICK]


def test_files_on_the_shared_spark_are_a_lane(lanes: ModuleType) -> None:
    """One worker runs them, on one JVM; a file that starts jobs is for any worker."""
    files = ["tests/spark/test_sessions_files.py", "tests/spark/test_frames.py", "tests/spark/test_job.py"]
    assert [lanes._lane_of(file) for file in files] == ["spark", "spark", "tests/spark/test_job.py"]


def test_a_run_writes_what_its_files_took(tmp_path: Path) -> None:
    """The file has every file that ran, the slowest first, and the summary names them."""
    written = tmp_path / "folder" / "durations.json"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *QUICK]
    command += ["--durations-json", str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    took = json.loads(written.read_text())
    assert set(took) == set(QUICK)
    assert list(took.values()) == sorted(took.values(), reverse=True)
    assert max(took.values()) > 0
    assert all(f" s  {file}\n" in done.stdout for file in QUICK)
