"""Groups, members and removals that are older than what a watcher's page has in memory are read from its history."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
import pytest

from heartwheel.sources.watch.service import Watcher
from support.scripted_log import START_MS, lines_of, member, preparing, stable
from support.watching import watching

FAILS: Final = "Member {} in group {} has failed, removing it from the group"
LEFT: Final = "Member[group.instance.id None, member.id {}] in group {} has left, removing it from the group"
DAY_S: Final = 86_400
ODD: Final = "a/b%2F?#..\u00e9"
MEMORY: Final = {"page_events_max": 1_000}


def busy(groups: list[str], number: int) -> str:
    """Write removals, leaves and rebalances of groups in turn; a rebalance begins and ends in one moment."""
    rng, lines = random.Random(3), []
    for at in range(number):
        group, client = groups[at % len(groups)], f"c-{rng.randrange(4)}"
        if rng.random() < 0.3:
            lines.append((at * 60.0, LEFT.format(member(client, at % 7), group)))
        else:
            lines.append((at * 60.0, FAILS.format(member(client, at % 7), group)))
            why = f"removing member {member(client, at % 7)} on heartbeat expiration"
            lines += [(at * 60.0 + 1, preparing(at, why, group)), (at * 60.0 + 1, stable(at + 1, group))]
    return lines_of(*lines)


@contextmanager
def restarted(folder: Path, **watch: int) -> Iterator[Watcher]:
    """Run a watcher on a history that has all of its log: what it has in memory is then bounded by the settings."""
    log, settings = folder / "server.log", {"history_file": str(folder / "history.db"), **watch}
    if not (folder / "history.db").exists():
        with watching(folder, log):
            pass
    with watching(folder, log, watch=settings) as watcher:
        yield watcher


def asked(watcher: Watcher, path: str, **query: Any) -> dict[str, Any]:
    """Return an answer of the API."""
    answer = httpx.get(f"{watcher.url}api/{path}", params=query or None, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def whole(watcher: Watcher, path: str, rows: str = "rows", **wanted: str) -> list[dict[str, Any]]:
    """Return the rows of a path, followed back to the first that the history has."""
    found, place = list[dict[str, Any]](), dict[str, Any]()
    while True:
        page = asked(watcher, path, **wanted, **place)
        found += page[rows]
        if page.get("next") is not None:
            place["before"] = page["next"]
        elif page["older_until_ms"] is not None:
            place = {"until_ms": page["older_until_ms"]}
        else:
            return found


def shown(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return what people see of a line or a removal, without what depends on how much was read before it."""
    return row.get("time_ms", row.get("deadline_ms")), row.get("kind"), row.get("member_id"), row.get("evidence")


def test_each_line_is_found_once_however_little_is_in_memory(tmp_path: Path) -> None:
    """Timelines, members and removals of every group are the same with a thousand lines in memory as with all."""
    groups = [f"g-{number}" for number in range(5)]
    (tmp_path / "server.log").write_text(busy(groups, 1_500))
    found: list[dict[str, list[tuple[Any, ...]]]] = []
    for memory in ({"page_events_max": 1_000_000}, MEMORY):
        with restarted(tmp_path, **memory) as watcher:
            lines = {group: list(map(shown, whole(watcher, f"timeline/{group}"))) for group in groups}
            for group in groups:
                name = member("c-1", 3)
                lines[f"{group} {name}"] = list(map(shown, whole(watcher, f"members/{group}/{name}", "expirations")))
            lines["all"] = list(map(shown, whole(watcher, "expirations")))
            lines["one group"] = list(map(shown, whole(watcher, "expirations", group="g-2")))
            found.append(lines)
    assert found[0] == found[1]
    assert sum(map(len, found[0].values())) > 3_000


def test_a_group_that_only_the_history_has_is_shown_whole(tmp_path: Path) -> None:
    """Its state, its verdict, its members and each removal by its id; names may hold any character."""
    odd = [(at * 60.0, FAILS.format(member("m", at), ODD)) for at in range(5)]
    odd.append((300.0, stable(7, ODD, members=3)))
    new = [(DAY_S + at, FAILS.format(member("new", at), "new")) for at in range(1_100)]
    (tmp_path / "server.log").write_text(lines_of(*odd, *new))
    with restarted(tmp_path, **MEMORY) as watcher:
        group = asked(watcher, f"groups/{quote(ODD, safe='')}")
        assert (group["expirations_count"], group["members"], group["older_until_ms"]) == (5, 3, None)
        assert group["verdict"][0].startswith("5 times a member was thrown out by its session timeout")
        assert [line["kind"] for line in group["timeline"]] == ["completed", *["expired"] * 5]
        one = asked(watcher, f"members/{quote(ODD, safe='')}/{member('m', 2)}")
        (row,) = one["expirations"]
        detail = asked(watcher, f"expirations/{row['id']}")
        assert (detail["id"], detail["group_id"], detail["deadline_ms"]) == (row["id"], ODD, START_MS + 120_000)
        assert detail["why"] == one["why"]
        assert "session.timeout.ms" in detail["advice"]
        assert asked(watcher, "expirations", group=ODD)["matched"] == 5
        assert asked(watcher, "timeline/new", until_ms=5)["rows"] == []
        newest = asked(watcher, "groups/new")
        assert newest["verdict"][-1] == "Lines before 2026-11-23 02:13:29 count for none of that."
        assert newest["older_until_ms"] == START_MS + DAY_S * 1_000 + 99_001


@pytest.mark.parametrize(
    "path",
    [
        "expirations/no-such-id",
        f"expirations/{START_MS:x}-{'0' * 32}",
        f"expirations/{'f' * 13}-{'0' * 32}",
        f"expirations/0-{'0' * 32}",
        "groups/no%2Fsuch%25group",
        "timeline/no-such-group",
        "members/new/no-such-member",
    ],
)
def test_what_no_line_names_is_not_found(old_and_new: Watcher, path: str) -> None:
    """Neither in memory nor in the history."""
    answer = httpx.get(f"{old_and_new.url}api/{path}", timeout=60)
    assert (answer.status_code, answer.json()["error"][:3]) == (404, "no ")


@pytest.fixture(scope="module")
def old_and_new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watcher]:
    """Run a watcher with a group in memory and another one in its history alone."""
    folder = tmp_path_factory.mktemp("watched")
    new = [(DAY_S + at, FAILS.format(member("new", at), "new")) for at in range(1_100)]
    (folder / "server.log").write_text(lines_of((0, FAILS.format(member("old", 1), "old")), *new))
    with restarted(folder, **MEMORY) as watcher:
        yield watcher
