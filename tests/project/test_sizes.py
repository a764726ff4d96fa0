"""Files and functions that can be read at once: these lists only get shorter."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

LINES_OF_A_FILE = 300
LINES_OF_A_BODY = 40

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


def _files() -> Iterator[Path]:
    for folder in ("streaming", "wheel"):
        yield from sorted((ROOT / folder).rglob("*.py"))


def _lines_of_body(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


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
