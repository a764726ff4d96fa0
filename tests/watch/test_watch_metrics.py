"""The metrics of a watcher: what logs say since it runs, once, and how it reads them."""

from __future__ import annotations

from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families as parsed

from heartwheel.sources.watch.service import Watcher
from support.broker_logs import REAL
from support.job import wait_for
from support.watching import watching


def metrics(watcher: Watcher) -> dict[tuple[str, ...], float]:
    """Read the metrics: values by name and labels."""
    text = httpx.get(f"{watcher.url}metrics").text
    return {
        (sample.name, *sample.labels.values()): sample.value for family in parsed(text) for sample in family.samples
    }


def test_metrics_count_what_is_new_once(tmp_path: Path) -> None:
    """Nothing of what the log had at the first start, what was appended, and after a restart what came meanwhile."""
    lines = (REAL / "server.log").read_text().splitlines(keepends=True)
    log = tmp_path / "server.log"
    log.write_text("".join(lines[:900]))
    with watching(tmp_path, log) as watcher:
        before = metrics(watcher)
        assert before["heartwheel_expirations_total", "session_timeout"] == 0
        assert before["heartwheel_log_lines_total",] == 900
        with log.open("a") as more:
            more.write("".join(lines[900:930]))
        wait_for(
            lambda: metrics(watcher)["heartwheel_expirations_total", "session_timeout"] == 1, "an expiry that is new"
        )
        assert metrics(watcher)["heartwheel_expirations_total", "rebalance_timeout"] == 1
    log.rename(tmp_path / "server.log.1")
    log.write_text("".join(lines[930:]))
    with watching(tmp_path, log) as watcher:
        told = metrics(watcher)
        removed = {key[1]: value for key, value in told.items() if key[0] == "heartwheel_expirations_total" and value}
        assert removed == {"session_timeout": 1, "poll_timeout": 1}
        assert told["heartwheel_group_expirations_total", "billing"] == 1
        assert told["heartwheel_rebalance_duration_seconds_count",] > 0
        assert told["heartwheel_log_lines_total",] == len(lines)
        assert (told["heartwheel_log_behind_bytes",], told["heartwheel_log_gaps_total",]) == (0, 0)


def test_groups_beyond_the_limit_share_a_label(tmp_path: Path) -> None:
    """However many groups a log names, `metrics.groups_max` bounds the series."""
    log = tmp_path / "server.log"
    log.write_text("")
    with watching(tmp_path, log, metrics={"groups_max": 1}) as watcher:
        with log.open("a") as more:
            more.write((REAL / "server.log").read_text())

        def removed() -> dict[str, float]:
            told = metrics(watcher)
            return {key[1]: told[key] for key in told if key[0] == "heartwheel_group_expirations_total"}

        wait_for(lambda: sum(removed().values()) == 4, "all removals")
        assert "other" in removed()
        assert len(removed()) <= 2
