"""Spread the tests over two lanes, and say at the end, a line each, whether those ran that need Docker or a browser."""

from __future__ import annotations

import functools
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

SUITES = {"docker": "docker", "ui": "browser"}
"""Marks of tests that not every machine can run, and what the line calls them."""

LANES = ("spark", "ui", "kafka")
"""Marks whose files stay together: their jobs, browsers and brokers would slow each other, or be started twice."""

SPREAD = ("tests/simulation/test_histories.py",)
"""Files whose tests need not stay together: each is long, and whichever lane is free takes the next."""

SPARK_ROOM = "tests/spark/"
"""Whose jobs fill one lane for as long as all that needs no Spark fills the other; then both share the other jobs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the lane that takes longest, and end with single files of jobs, so that both end together."""
    items.sort(key=lambda item: _turn_of(_file_of(item.nodeid)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Say which tests one worker runs, one after the other: those of a lane, or else of a file."""
    from xdist.scheduler import LoadScopeScheduling  # noqa: PLC0415 - only here if there are workers

    class ByLane(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid if _file_of(nodeid) in SPREAD else _lane_of(_file_of(nodeid))

    return ByLane(config, log)


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def _turn_of(file: str) -> tuple[bool, bool]:
    return _is_lone_job(file), "spark" not in _marks_of(file)


def _lane_of(file: str) -> str:
    return file if _is_lone_job(file) else next(iter(_marks_of(file)), file)


def _is_lone_job(file: str) -> bool:
    return "spark" in _marks_of(file) and not file.startswith(SPARK_ROOM)


@functools.cache
def _marks_of(file: str) -> list[str]:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return [mark for mark in LANES if f"pytest.mark.{mark}" in text]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Write a test's suites into its report, which also tells what another process has run."""
    report = yield
    report.suites = [mark for mark in SUITES if item.get_closest_marker(mark)]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Write the lines after pytest's own summary, just above its closing line."""
    yield
    for mark, name in SUITES.items():
        if line := _line(terminalreporter, mark, name):
            terminalreporter.write_line(line)


def _line(reporter: pytest.TerminalReporter, mark: str, name: str) -> str:
    def of(outcome: str) -> list[pytest.TestReport]:
        return [report for report in reporter.getreports(outcome) if mark in getattr(report, "suites", ())]

    ran = {report.nodeid for report in (*of("passed"), *of("failed"))}
    if skipped := of("skipped"):
        causes = sorted({_cause(report) for report in skipped})
        return f"{name} suite: {len(ran)} ran, {len(skipped)} skipped: {'; '.join(causes)}"
    return f"{name} suite: all {len(ran)} ran" if ran else ""


def _cause(report: pytest.TestReport) -> str:
    place = report.longrepr
    return str(place[2]).removeprefix("Skipped: ") if isinstance(place, tuple) else str(place)
