"""What is public: the names that `heartwheel` exports, with their types. What users copy takes no others."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.resources
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

import heartwheel
from heartwheel import sessions

ROOT = Path(__file__).parents[2]

PUBLIC: Final = {
    "heartwheel": ["ExpiryReason", "Kind", "Verdict", "sessions", "testing", "tick"],
    "heartwheel.tick": ["Tick", "Ticker", "encode_tick", "is_tick", "new_run", "read_tick"],
    "heartwheel.testing": [
        "OUTAGE_MIN_MS",
        "RUN",
        "TICK_INTERVAL_MS",
        "LogBuilder",
        "ProducedRecord",
        "Read",
        "arrivals",
        "by_group",
        "frame_of",
        "read_records",
        "run_rules",
        "run_shard",
        "until",
    ],
}
"""Every public name. One more is a promise, and one less an upgrade: say so in the changelog."""

ENTRY_POINT: Final = "heartwheel.front.cli.main"
"""What the command `heartwheel` calls; `docs/managed-spark.md` calls it, too."""

PAGES: Final = ("README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))

PRELUDE: Final = """
from datetime import UTC, datetime, timedelta
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from heartwheel import sessions
spark: SparkSession
events: DataFrame
noon: datetime
"""
"""What `pyspark` has, and what the page says before."""

PROGRAM: Final = """
from heartwheel import ExpiryReason, Kind, Verdict, testing, tick
found: list[dict[str, object]] = sessions.test([], key="device", timeout="30 seconds")
sessions(events, key="device", timeout=30)  # type: ignore[arg-type]
sessions(events, key="device", timeout="30 seconds", emit=["left"])  # type: ignore[list-item]
sessions(events, key="device", timeout="30 seconds", until="1 minute")  # type: ignore[call-arg]
reveal_type(sessions(events, key="device", timeout=timedelta(seconds=30)))
reveal_type(tick.is_tick("value"))
reveal_type(tick.read_tick(b""))
reveal_type(testing.run_shard(testing.LogBuilder(), clock_ms=1))
def described(verdict: Verdict) -> tuple[Kind, bool]:
    return verdict.kind, verdict.reason in set(ExpiryReason)
from heartwheel import Sessions  # type: ignore[attr-defined]
"""
"""Wrong uses must be errors: an ignore without one is an error itself."""

REVEALED: Final = ("DataFrame", "Column", "Tick | None", "list[heartwheel.wire.verdicts.Verdict]")


def blocks_of(page: str) -> list[str]:
    """Return the Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def copied() -> Iterator[tuple[str, str]]:
    """List what a user copies, as names and code: the blocks of all pages, the examples, the cells of notebooks."""
    for page in PAGES:
        yield from ((page, block) for block in blocks_of(page))
    for file in sorted((ROOT / "examples").rglob("*.py")):
        yield file.name, file.read_text(encoding="utf-8")
    for file in sorted((ROOT / "examples").rglob("*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        yield from ((file.name, "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code")


def taken_from_heartwheel(code: str) -> Iterator[str]:
    """List what code imports of heartwheel, by full names."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "heartwheel")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "heartwheel":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("module", PUBLIC)
def test_the_exported_names_are_exactly_these(module: str) -> None:
    """Each is there and documented; a star takes these and no others."""
    found = importlib.import_module(module) if module != "heartwheel.tick" else heartwheel.tick
    assert sorted(found.__all__) == sorted(PUBLIC[module])
    starred: dict[str, Any] = {}
    exec(f"from {found.__name__} import *", starred)  # noqa: S102 - what a star takes
    assert starred.keys() - {"__builtins__"} == set(PUBLIC[module])
    for name in PUBLIC[module]:
        exported = getattr(found, name)
        assert not callable(exported) or exported.__doc__


def test_the_package_lists_what_is_public_and_nothing_else() -> None:
    """Completion in a shell shows the public names; any other is an error that names it."""
    assert dir(heartwheel) == PUBLIC["heartwheel"]
    with pytest.raises(AttributeError, match="'heartwheel' has no attribute 'Sessions'"):
        _ = heartwheel.Sessions  # type: ignore[attr-defined]


def test_what_users_copy_takes_public_names_alone() -> None:
    """Of the pages and the examples each imports what `heartwheel` exports, or the command's entry point."""
    public = {f"{module}.{name}" for module, names in PUBLIC.items() for name in names} | {ENTRY_POINT}
    taken = [(where, name) for where, code in copied() for name in taken_from_heartwheel(code)]
    assert {where for where, _ in taken} >= {"README.md", "docs/sessions.md", "devices.ipynb", "late_files.py"}
    assert [(where, name) for where, name in taken if name not in public] == []


def test_the_example_of_the_testing_kit_is_true() -> None:
    """That of `sessions.test` runs in tests/sessions."""
    failed, attempted = doctest.testmod(importlib.import_module("heartwheel.proof.testing"))
    assert (failed, attempted > 3) == (0, True)


def test_the_list_of_the_page_gives_what_its_text_says() -> None:
    """`sessions.test` in docs/sessions.md: device a has been silent for 30 seconds, and so has b in the end."""
    (code,) = (block for block in blocks_of("docs/sessions.md") if "sessions.test(" in block)
    names = {"sessions": sessions, "timedelta": timedelta, "noon": datetime(2026, 1, 1, 12, tzinfo=UTC)}
    *first, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(first, []), "page", "exec"), names)  # noqa: S102 - the page's own code
    rows = eval(compile(ast.Expression(last.value), "page", "eval"), names)  # noqa: S307 - likewise
    assert [(row["device"], (row["at"] - names["noon"]) / timedelta(seconds=1)) for row in rows] == [
        ("a", 30.0),
        ("b", 30.0),
        ("b", 70.0),
    ]


def test_the_package_says_that_it_is_typed() -> None:
    """The marker is in the package: without it, type checkers take all its names as of any type."""
    assert (importlib.resources.files("heartwheel") / "py.typed").is_file()


@pytest.mark.proof
def test_a_users_type_checker_sees_the_types(tmp_path: Path) -> None:
    """`mypy --strict` on the code of the pages and on a small program, with heartwheel installed and no settings."""
    blocks = [*blocks_of("docs/sessions.md"), *(block for block in blocks_of("README.md") if "sessions(" in block)]
    programs = []
    for number, code in enumerate([*blocks, PROGRAM]):
        programs.append(tmp_path / f"program_{number}.py")
        programs[-1].write_text(PRELUDE + code)
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *map(str, programs)]
    env = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert "error:" not in done.stdout, done.stdout
    revealed = re.findall(r'Revealed type is "(.+)"', done.stdout)
    assert len(revealed) == len(REVEALED)
    for shown, wanted in zip(revealed, REVEALED, strict=True):
        assert shown.endswith(wanted), shown
    assert done.returncode == 0
