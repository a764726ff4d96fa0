"""The picture: each id once, bounded in every way, returns found in whatever order the topics tell."""

from __future__ import annotations

import msgspec
import pytest

from heartwheel.readers.live import group_index
from heartwheel.readers.live.groups import group_detail
from heartwheel.readers.live.picture import Picture
from heartwheel.readers.live.returns import Arrival, arrivals_of, can_be_recognised, is_return
from heartwheel.readers.live.seen import Seen
from heartwheel.readers.live.storms import StormRule
from support.output_rows import T0, begun, expired, job, joined, status, topic_rows

UUID = "0f8fad5b-d9cb-469f-a165-70867728950e"


def test_a_replayed_row_is_dropped_by_its_id() -> None:
    """P3: a crash writes rows again under the same id, and the picture shows and counts each once."""
    picture = Picture()
    rows = topic_rows(expired("g", "m"), begun("g", "n"))
    first, again = picture.apply(rows, now_ms=T0), picture.apply(rows, now_ms=T0)
    assert [row.member_id for row in first.expirations] == ["m"]
    assert (again.expirations, again.duplicates) == ([], 1)
    assert (len(picture.window.rows), picture.triggers_total) == (1, 1)


def test_expirations_are_bounded_in_number() -> None:
    """Beyond the most that are kept the oldest go, are counted as dropped, and are found by id no more."""
    picture = Picture(expirations_max=10)
    rows = [expired("g", f"m{i}", T0 + i) for i in range(25)]
    picture.apply(topic_rows(*rows), now_ms=T0)
    assert [row.seq for row in picture.window.rows] == list(range(16, 26))
    assert picture.window.dropped == 15
    assert picture.window.by_id(rows[0].id) is None
    assert len(picture.groups.entries["g"].expirations) == 10


def test_what_is_older_than_the_window_goes() -> None:
    """Expirations and rebalances leave when their append time is a window ago, and that is no drop."""
    picture = Picture(window_ms=60_000)
    picture.apply(topic_rows(expired("g", "m"), begun("g", "n")), now_ms=T0)
    picture.apply(topic_rows(expired("g", "late", T0 + 90_000)), now_ms=T0 + 90_000)
    assert [row.member_id for row in picture.window.rows] == ["late"]
    assert (len(picture.groups.entries["g"].triggers), picture.window.dropped) == (0, 0)
    assert picture.groups.entries["g"].newest is not None


def test_groups_and_rebalances_are_bounded() -> None:
    """The groups that were quiet for longest are forgotten first, and old rebalances go before new ones."""
    picture = Picture(triggers_max=5, groups_max=3)
    picture.apply(topic_rows(*(begun(f"g{i}", at_ms=T0 + i) for i in range(10))), now_ms=T0)
    assert list(picture.groups.entries) == ["g7", "g8", "g9"]
    assert picture.groups.forgotten == 7
    picture.apply(topic_rows(*(begun("g9", at_ms=T0 + 100 + i) for i in range(10))), now_ms=T0)
    assert len(picture.groups.entries["g9"].triggers) == 5


def test_ids_are_remembered_in_bounded_memory() -> None:
    """At least the newest so many ids are known, and never more than twice as many are held."""
    seen = Seen(100)
    assert all(seen.is_new(str(i)) for i in range(1_000))
    assert not any(seen.is_new(str(i)) for i in range(900, 1_000))
    assert len(seen) <= 200


@pytest.mark.parametrize("arrival_first", [False, True])
def test_a_return_is_found_in_either_order(arrival_first: bool) -> None:  # noqa: FBT001 - a parameter
    """Topics are read apart: whether the arrival or the expiration is read first, the member is back."""
    picture = Picture()
    rows = [topic_rows(expired("g", "m")), topic_rows(joined("g", "m"))]
    changes = [picture.apply(each, now_ms=T0) for each in (reversed(rows) if arrival_first else rows)]
    assert [row.returned_ms for each in changes for row in each.returned] == [T0 + 10_000]
    assert picture.window.rows[0].returned_ms == T0 + 10_000


