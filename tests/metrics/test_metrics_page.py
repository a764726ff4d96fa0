"""The page about metrics, the catalogue and what is really exported are one and the same."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from heartwheel.readers.canary.members import CanaryMembers
from heartwheel.readers.canary.plan import plan_of
from heartwheel.readers.live.trouble import GroupsInTrouble, Trouble, TroubledGroup, TroubleKind
from heartwheel.readers.metrics import Metrics
from heartwheel.readers.metrics.catalogue import CATALOGUE, LOGS, SECTIONS
from heartwheel.readers.metrics.log_metrics import LogFigures, LogMetrics
from heartwheel.readers.metrics.metric import Metric, MetricKind
from heartwheel.readers.metrics.reference import page_with_reference
from heartwheel.settings import Settings
from heartwheel.wire.job import SilentPartition
from support.output_rows import begun, expired, job, joined, status, topic_rows

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
STANDARD = ("process_", "python_")


def full() -> Metrics:
    """Make metrics that have seen everything."""
    settings = Settings.model_validate({"engine": {"shards": 1}})
    of = Metrics(settings, memory=True, since_ms=0)
    silent = SilentPartition(0, 20_000, "the partition has no leader")
    ticker = job().ticker
    assert ticker is not None
    row = job(ticker=msgspec.structs.replace(ticker, silent_count=1, silent=(silent,), skew_ms=2))
    of.apply(topic_rows(expired("orders", "a"), begun("orders"), joined("orders", "a"), status(), row))
    of.link(True)
    members = CanaryMembers(plan_of(settings), member_id="c", missed_after_ms=1, objective_ms=1)
    of.canary.watch(lambda: members.figures(enabled=True))
    of.watch_groups(lambda: _troubled(known=True))
    return of


def _troubled(*, known: bool) -> GroupsInTrouble:
    storm = Trouble(kind=TroubleKind.STORM, words="9 rebalances", count=9)
    group = TroubledGroup(group_id="orders", troubles=[storm])
    return GroupsInTrouble(known=known, count=1, sentence="1 group in trouble", groups=[group])


def watcher() -> bytes:
    """Write the metrics of a watcher that has seen everything."""
    ignored = dict.fromkeys(("forged", "unreadable", "unknown", "too_long"), 1)
    figures = LogFigures(9, 3, ignored, lost=1, behind_bytes=7, newest_ms=1, history_bytes=4_096)
    of = LogMetrics(Settings(), figures=lambda: figures, troubles=lambda: _troubled(known=True))
    of.apply(topic_rows(expired("orders", "a"), begun("orders"), joined("orders", "a")), ["orders"])
    return of.text("text/plain")[0]


def told(text: bytes) -> dict[str, tuple[str, str, set[str]]]:
    """Read the kind, help and labels of each metric of ours."""
    found = {}
    for family in parsed(text.decode()):
        if family.name.startswith(STANDARD):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = (family.type, family.documentation, labels)
    return found


def test_groups_in_trouble_are_told_only_while_they_are_known() -> None:
    """A group in trouble has a series of each trouble; once the job is dead there is none, and no 0 that looks fine."""
    of, known = Metrics(Settings()), True
    of.watch_groups(lambda: _troubled(known=known))
    assert b'heartwheel_group_trouble{group="orders",kind="storm"} 1.0' in of.text()[0]
    assert b"heartwheel_groups_in_trouble 1.0" in of.text()[0]
    known = False
    assert b"trouble{" not in of.text()[0]
    assert b"heartwheel_groups_in_trouble 1" not in of.text()[0]


def test_what_is_told_is_in_the_catalogue_and_the_other_way_round() -> None:
    """Every name, kind, help and label that Prometheus gets stands in the catalogue, and none of it is missing."""
    catalogue = {metric.name: (metric.kind.value, metric.help, set(metric.labels)) for metric in CATALOGUE}
    of_logs = {metric.name for metric in SECTIONS[LOGS]}
    assert told(full().text()[0]) == {name: told for name, told in catalogue.items() if name not in of_logs}
    of_watcher = told(watcher())
    assert of_watcher == {name: catalogue[name] for name in of_watcher}
    assert of_logs <= of_watcher.keys()


def test_no_name_stands_for_two_metrics() -> None:
    """A metric is defined in one section."""
    assert len({metric.name for metric in CATALOGUE}) == len(CATALOGUE)


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_names_follow_the_practice_of_prometheus(metric: Metric) -> None:
    """Counters end in _total, times are seconds and sizes bytes."""
    assert (metric.kind is MetricKind.COUNTER) == metric.name.endswith("_total")
    assert not re.search(r"_(ms|minutes|kb|mb|count|sum|bucket)(_|$)", metric.name)
    assert metric.help.endswith((".", ";"))


def test_the_page_is_up_to_date() -> None:
    """docs/metrics.md has the reference that the catalogue makes: python -m heartwheel.readers.metrics.reference."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_reference(page)
    assert [metric.name for metric in CATALOGUE if f"| `{metric.name}` |" not in page] == []


def test_the_page_says_what_holds() -> None:
    """Ports, periods and limits on the page are those of the configuration."""
    page, settings = PAGE.read_text(encoding="utf-8"), Settings()
    assert f"`metrics.groups_max` ({settings.metrics.groups_max})" in page
    assert f"`canary.period` ({settings.canary.period_ms // 1000} s)" in page
    assert f"`canary.missed_after` ({settings.canary.missed_after_ms // 1000} s)" in page
    assert f"`{settings.canary.group_prefix}-<n>`" in page
    assert settings.metrics.port == 0
