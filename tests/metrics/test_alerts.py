"""The alerts and the Grafana dashboard ask for metrics that exist, and the alerts fire when they should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from heartwheel.readers.canary.judge import CanaryOutcome
from heartwheel.readers.metrics.catalogue import CATALOGUE
from heartwheel.readers.metrics.metric import MetricKind

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
RULES = DOCKER / "prometheus" / "rules" / "heartwheel.yml"
RULE_TESTS = DOCKER / "prometheus" / "tests" / "heartwheel_test.yml"
DASHBOARDS = sorted((DOCKER / "grafana" / "dashboards").glob("*.json"))
ALERTS = {
    "HeartwheelCanaryMissed": "canary-missed",
    "HeartwheelCanaryFalse": "canary-false",
    "HeartwheelLatenessOverObjective": "lateness-over-objective",
    "HeartwheelNoBatch": "no-batch",
    "HeartwheelClockHeld": "clock-held",
    "HeartwheelBrokerClocksApart": "broker-clocks-apart",
    "HeartwheelGroupEmpty": "group-empty",
    "HeartwheelGroupTooFew": "group-too-few",
    "HeartwheelGroupStorm": "group-storm",
    "HeartwheelGroupFlapping": "group-flapping",
    "HeartwheelGroupLatePolls": "group-late-polls",
    "HeartwheelGroupLosesMembers": "group-loses-members",
    "HeartwheelGroupLongRebalances": "group-long-rebalances",
    "HeartwheelWatcherBehind": "watcher-behind",
    "HeartwheelLogGaps": "log-gaps",
}
LABELS = {
    metric.name + suffix: {*metric.labels, *labels}
    for metric in CATALOGUE
    for suffix, labels in (
        [("_bucket", ("le",)), ("_sum", ()), ("_count", ())] if metric.kind is MetricKind.HISTOGRAM else [("", ())]
    )
}
"""The labels of everything that a query can name."""


def alerts() -> list[dict[str, Any]]:
    """Read the alert rules."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels(file: Path) -> list[dict[str, Any]]:
    """Read the panels of a Grafana dashboard that show something."""
    return [panel for panel in json.loads(file.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"]


def queries() -> Iterator[str]:
    """List every query of the alerts and of the dashboards."""
    yield from (rule["expr"] for rule in alerts())
    yield from (target["expr"] for file in DASHBOARDS for panel in panels(file) for target in panel["targets"])


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_queries_name_what_is_told(query: str) -> None:
    """Every metric that a query names is exported, and every label that it selects or groups by is one of them."""
    names = re.findall(r"heartwheel_\w+", query)
    assert names
    assert [name for name in names if name not in LABELS] == []
    known = set().union(*(LABELS[name] for name in names))
    grouped = {label.strip() for by in re.findall(r"\bby \(([^)]*)\)", query) for label in by.split(",")}
    selected = {name: set(re.findall(r"(\w+)=", inside)) for name, inside in re.findall(r"(\w+)\{([^}]*)\}", query)}
    assert grouped <= known
    assert all(labels <= LABELS[name] for name, labels in selected.items())
    assert set(re.findall(r'outcome="(\w+)"', query)) <= set(CanaryOutcome)


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_who_is_scraped_twice_is_not_counted_twice(query: str) -> None:
    """The job and the dashboard tell the same: a sum over both would be double, so every sum is one of maxima."""
    assert re.search(r"\bmax\b", query)
    assert not re.search(r"\bsum\b(?! ?\(max)", query)


def test_alerts_say_what_to_do() -> None:
    """Each waits before it fires, says how bad it is and what happened, and names a place in the runbook."""
    found = {}
    for rule in alerts():
        assert re.fullmatch(r"\d+m", rule["for"])
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"].endswith(".")
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/troubleshooting.md"
        found[rule["alert"]] = anchor
    assert found == ALERTS


def test_every_alert_is_fired_by_a_test_and_stays_quiet_in_another() -> None:
    """The rule tests let each alert fire, and let none fire while all is well."""
    cases = yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))["tests"]
    checks = [check for case in cases for check in case["alert_rule_test"]]
    assert {check["alertname"] for check in checks if check.get("exp_alerts")} == set(ALERTS)
    quiet = [check["alertname"] for check in cases[0]["alert_rule_test"] if not check.get("exp_alerts")]
    assert sorted(quiet) == sorted(ALERTS)


def test_series_of_the_rule_tests_are_told() -> None:
    """The rule tests feed metrics that exist: a typing error would let a rule pass that never fires."""
    cases = yaml.safe_load(RULE_TESTS.read_text(encoding="utf-8"))["tests"]
    names = {each["series"].partition("{")[0] for case in cases for each in case["input_series"]}
    assert names <= set(LABELS)


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "docker/prometheus/prometheus.yml"),
        ("test", "rules", "docker/prometheus/tests/heartwheel_test.yml"),
    ],
    ids=["config", "rules"],
)
def test_promtool_finds_nothing(arguments: tuple[str, ...]) -> None:
    """Prometheus' own tool reads the configuration, and sees every alert fire when it should and stay quiet else."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; it is in Debian's package prometheus")
    run = subprocess.run([promtool, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_promtool_reads_every_query_of_the_dashboards(tmp_path: Path) -> None:
    """The queries of the Grafana dashboards are PromQL, once Grafana has put its interval in."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; it is in Debian's package prometheus")
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "1m")}
        for number, query in enumerate(queries())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    run = subprocess.run([promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_a_dashboard_can_be_imported_beside_any_prometheus() -> None:
    """The one about groups asks the data source that is chosen in it; its list of groups is of a metric that exists."""
    page = json.loads(DASHBOARDS[0].read_text(encoding="utf-8"))
    source, group = page["templating"]["list"]
    assert (source["type"], source["query"]) == ("datasource", "prometheus")
    chosen = {"type": "prometheus", "uid": f"${{{source['name']}}}"}
    asking = [group, *page["panels"], *(target for panel in page["panels"] for target in panel["targets"])]
    assert all(each["datasource"] == chosen for each in asking)
    (metric, label) = re.fullmatch(r"label_values\((\w+), (\w+)\)", group["definition"]).groups()  # type: ignore[union-attr]
    assert group["query"]["query"] == group["definition"]
    assert label in LABELS[metric]
    uids = [json.loads(file.read_text(encoding="utf-8"))["uid"] for file in DASHBOARDS]
    assert len(set(uids)) == len(uids) > 1


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_panels_explain_themselves(file: Path) -> None:
    """Every panel has a title of its own, a unit and a sentence; none lies over another."""
    shown = panels(file)
    assert len({panel["title"] for panel in shown}) == len({panel["id"] for panel in shown}) == len(shown)
    assert all(panel["description"].endswith(".") and panel["fieldConfig"]["defaults"]["unit"] for panel in shown)
    cells = [
        (x, y)
        for panel in shown
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
