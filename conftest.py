"""Say at the end of a test run, in one line, whether the tests on a Kafka container ran, and if not why."""

from __future__ import annotations

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> object:
    """Write the line after pytest's own summary, just above its closing line."""
    result = yield
    line = _docker_line(terminalreporter)
    if line:
        terminalreporter.write_line(line)
    return result


def _docker_line(reporter: pytest.TerminalReporter) -> str:
    ran = [r for outcome in ("passed", "failed") for r in reporter.getreports(outcome) if _is_docker(r)]
    skipped = [report for report in reporter.getreports("skipped") if _is_docker(report)]
    if skipped:
        causes = sorted({_cause(report) for report in skipped})
        return f"docker suite: {len(skipped)} skipped: {'; '.join(causes)}"
    return f"docker suite: {len(ran)} ran" if ran else ""


def _is_docker(report: object) -> bool:
    return isinstance(report, pytest.TestReport) and "docker" in report.keywords


def _cause(report: pytest.TestReport) -> str:
    place = report.longrepr
    return str(place[2]).removeprefix("Skipped: ") if isinstance(place, tuple) else str(place)
