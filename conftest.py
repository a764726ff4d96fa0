"""Spread the tests over lanes, and say at the end how long they took and whether all suites could run."""

from __future__ import annotations

import functools
import gc
import json
from collections import defaultdict
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

SHARED_SPARK = "spark: SparkSession"
"""What files with tests on the Spark of tests/spark/conftest.py have: they are a lane.

A file that starts jobs is a unit of its own.
"""

LONGEST = (
    "spark",
    "ui",
    "tests/spark/test_real_faults.py",
    "kafka",
    "tests/spark/test_job_live.py",
    *SPREAD,
    "tests/spark/test_block_files_live.py",
    "tests/packaging/test_extras.py",
    "tests/spark/test_bomb.py",
    "tests/spark/test_job.py",
    "tests/shard/test_block_files.py",
    "tests/examples/test_examples.py",
    "tests/spark/test_time_growth.py",
    "tests/watch/test_watch_command.py",
    "tests/spark/test_time_outages.py",
    "tests/spark/test_given_spark.py",
    "tests/packaging/test_release.py",
    "tests/tap/test_truth.py",
    "tests/cli/test_cli_demo.py",
    "tests/sessions/test_cuts.py",
    "tests/tap/test_started_late_truth.py",
    "tests/docs/test_docs_run.py",
    "tests/cli/test_commands_alone.py",
    "tests/tap/test_streams.py",
    "tests/examples/test_sessions_in_the_shell.py",
    "tests/security/test_secured_kafka.py",
    "tests/watch/test_kubernetes.py",
    "tests/spark/test_time_leader.py",
    "tests/operations/test_operations_job.py",
    "tests/tap/test_two_brokers.py",
    "tests/chart/test_chart_commands.py",
    "tests/spark/test_time_clock.py",
    "tests/cluster/test_cluster.py",
    "tests/packaging/test_images.py",
    "tests/spark/test_map_tasks.py",
    "tests/beats/test_beat_command.py",
    "tests/dashboard/test_dashboard_limits.py",
    "tests/chart/test_chart_objects.py",
    "tests/spark/test_state_function.py",
    "tests/audit/test_late_records.py",
    "tests/simulation/test_simulated_world.py",
    "tests/watch/test_watched_causes.py",
    "tests/watch/test_older_groups.py",
    "tests/mcp_server/test_mcp_server.py",
    "tests/replay/test_cut_recordings.py",
    "tests/shard/test_heartbeats.py",
    "tests/shard/test_epoch_paths.py",
    "tests/gateway/test_gateway.py",
    "tests/watch/test_docker.py",
)
"""What takes longest, and comes first: the short files fill up what is left, so that the workers end together.

Files with a job stand between others, as two jobs at a time slow each other. `artifacts/durations.json` says what each
file took.
"""

SLOWEST_SHOWN = 8
"""How many of the slowest files the end of a run names."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option by which a run writes its durations."""
    parser.addoption("--durations-json", metavar="FILE", help="write how many seconds each file of tests took")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from what is collected: 700,000 objects that live as long as the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
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


def _turn_of(file: str) -> int:
    return LONGEST.index(_lane_of(file)) if _lane_of(file) in LONGEST else len(LONGEST)


@functools.cache
def _lane_of(file: str) -> str:
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    marks = [mark for mark in LANES if f"pytest.mark.{mark}" in text]
    starts_jobs = "spark" in marks and SHARED_SPARK not in text
    return file if starts_jobs else next(iter(marks), file)


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
    if name := terminalreporter.config.getoption("durations_json"):
        _write_durations(terminalreporter, Path(name))
    for mark, name in SUITES.items():
        if line := _line(terminalreporter, mark, name):
            terminalreporter.write_line(line)


def _write_durations(reporter: pytest.TerminalReporter, path: Path) -> None:
    """Write the seconds of each file, the slowest first, and name some of these."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in (each for reports in reporter.stats.values() for each in reports):
        if isinstance(report, pytest.TestReport):
            seconds[_file_of(report.nodeid)] += report.duration
    slowest = {file: round(seconds[file], 1) for file in sorted(seconds, key=lambda file: -seconds[file])}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(slowest, indent=1) + "\n", encoding="utf-8")
    reporter.write_line(f"slowest files, of {len(slowest)} in {path}:")
    for file, total in list(slowest.items())[:SLOWEST_SHOWN]:
        reporter.write_line(f"{total:6.1f} s  {file}")


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
