"""Files and functions that can be read at once: these lists only get shorter."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

LINES_OF_A_FILE = 300
LINES_OF_A_BODY = 40

LINES = {"source": 85_900, "page": 8_150, "tests": 74_200}
"""How many lines there may be: of Python, of the page's JavaScript and style sheets, and of tests.

The source had doubled in two weeks without anybody deciding it: a change that needs more raises the number, and says
what the lines are for.
"""

LONG_FILES = {
    "engine/shard/rules_path.py",
    "engine/shard/shard.py",
    "proof/audit/audit.py",
    "proof/audit/timeline.py",
    "sources/tap/run.py",
    "streaming/beats/heartwheel_beats/beating.py",
    "wheel/timing_wheel/wheel.py",
}
"""Files with more lines, which wait to be split."""

LONG_BODIES = {"advance.advance_shard", "draw.draw_plan", "status.status_of", "supervisor.supervise"}
"""Functions with a longer body. Parameters and docstring do not count: for a command they are its help page."""


def _lines(*patterns: str) -> int:
    tracked = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return sum(len((ROOT / name).read_text(encoding="utf-8").splitlines()) for name in tracked.stdout.splitlines())


def _files() -> Iterator[Path]:
    for folder in ("streaming", "wheel"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def _lines_of_body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_it_grows_by_decision() -> None:
    """Nothing has more lines than was decided, and no bound is more than 1 % above what there is."""
    found = {
        "source": _lines("streaming/*.py", "wheel/*.py"),
        "page": _lines("streaming/*.js", "streaming/*.css"),
        "tests": _lines("tests/*.py"),
    }
    assert {name: lines for name, lines in found.items() if not 0.99 * LINES[name] <= lines <= LINES[name]} == {}


def test_files_are_short() -> None:
    """A file has one subject; a longer one is on the list until it is split."""
    long = {
        str(file.relative_to(ROOT)).removeprefix("streaming/heartwheel/")
        for file in _files()
        if len(file.read_text(encoding="utf-8").splitlines()) > LINES_OF_A_FILE
    }
    assert long - LONG_FILES == set()


def test_functions_are_short() -> None:
    """A function's body fits on a screen; a longer one is on the list until it is split."""
    long = {
        f"{file.stem}.{node.name}"
        for file in _files()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _lines_of_body(node) > LINES_OF_A_BODY
    }
    assert long - LONG_BODIES == set()
