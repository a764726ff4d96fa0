"""The pages show commands that work, and what they print."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run

ROOT = Path(__file__).parents[2]
BLOCKS = [
    block
    for page in sorted((ROOT / "docs").glob("*.md"))
    for block in re.findall(r"^```console\n(\$ heartwheel replay.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
]


def _commands(block: str) -> list[tuple[str, list[str]]]:
    """Split a block into commands with the lines that they are shown to print."""
    return [
        (command, shown.splitlines())
        for command, shown in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE)
    ]


def _pattern(shown: list[str]) -> str:
    """Match what is shown: a line of dots stands for any lines, dots within a line for any rest of it."""
    lines = [r"(?:.*\n)*?" if line == "..." else re.escape(line.rstrip()).replace(r"\.\.\.", ".*") for line in shown]
    return "".join(line if line.endswith("*?") else rf"{line} *\n" for line in lines)


@pytest.mark.parametrize("block", BLOCKS)
def test_commands_print_what_is_shown(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every replay on a page succeeds and prints what stands below it."""
    shutil.copytree(ROOT / "tests" / "recordings", tmp_path / "tests" / "recordings")
    monkeypatch.chdir(tmp_path)
    commands = _commands(block)
    assert commands
    for command, shown in commands:
        program, *arguments = shlex.split(command)
        assert program == "heartwheel"
        assert run(arguments) == 0
        assert re.fullmatch(_pattern(shown), capsys.readouterr().out), command


def test_pages_have_commands() -> None:
    """The blocks were found: one on the page about replay, one on the page about timeouts."""
    assert len(BLOCKS) == 2
