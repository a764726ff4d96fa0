"""The layout: folders that must stay folders, and imports that go one way."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CLOCKS_AND_LOGS = {"time", "datetime", "logging", "threading", "asyncio", "random"}
OUTSIDE = {"pyspark", "kafka", "typer", "rich", "pydantic"}

ROOMS = {
    "wheel/timing_wheel": CLOCKS_AND_LOGS | OUTSIDE | {"heartwheel", "pyarrow", "pandas", "msgspec"},
    "streaming/heartwheel/settings": {"pyspark", "kafka", "pandas"},
    "streaming/heartwheel/kafka": {"pyspark", "typer", "rich"},
    "streaming/heartwheel/engine/time": CLOCKS_AND_LOGS | OUTSIDE,
    "streaming/heartwheel/engine/rules": CLOCKS_AND_LOGS | OUTSIDE,
    "streaming/heartwheel/engine/shard": CLOCKS_AND_LOGS | OUTSIDE,
    "streaming/heartwheel/engine/operations": CLOCKS_AND_LOGS | OUTSIDE,
    "streaming/heartwheel/engine/operations_job": {"typer", "rich"},
    "streaming/heartwheel/engine/runtime": {
        "typer",
        "rich",
        "heartwheel.engine.heartbeats",
        "heartwheel.engine.operations",
        "heartwheel.engine.operations_job",
        "heartwheel.engine.rules",
        "heartwheel.engine.shard",
    },
    "streaming/heartwheel/readers/canary": {"pyspark", "typer", "rich"},
    "streaming/heartwheel/readers/dashboard": {"pyspark", "typer", "rich"},
    "streaming/heartwheel/readers/http_server": {"pyspark", "typer", "rich", "kafka", "numpy", "pyarrow", "pydantic"},
    "streaming/heartwheel/readers/live": {"pyspark", "typer", "rich", "starlette", "uvicorn"},
    "streaming/heartwheel/readers/metrics": {"pyspark", "typer", "rich"},
    "streaming/heartwheel/readers/notify": {"pyspark", "typer", "rich", "starlette"},
    "streaming/heartwheel/readers/top": {"pyspark", "typer", "starlette", "httpx"},
    "streaming/heartwheel/sources/explain": {"pyspark", "typer", "rich", "kafka", "numpy", "pyarrow"},
    "streaming/heartwheel/sources/watch": {"pyspark", "typer", "rich", "kafka", "numpy", "pyarrow"},
    "streaming/heartwheel/sources/mcp_server": {"pyspark", "typer", "rich", "kafka", "numpy", "pyarrow"},
    "streaming/heartwheel/sources/gateway": {"pyspark", "typer", "rich", "numpy", "pyarrow"},
    "streaming/heartwheel/proof/audit": {"pyspark", "typer", "rich", "pydantic", "numpy", "timing_wheel"},
    "streaming/heartwheel/proof/members": {"pyspark", "typer", "rich"},
    "streaming/heartwheel/proof/simulation": CLOCKS_AND_LOGS - {"random"} | OUTSIDE,
}
"""What each room must not import; test_layers.py holds what they may of each other."""


def imports_of(file: Path) -> Iterator[str]:
    """List the modules that a file imports by their full names, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_inside(module: str, package: str) -> bool:
    """Tell whether a module is a package or part of it."""
    return module == package or module.startswith(package + ".")


@pytest.mark.parametrize(
    "folder", ["wheel", "streaming", "streaming/beats", "docker", "tests", "tests/docker", "tests/kafka", "conf"]
)
def test_folders_stay_folders(folder: str) -> None:
    """An `__init__.py` here would make a package that hides PyPA's wheel, Docker's client, or another's tests."""
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("room", ROOMS)
def test_imports_go_one_way(room: str) -> None:
    """The pure rooms know no Spark, no Kafka, no clock and no log; only the command line knows the command line."""
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in sorted((ROOT / room).rglob("*.py"))
        for module in imports_of(file)
        if any(is_inside(module, forbidden) for forbidden in ROOMS[room])
    ]
    assert wrong == []


def test_the_wheel_needs_numpy_alone() -> None:
    """`timing_wheel` can be taken out and used by anybody: it imports the standard library, NumPy and itself."""
    allowed = {*sys.stdlib_module_names, "numpy", "timing_wheel"}
    found = {
        module.partition(".")[0] for file in (ROOT / "wheel").rglob("*.py") for module in imports_of(file) if module
    }
    assert found - allowed == set()


def test_beats_need_nothing() -> None:
    """Workers install `heartwheel_beats` alone: the standard library, and kafka-python if asked to."""
    allowed = {*sys.stdlib_module_names, "kafka"}
    files = sorted((ROOT / "streaming" / "beats" / "heartwheel_beats").rglob("*.py"))
    found = {module.partition(".")[0] for file in files for module in imports_of(file) if module}
    assert files
    assert found - allowed == set()


def test_rooms_are_there() -> None:
    """A room that was renamed does not escape the rules above."""
    assert [room for room in ROOMS if not list((ROOT / room).glob("*.py"))] == []


def test_names_of_test_files_are_their_own() -> None:
    """Tests are not packages, so two files of one name cannot be collected together, and no test would run."""
    names = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_threads_are_workers() -> None:
    """Only `base/worker.py` makes threads: each one can be stopped, and logs what ended it.

    `heartwheel_beats` is a distribution of its own and has its own.
    """
    makers = [
        str(file.relative_to(ROOT))
        for folder in ("streaming/heartwheel", "wheel")
        for file in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Thread"
    ]
    assert makers == ["streaming/heartwheel/base/worker.py"]
