"""What a broker's log does not tell is unknown on its page, and no zero."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from heartwheel.settings import Settings
from heartwheel.settings.servers import DashboardSettings
from heartwheel.sources.explain.page import LogPage
from support.scripted_log import START_MS, lines_of, member, preparing, read, stable

EPOCHS = lines_of(
    (0, "[GroupId quotes] Member Yk3yQq0TSVuRW1yU3oCQeg joins the consumer group using the consumer protocol."),
    (0, "[GroupId quotes] Bumped group epoch to 41."),
    (60, "[GroupId quotes] Member Zk3yQq0TSVuRW1yU3oCQeg fenced from the group because the member session expired."),
    (60, "[GroupId quotes] Bumped group epoch to 42."),
    (70, "[GroupId newborn] Member Ak3yQq0TSVuRW1yU3oCQeg joins the consumer group using the consumer protocol."),
    (70, "[GroupId newborn] Bumped group epoch to 1."),
    (71, "[GroupId newborn] Member Bk3yQq0TSVuRW1yU3oCQeg joins the consumer group using the consumer protocol."),
    (71, "[GroupId newborn] Bumped group epoch to 2."),
    (80, "[GroupId ghosts] Member Ck3yQq0TSVuRW1yU3oCQeg joins the share group using the share protocol."),
    (80, "[GroupId ghosts] Bumped share group epoch to 1."),
    (90, "[GroupId ghosts] Member Ck3yQq0TSVuRW1yU3oCQeg left the share group."),
    (90, "[GroupId ghosts] Bumped share group epoch to 2."),
    new=True,
)
CLASSIC = lines_of(
    (3, stable(7, "midway", 3)),
    (50, f"Member {member('mid-1')} in group midway has failed, removing it from the group"),
    (50, preparing(7, f"removing member {member('mid-1')} on heartbeat expiration", "midway")),
    (51.5, stable(8, "midway", 2)),
    (55, "Stabilized group old generation 5 (__consumer_offsets-3)"),
    (59, f"Dynamic member with unknown member id joins group midway in Stable state. Created a new member id {member('mid-1', 2)} and request the member to rejoin with this id."),
)  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogPage]:
    """Serve what a log tells of groups of each type."""
    names, events, scanned = read(tmp_path_factory.mktemp("logs"), EPOCHS, CLASSIC)
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as shown:
        shown.take(events, scanned)
        yield shown


def _json(page: LogPage, path: str) -> Any:
    return httpx.get(f"{page.url}api/{path}").json()


def test_an_expiration_has_only_what_the_log_says(page: LogPage) -> None:
    """No line says when a member was last seen, or how late its silence was noticed; few name its session timeout."""
    rows = {row["group_id"]: row for row in _json(page, "expirations")["rows"]}
    unknown = ("last_seen_ms", "silent_ms", "lateness_ms", "known_late_ms", "session_timeout_ms")
    for group in ("quotes", "midway"):
        assert [rows[group][name] for name in unknown] == [None] * len(unknown)
    assert rows["midway"]["deadline_ms"] == START_MS + 50_000
    assert rows["midway"]["returned_ms"] == START_MS + 59_000
    text = httpx.get(f"{page.url}api/expirations.csv").text.lstrip("\ufeff")
    assert ",0,0," not in text
    # The log names no zone: neither the column nor the time says that it is UTC.
    assert "2026-11-22T02:12:40.000" in [row["deadline_time"] for row in csv.DictReader(io.StringIO(text, newline=""))]
    assert "utc" not in text.partition("\n")[0]


@pytest.mark.parametrize(
    ("group", "kind", "state", "members"),
    [
        ("quotes", "consumer", "Unknown", None),
        ("newborn", "consumer", "Unknown", 2),
        ("ghosts", "share", "Empty", 0),
        ("midway", "classic", "Stable", 2),
        ("old", "classic", "Stable", None),
    ],
)
def test_a_group_has_only_what_the_log_says(
    page: LogPage, group: str, kind: str, state: str, members: int | None
) -> None:
    """The size of a group with epochs is known if the log has its first epoch, and whether it is stable never is."""
    answer = _json(page, f"groups/{group}")
    assert (answer["kind"], answer["state"], answer["members"]) == (kind, state, members)
    texts = [line["text"] for line in answer["timeline"]]
    assert not [text for text in texts if "0 ms" in text or ("0 member" in text and group != "ghosts")]


def test_the_length_of_rebalances_is_that_of_those_with_one(page: LogPage) -> None:
    """A rebalance that began before the log has no length, and nobody stops for a new epoch."""
    groups = {group["group_id"]: group for group in _json(page, "rebalances")["groups"]}
    assert groups.keys() == {"midway", "old"}
    midway, old = groups["midway"], groups["old"]
    assert (midway["rebalances"], midway["lost_ms"], midway["longest_ms"], midway["unmeasured"]) == (2, 1_500, 1_500, 1)
    assert (old["rebalances"], old["lost_ms"], old["longest_ms"], old["unmeasured"]) == (1, None, None, 1)
