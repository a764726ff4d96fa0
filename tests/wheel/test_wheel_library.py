"""The library as a library: what it imports, what it exports, and whether its documentation tells the truth."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import timing_wheel
import timing_wheel.wheel
from timing_wheel import Geometry

MODULES = [f"timing_wheel.{module.name}" for module in pkgutil.iter_modules(timing_wheel.__path__)]
FORBIDDEN = {"time", "datetime", "logging", "threading", "asyncio", "socket", "os", "random"}


@pytest.mark.parametrize("name", ["timing_wheel", *MODULES])
def test_the_library_imports_only_numpy_and_pure_parts_of_the_standard_library(name: str) -> None:
    """No Spark, no Kafka, no clock, no logging: what it does follows from its arguments alone."""
    source = Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).partition(".")[0])
    assert imported <= (sys.stdlib_module_names - FORBIDDEN) | {"numpy", "timing_wheel"}


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_documentation_run(name: str) -> None:
    """Every `>>>` does what is written below it."""
    module = importlib.import_module(name)
    failures, attempts = doctest.testmod(module)
    assert failures == 0
    assert attempts > 0 or ">>>" not in str(module.__doc__)


def test_the_level_table_in_the_documentation_is_true() -> None:
    """Each row of the table gives the widths that the default geometry has."""
    units = {"ms": 1, "s": 1_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    rows = re.findall(r"^\| (\d) +\| ([^|]+)\| ([^|]+)\|$", str(timing_wheel.wheel.__doc__), re.MULTILINE)

    def ms(words: str) -> int:
        return sum(int(number) * units[unit] for number, unit in re.findall(r"(\d+) (\w+)", words))

    geometry = Geometry(100, 20)
    assert len(rows) == 5
    for level, spans, covers in rows:
        assert ms(spans) == geometry.spans[int(level)] * 100
        assert ms(covers) == list(geometry.limits(0))[int(level)] * 100


def test_everything_that_is_exported_exists_and_is_documented() -> None:
    """`__all__` is sorted and complete, and each class and function says what it does."""
    names = timing_wheel.__all__
    assert len(set(names)) == len(names)
    for name in names:
        exported = getattr(timing_wheel, name)
        assert not callable(exported) or exported.__doc__
