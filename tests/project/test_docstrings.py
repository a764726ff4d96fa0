"""Docstrings open with what a thing is or does: a class with a noun, a function with a verb that says its effect."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT = Path(__file__).parents[2]

SAYS_NOTHING: Final = {"Tell", "Let", "Hold", "Say", "Be", "Stand"}
"""First words that say neither: a class *is* something, a function returns, adds, raises or waits."""


def opened_by(words: set[str]) -> Iterator[str]:
    """List the classes and functions whose docstring opens with one of these words."""
    for folder in ("streaming", "wheel"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    first = (ast.get_docstring(node) or " ").split(maxsplit=1)
                    if first and first[0] in words:
                        yield f"{file.relative_to(ROOT)}: {node.name}"


def test_docstrings_say_what_a_thing_is_or_does() -> None:
    """No docstring opens with a word that says neither."""
    assert list(opened_by(SAYS_NOTHING)) == []