def test_what_waits_for_its_counterpart_is_bounded_over_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many groups there are: as many arrivals as rows and so many of the expired wait, and the oldest go."""
    monkeypatch.setattr(group_index, "OPEN_MAX", 10)
    gone = [expired(f"g{i}", "m", T0 + i) for i in range(30)]
    back = [joined(f"g{i}", "m") for i in range(30)]
    for rows in ((gone, back), (back, gone)):
        picture = Picture(triggers_max=10)
        for some in rows:
            picture.apply(topic_rows(*some), now_ms=T0)
        assert [row.group_id for row in picture.window.rows if row.returned_ms] == [f"g{i}" for i in range(20, 30)]


@pytest.mark.parametrize("arrival_first", [True, False])
def test_a_worker_that_failed_as_it_arrived_is_gone(arrival_first: bool) -> None:  # noqa: FBT001 - a parameter
    """The arrival that comes with a failure before the first beat is no return, in whatever order they are read."""
    picture = Picture()
    failed = topic_rows(expired("g", "m", T0, reason="worker_failed", failure="exit code 127"))
    arrived = topic_rows(joined("g", "m", at_ms=T0))
    for rows in (arrived, failed) if arrival_first else (failed, arrived):
        picture.apply(rows, now_ms=T0)
    (shown,) = picture.window.rows
    assert shown.returned_ms is None
    picture.apply(topic_rows(joined("g", "m", at_ms=T0 + 1)), now_ms=T0 + 1)
    assert shown.returned_ms == T0 + 1


def test_each_arrival_stands_for_one_return() -> None:
    """Members with one client id look alike: of two that were expired, one arrival brings back one, the first."""
    picture = Picture()
    gone = [expired("g", f"app-{i}", T0 + i, client_id="app") for i in range(2)]
    picture.apply(topic_rows(*gone, joined("g", f"app-{UUID}")), now_ms=T0)
    assert [row.returned_ms is not None for row in picture.window.rows] == [True, False]


def arrival(member_id: str) -> Arrival:
    """Make an arrival in the group `g`, after the expirations of these tests."""
    return Arrival(group_id="g", member_id=member_id, time_ms=T0 + 1)


def test_who_was_there_before_has_not_come_back() -> None:
    """An arrival from before the deadline is no return."""
    (before,) = arrivals_of(joined("g", "m", at_ms=T0 - 1))
    (back,) = arrivals_of(joined("g", "m", at_ms=T0))
    assert not is_return(expired("g", "m", T0), before)
    assert is_return(expired("g", "m", T0), back)
    assert not is_return(expired("other", "m", T0), back)
    assert not arrivals_of(begun("g", "m", at_ms=T0))


@pytest.mark.parametrize(
    ("joined_id", "back"),
    [
        ("m", True),
        (f"app-{UUID}", True),
        (f"app2-{UUID}", False),
        (f"app-1-{UUID}", False),
        ("app", False),
        ("app-1", False),
        (UUID, False),
    ],
)
def test_a_member_is_known_by_its_client(joined_id: str, back: bool) -> None:  # noqa: FBT001 - a parameter
    """A dynamic member comes back as its client's id, a dash and a uuid; a worker as itself."""
    assert is_return(expired("g", "m", client_id="app"), arrival(joined_id)) is back


def test_member_whose_client_was_never_named_is_known_by_its_own_id() -> None:
    """A member that joined before anybody listened has no client's id, but a broker's id begins with it."""
    before = f"app-{'1' * 8}-1111-4111-8111-{'1' * 12}"
    assert is_return(expired("g", before), arrival(f"app-{UUID}"))
    assert not is_return(expired("g", before), arrival(f"other-{UUID}"))
    assert not is_return(expired("g", "app-1"), arrival(f"app-{UUID}"))


def test_restarted_member_of_an_epoch_group_cannot_be_recognised() -> None:
    """In a consumer group a restarted client has a random id: that it is not back is not known, but of static ones."""
    assert not can_be_recognised(expired("g", "m", group_kind="consumer"))
    assert can_be_recognised(expired("g", "m", group_kind="consumer", group_instance_id="box-1"))
    assert can_be_recognised(expired("g", "m", group_kind="classic"))
    assert can_be_recognised(expired("g", "m"))


def test_an_instance_goes_before_the_client() -> None:
    """A static member is known by its instance id, whatever its client's id is."""
    row = expired("g", "m", client_id="app", group_instance_id="box-1")
    assert is_return(row, arrival(f"box-1-{UUID}"))
    assert not is_return(row, arrival(f"app-{UUID}"))


def test_a_replayed_trigger_counts_its_records_once() -> None:
    """A status row that a crash wrote twice changes no rate."""
    picture = Picture()
    picture.apply(topic_rows(status(0), status(0), job(), job()), now_ms=T0)
    (step,) = picture.ticks.steps(0, T0 + 10_000)
    assert step[1].records == 40


def test_canary_is_told_apart() -> None:
    """What the canary does is kept, but is in no rate and no total."""
    picture = Picture()
    picture.apply(topic_rows(expired("heartwheel-canary-1", "m"), begun("heartwheel-canary-1")), now_ms=T0)
    assert (picture.triggers_total, len(picture.ticks.steps(0, T0 * 2)), len(picture.window.rows)) == (0, 0, 1)


def test_the_timeline_has_the_expiry_before_its_rebalance() -> None:
    """P4, as it is shown: newest first, and of one moment the rebalance above the expiry that triggered it."""
    picture = Picture()
    picture.apply(topic_rows(begun("g", "n"), expired("g", "m"), joined("g", "m")), now_ms=T0)
    detail = group_detail(picture, "g", StormRule(), now_ms=T0)
    assert detail is not None
    assert [line["kind"] for line in detail.timeline] == ["completed", "triggered", "expired"]
    assert msgspec.to_builtins(detail)["timeline"][2]["member_id"] == "m"
    assert all(line["text"] and line["time_ms"] for line in detail.timeline)
    msgspec.json.encode(detail)
