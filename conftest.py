"""Say at the end of a test run, a line each, whether the tests ran that need Docker or a browser, and if not why."""

from __future__ import annotations

from collections.abc import Generator

import pytest

SUITES = {"docker": "docker", "ui": "browser"}
"""Marks of tests that not every machine can run, and what the line calls them."""

TESTS = pytest.StashKey[dict[str, frozenset[str]]]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember which tests are in which suite; a report itself does not tell marks from names."""
    config.stash[TESTS] = {
        mark: frozenset(item.nodeid for item in items if item.get_closest_marker(mark)) for mark in SUITES
    }


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Write the lines after pytest's own summary, just above its closing line."""
    yield
    for mark, tests in terminalreporter.config.stash.get(TESTS, {}).items():
        line = _line(terminalreporter, SUITES[mark], tests)
        if line:
            terminalreporter.write_line(line)


def _line(reporter: pytest.TerminalReporter, name: str, tests: frozenset[str]) -> str:
    skipped = [report for report in reporter.getreports("skipped") if report.nodeid in tests]
    ended = [*reporter.getreports("passed"), *reporter.getreports("failed")]
    ran = tests & {report.nodeid for report in ended}
    if skipped:
        causes = sorted({_cause(report) for report in skipped})
        return f"{name} suite: {len(ran)} ran, {len(skipped)} skipped: {'; '.join(causes)}"
    return f"{name} suite: all {len(ran)} ran" if ran else ""


def _cause(report: pytest.TestReport) -> str:
    place = report.longrepr
    return str(place[2]).removeprefix("Skipped: ") if isinstance(place, tuple) else str(place)
