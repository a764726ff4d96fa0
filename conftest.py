"""Say at the end of a test run, in one line, whether the tests on a Kafka container ran, and if not why."""

from __future__ import annotations

from collections.abc import Generator

import pytest

DOCKER_TESTS = pytest.StashKey[frozenset[str]]()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remember which tests need Docker; a report itself does not tell marks from names."""
    config.stash[DOCKER_TESTS] = frozenset(item.nodeid for item in items if item.get_closest_marker("docker"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """Write the line after pytest's own summary, just above its closing line."""
    yield
    line = _docker_line(terminalreporter)
    if line:
        terminalreporter.write_line(line)


def _docker_line(reporter: pytest.TerminalReporter) -> str:
    tests = reporter.config.stash.get(DOCKER_TESTS, frozenset())
    skipped = [report for report in reporter.getreports("skipped") if report.nodeid in tests]
    ended = [*reporter.getreports("passed"), *reporter.getreports("failed")]
    ran = tests & {report.nodeid for report in ended}
    if skipped:
        causes = sorted({_cause(report) for report in skipped})
        return f"docker suite: {len(ran)} ran, {len(skipped)} skipped: {'; '.join(causes)}"
    return f"docker suite: all {len(ran)} ran" if ran else ""


def _cause(report: pytest.TestReport) -> str:
    place = report.longrepr
    return str(place[2]).removeprefix("Skipped: ") if isinstance(place, tuple) else str(place)
