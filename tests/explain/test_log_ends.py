"""What a log's end cuts off: rebalances that still run, and times of which it tells nothing."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from heartwheel.cli.app import run
from heartwheel.explain.page import LogPage
from heartwheel.settings import Settings
from heartwheel.settings.models import DashboardSettings
from support.broker_logs import REAL, explained
from support.scripted_log import START_MS, lines_of, member, preparing, read, stable

NEW = member("g-2")
BEGUN = preparing(1, f"Adding new member {NEW} with group instance id None")
OPEN = lines_of((0, stable(1)), (2, BEGUN), (5, stable(9, "other")))


def test_a_rebalance_that_still_runs_is_an_event() -> None:
    """Its time is the log's end; one that was done, or whose group was unloaded, is not."""
    event = explained(OPEN)[-1]
    assert (event.kind, event.group_id, event.time_ms, event.caused_by) == ("rebalancing", "g", START_MS + 5_000, [NEW])
    assert (event.started_ms, event.duration_ms, event.generation_id) == (START_MS + 2_000, 3_000, 1)
    done = lines_of((0, BEGUN), (2, stable(2)))
    assert [each.kind for each in explained(done)] == ["rebalance"]


def test_it_is_told_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A real group that waits for a member: nobody says that no rebalance was seen of it."""
    log = tmp_path / "server.log"
    log.write_text("".join((REAL / "server.log").read_text().splitlines(keepends=True)[:922]))
    assert run(["explain", str(log)]) == 0
    answers = capsys.readouterr().out.split("\n\n")[-1].splitlines()
    assert answers[0].startswith(
        "Groups that still rebalance at the end of the log: search (for 3.1 s so far: a member "
    )
    search = next(line for line in answers if line.startswith("search: "))
    assert "still rebalancing when the log ended" in search
    assert "No rebalance was seen" not in search


def test_its_page_says_so(tmp_path: Path) -> None:
    """Its state is Kafka's, also of a group of which the log has nothing else; for whom it waits is not known."""
    only = lines_of((5, preparing(0, f"Adding new member {NEW} with group instance id None", "only")))
    names, events, scanned = read(tmp_path, OPEN + only)
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as shown:
        shown.take(events, scanned)
        for group in ("g", "only"):
            answer = httpx.get(f"{shown.url}api/groups/{group}").json()
            assert (answer["state"], answer["blocked"]) == ("PreparingRebalance", None)
            assert "still rebalancing" in answer["verdict"][0]
