"""Pages and comments name what exists: tests, files, modules, classes, and what CONTRIBUTING names in the code."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]
PAGES: Final = (
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / page for page in ("CONTRIBUTING.md", "README.md", "checkpoints/README.md")),
)
ids = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))

THEIRS: Final = {
    *("SystemTimer", "LogValidator", "UnifiedLog", "GroupCoordinator", "CurrentAssignmentBuilder"),
    *("OutOfMemoryError", "StackOverflowError"),
}
"""Classes of Kafka's and of Java's that pages name."""
_FILE = re.compile(r"(?<![\w/:.-])(?:[\w*.-]+/)*[\w*-]+\.(?:py|js)\b")
_PATH = re.compile(r"\b(?:streaming|wheel|tests|conf|docker|checkpoints)/[\w./-]+\.\w+")
_TEST = re.compile(r"\btest_\w+\b(?![\w*/]|\.py)")
_MODULE = re.compile(r"\b(?:heartwheel|heartwheel_beats|timing_wheel|benchmarks)(?:\.[a-z_]+)+\b(?!\.\w)")
_CLASS = re.compile(r"(?:[A-Z][a-z]+){2,}")
_DEFINED = re.compile(r"^ *(?:(?:async )?def |class )?(\w+)(?=[(\[:]| *=|: )", re.MULTILINE)
_CONFIGURATION: Final = (".toml", ".json", ".yml", ".log")


def quoted(text: str) -> list[str]:
    """Return what stands between backticks, in prose."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))


@functools.cache
def tracked() -> tuple[str, ...]:
    """Return the path of every file under version control, or skip where there is none (an unpacked archive)."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(path for path in done.stdout.split("\0") if (ROOT / path).is_file())


@functools.cache
def is_file(path: str) -> bool:
    """Return whether a file ends with this path, which may have `*` in it."""
    return any(fnmatchcase(f"/{file}", f"*/{path}") for file in tracked())


@functools.cache
def names() -> frozenset[str]:
    """Return the name of everything that Python code of the project defines: classes, functions, fields, constants."""
    found = set()
    for path in tracked():
        if path.endswith(".py"):
            found.update(_DEFINED.findall((ROOT / path).read_text(encoding="utf-8")))
    return frozenset(found)


def is_module(dotted: str) -> bool:
    """Return whether this is a module or a package, or a name that one of them defines."""
    path = dotted.replace(".", "/")
    owner, _, name = path.rpartition("/")
    return (
        is_file(f"{path}.py") or is_file(f"{path}/__init__.py") or (name in names() and is_file(f"{owner}.py"))
        or (name in names() and is_file(f"{owner}/__init__.py"))
    )  # fmt: skip


def missing_from(spans: list[str]) -> set[str]:
    """Return the tests, files and modules that are named here and are nowhere."""
    text = "\n".join(spans)
    files = {path for path in _FILE.findall(text) if not is_file(path)}
    tests = {name for name in _TEST.findall(text) if name not in names() and not is_file(f"{name}.py")}
    modules = {name for name in _MODULE.findall(text) if not name.endswith(_CONFIGURATION) and not is_module(name)}
    return files | tests | modules


@ids
def test_tests_files_and_modules_exist(page: Path) -> None:
    """Every test, file of code and module that a page names is there."""
    assert missing_from(quoted(page.read_text(encoding="utf-8"))) == set()


@ids
def test_paths_exist(page: Path) -> None:
    """Every path of a file that a page names, in prose or in a command, is there."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert [path for path in _PATH.findall("\n".join([*blocks, *quoted(text)])) if not (ROOT / path).exists()] == []


@ids
def test_code_does_not_break_over_a_line(page: Path) -> None:
    """What stands between backticks begins and ends on one line, as the tests of pages read it."""
    text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in text.splitlines() if line.count("`") % 2] == []


@ids
def test_classes_exist(page: Path) -> None:
    """Every class that a page names is one of the project, an alert, or one that is listed here."""
    alerts = (ROOT / "docker" / "prometheus" / "rules" / "heartwheel.yml").read_text(encoding="utf-8")
    known = names() | THEIRS | set(re.findall(r"alert: (\w+)", alerts))
    spans = (span.partition(".")[0] for span in quoted(page.read_text(encoding="utf-8")))
    assert {span for span in spans if _CLASS.fullmatch(span) and span not in known} == set()


def test_contributing_names_what_the_code_has() -> None:
    """A recipe's constants, fields and functions are defined somewhere in the code."""
    scripts = "\n".join(
        (ROOT / path).read_text(encoding="utf-8") for path in tracked() if path.endswith((".js", ".ci/run"))
    )
    known = names() | set(re.findall(r"\b\w+\b", scripts))
    spans = quoted((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    identifiers = {span for span in spans if re.fullmatch(r"[A-Za-z]+_\w+|[A-Z]\w+", span)}
    assert len(identifiers) > 10
    assert identifiers - known == set()


def test_docstrings_and_comments_name_what_exists() -> None:
    """Likewise for every test, file and module that the source names between backticks."""
    wrong = {}
    for path in tracked():
        if path.startswith(("streaming/", "wheel/", "tests/")) and path.endswith(".py"):
            spans = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", (ROOT / path).read_text(encoding="utf-8"))
            if missing := missing_from(spans):
                wrong[path] = missing
    assert wrong == {}
