"""Standard streams that are full or closed: a sentence and an exit code, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEARTWHEEL = f"{sys.executable} -m heartwheel"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, which opens and closes the streams."""
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", ["config", "explain --help"])
def test_full_output_is_named(command: str) -> None:
    """If nothing more can be written to the output, one error says so, also at the end of the process."""
    done = shell(f"{HEARTWHEEL} {command} >/dev/full")
    assert done.returncode == 1
    assert done.stderr == (
        "error: nothing more can be written: No space left on device\n"
        "hint: free some space where the output goes, and where the files of this command are\n"
    )


def test_closed_output_gets_nothing(tmp_path: Path) -> None:
    """A caller that closes the output does not want it: the command does its work."""
    log = tmp_path / "server.log"
    log.write_text("")
    done = shell(f"{HEARTWHEEL} explain {log} >&-")
    assert (done.returncode, done.stderr.splitlines()[0]) == (1, f"{log}: an empty file")


def test_closed_input_is_empty() -> None:
    """An input that the caller has closed has no lines."""
    done = shell(f"{HEARTWHEEL} explain - <&-")
    assert (done.returncode, "error: nothing was read" in done.stderr) == (1, True)
    assert "Traceback" not in done.stderr
