"""The next question after who was thrown out: how it stands now, what went together, and which timeout was too short."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from heartwheel.sources.explain import together
from heartwheel.sources.explain.summary import GroupSummary, LogSummary
from heartwheel.sources.explain.verdicts import judged, verdict_of
from support.broker_logs import REAL, explained
from support.scripted_log import START_MS, lines_of, member, preparing, stable

LOG = str(REAL / "server.log")


def failed(client: str, group: str = "g") -> str:
    """Write the line of a session timeout."""
    return f"Member {member(client)} in group {group} has failed, removing it from the group"


def joined(client: str, number: int, group: str = "g") -> str:
    """Write the line of a member that comes back under a new id."""
    return (
        f"Dynamic member with unknown member id joins group {group} in Stable state. Created a new member id "
        f"{member(client, number)} and request the member to rejoin with this id."
    )


def left(client: str, group: str, words: str, host: str = "/10.0.0.7", poll_ms: int = 300_000) -> str:
    """Write the line of a member that leaves, in its own words."""
    return (
        f"Member MemberMetadata(memberId={member(client)}, groupInstanceId=None, clientId={client}, clientHost={host}, "
        f"sessionTimeoutMs=45000, rebalanceTimeoutMs={poll_ms}, supportedProtocols=List(range)) has left group {group} "
        f"through explicit `LeaveGroup`; client reason: {words}"
    )


def empty(number: int, group: str) -> str:
    """Write the line of a group without members."""
    return f"Group {group} with generation {number} is now empty (__consumer_offsets-3)"


def summed(*logs: str) -> LogSummary:
    """Sum up logs."""
    sums = LogSummary()
    for event in explained(*logs):
        sums.add(event)
    return sums


def of(sums: LogSummary, group_id: str) -> GroupSummary:
    """Pick a group."""
    return next(group for group in judged(sums) if group.group_id == group_id)


def test_a_group_that_died_is_said_to_be_empty() -> None:
    """All members are gone within moments, and nobody came: that it is empty since comes first."""
    sums = summed(
        lines_of(
            (0, stable(3, "payments", 3)),
            (60, failed("payments-1", "payments")),
            (60, preparing(3, f"removing member {member('payments-1')} on heartbeat expiration", "payments")),
            (61, failed("payments-2", "payments")),
            (62, failed("payments-3", "payments")),
            (62, empty(4, "payments")),
            (70, stable(3, "calm", 2)),
        )
    )
    first = judged(sums)[0]
    assert (first.group_id, first.members, first.empty_since_ms) == ("payments", 0, START_MS + 62_000)
    text = " ".join(first.verdict)
    assert text.startswith("It has had no member since 2026-11-22 02:12:52.")
    assert "3 times a member was thrown out by its session timeout, all within 2.0 s." in text
    assert "The log shows none of those that were out back within an hour, so it does not show which" in text
    assert of(sums, "calm").is_calm
    (incident,) = sums.incidents()
    assert incident.words.startswith("3 members of group payments were out within 2.0 s. No other group was")


def test_a_group_that_came_back_is_not_empty() -> None:
    """The newest rebalance counts."""
    group = of(summed(lines_of((0, empty(4, "g")), (9, stable(5, "g", 1)))), "g")
    assert (group.members, group.empty_since_ms) == (1, None)


def test_many_groups_at_once_are_no_fault_of_one() -> None:
    """Three groups within moments: the broker or the network; a start of the broker shortly before is named."""
    sums = summed(
        lines_of(
            (0, "Starting up."),
            *((30 + number, failed(f"{name}-1", name)) for number, name in enumerate(("a", "b", "c", "d"))),
        )
    )
    (incident,) = sums.incidents()
    assert (incident.members, incident.groups) == (4, ["a", "b", "c", "d"])
    assert "4 groups (a, b, c and 1 more) were out within 3.0 s" in incident.words
    assert "look at the broker, the network and shared hosts" in incident.words
    assert "Broker 1 had started 30.0 s before." in incident.words


def test_a_log_of_months_has_its_newest_incidents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher runs for long: what is over is no longer in memory, and does not fill the place of what comes."""
    monkeypatch.setattr(together, "_SETTLE_AT", 10)
    lines = [
        (hour * 7_200 + second, failed(f"{name}-{hour}", name))
        for hour in range(120)
        for second, name in enumerate("abc")
    ]
    lines.append((120 * 7_200, failed("d-1", "d")))
    sums = summed(lines_of(*lines))
    found = [each.from_ms for each in sums.incidents()]
    assert found == [START_MS + hour * 7_200_000 for hour in range(20, 120)]


def test_one_host_at_once() -> None:
    """Poll timeouts name the host; and all of one kind that did not poll share something."""
    hosts = [
        (number, left(f"{name}-1", name, "consumer poll timeout has expired.")) for number, name in enumerate("abc")
    ]
    (incident,) = summed(lines_of(*hosts)).incidents()
    assert incident.hosts == ["10.0.0.7"]
    assert "All were at 10.0.0.7: look at that host." in incident.words
    apart = [(number, text.replace("10.0.0.7", f"10.0.0.{number}")) for number, text in hosts]
    (incident,) = summed(lines_of(*apart)).incidents()
    assert "look at what they share" in incident.words


def test_what_does_not_go_together() -> None:
    """Minutes apart, or by timers that have nothing to do with one another."""
    assert (
        summed(lines_of(*((number * 60, failed(f"{name}-1", name)) for number, name in enumerate("abcd")))).incidents()
        == []
    )
    mixed = [
        (0, failed("a-1", "a")),
        (1, failed("b-1", "b")),
        (2, left("c-1", "c", "consumer poll timeout has expired.")),
    ]
    assert summed(lines_of(*mixed)).incidents() == []


def test_which_timeout_would_have_been_enough() -> None:
    """The limit and how much later the last one was back; what never came back needs no longer timeout."""
    polls = lines_of(
        (0, left("app-1", "g", "consumer poll timeout has expired.")),
        (42, joined("app-1", 2)),
        (100, left("app-2", "g", "consumer poll timeout has expired.")),
        (110, joined("app-2", 3)),
        (200, left("app-3", "g", "consumer poll timeout has expired.")),
    )
    group = of(summed(polls), "g")
    enough = group.enough["poll_timeout"]
    assert (enough.back, enough.gone, enough.later_ms, enough.needed_ms) == (2, 1, 42_000, 342_000)
    text = " ".join(group.verdict)
    assert (
        "Of 3 that were out 2 were back, the last 42.0 s later: a max.poll.interval.ms of 5 min 42 s would have been enough."
        in text
    )
    unknown = of(summed(lines_of((0, failed("app-1")), (7.2, joined("app-1", 2)))), "g")
    assert (
        "app-1 was back 7.2 s later; if that was the same process, a session.timeout.ms longer by more than that"
        in " ".join(unknown.verdict)
    )
    gone = of(summed(lines_of((0, failed("app-1")))), "g")
    assert "The log does not show app-1 back within an hour" in " ".join(gone.verdict)


def test_a_removal_says_which_timeout_would_have_been_enough() -> None:
    """The number is that of its group's verdict; nothing is said of a member that is not back, or of unknown timeouts."""
    log = lines_of(
        (0, left("app-1", "g", "consumer poll timeout has expired.", poll_ms=5_000)),
        (9.1, joined("app-1", 2)),
        (100, left("app-2", "g", "consumer poll timeout has expired.")),
        (200, failed("app-3")),
        (207, joined("app-3", 4)),
    )
    enough = [[words for words in event.explanation if "enough" in words] for event in explained(log) if event.advice]
    assert enough == [["A max.poll.interval.ms of 14.1 s would have been enough."], [], []]
    group = of(summed(log), "g")
    assert group.enough["poll_timeout"].needed_ms == 14_100


def test_who_was_thrown_out_is_who_was_a_member() -> None:
    """A client that asked to join and did not come back, however often, is not the member that a timeout took."""
    asked = f"Pending member {member('app-9')} in group g has been removed after session timeout expiration."
    group = of(summed(lines_of((0, asked), (10, asked), (20, failed("app-1")), (30, asked))), "g")
    text = " ".join(group.verdict)
    assert "Once a member was thrown out by its session timeout: app-1." in text
    assert "app-9" not in text


def test_leaves_have_the_words_of_the_clients() -> None:
    """A rolling restart is said to be one."""
    group = of(summed(Path(LOG).read_text()), "deploys")
    assert group.leave_reasons == {"rolling restart": 8}
    text = " ".join(group.verdict)
    assert '8 leaves: 8 x "rolling restart".' in text
    assert "9 x a member joined, 8 x a member left" in text
    assert "group.instance.id" in text


def test_advice_stands_by_itself() -> None:
    """No sentence points at one that is not there."""
    text = lines_of(
        (0, "[GroupId rev-in] Member Yk3y fenced from the group because it failed to transition from epoch 7 within 5000ms."),
        new=True,
    )  # fmt: skip
    (group,) = judged(summed(text))
    assert group.verdict[-1].startswith("Make its work between two polls and in its rebalance listener faster")


@pytest.fixture
def in_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """Give a function that explains the real log in a terminal, and returns the lines of the answer."""

    def explain(*options: str, columns: int = 80) -> list[str]:
        monkeypatch.setenv("COLUMNS", str(columns))
        with monkeypatch.context() as patched:
            patched.setattr(sys.stdout, "isatty", lambda: True)
            assert run(["explain", LOG, *options]) == 0
        return capsys.readouterr().out.splitlines()

    return explain


def test_a_terminal_shows_answers_first(in_terminal: Callable[..., list[str]]) -> None:
    """No rows, but groups without members, brokers and verdicts, within 80 columns and without broken words."""
    lines = in_terminal()
    out = "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert "Groups without members" in lines[0]
    assert "orders (since 2026-11-22 02:12:49)." in out
    assert "broker 1: it shuts down" in " ".join(out.split())
    assert "rebalance             " not in out
    assert "--all" in lines[-2] + lines[-1]
    words = {word for line in lines for word in line.split()}
    assert {"max.poll.interval.ms", "max.poll.interval.ms.", "heartbeat.interval.ms"} <= words


def test_a_terminal_shows_rows_if_asked(in_terminal: Callable[..., list[str]]) -> None:
    """All of them, the last ones, or those of a kind."""
    assert sum("  rebalance  " in line for line in in_terminal("--all")) == 33
    assert in_terminal("--last", "2")[0].startswith("2026-11-22 02:12:50.204")
    assert sum("  expired  " in line for line in in_terminal("--only", "expired")) == 2


def test_pipes_have_rows(capsys: pytest.CaptureFixture[str]) -> None:
    """As before; --only and --last narrow them, also as JSON."""
    assert run(["explain", LOG]) == 0
    out = capsys.readouterr().out
    assert "  rebalance  " in out
    assert not [line for line in out.splitlines() if line != line.rstrip()]
    assert run(["explain", LOG, "--json", "--only", "out"]) == 0
    kinds = [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()]
    assert kinds == ["removed_at_rebalance", "expired", "poll_timeout", "expired"]
    assert run(["explain", LOG, "--json", "--only", "left,storm", "--last", "3"]) == 0
    assert [json.loads(line)["kind"] for line in capsys.readouterr().out.splitlines()] == ["left", "left", "left"]
    assert run(["explain", LOG, "--only", "gone"]) == 2
    assert "'gone' is no kind of event" in capsys.readouterr().err


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_the_table_fits(in_terminal: Callable[..., list[str]], columns: int) -> None:
    """A narrow terminal has fewer columns, and whole words."""
    lines = in_terminal("--summary", columns=columns)
    assert max(map(len, lines)) <= columns
    assert [line.split()[0] for line in lines] == ["group", "orders", "search", "billing", "video", "deploys", "clicks"]
    assert lines[0].split()[:2] == ["group", "now"]
    assert not [line for line in lines if line != line.rstrip()]


def test_a_page_prints_no_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One of them was ignored."""
    assert run(["explain", LOG, "--page", "--json"]) == 2
    assert "give one of them" in capsys.readouterr().err


def test_deaths_that_go_on_and_on_are_not_together() -> None:
    """One every ten seconds in many groups is no incident, however long the chain."""
    apart = [(number * 10, failed(f"c{number}-1", f"g{number}")) for number in range(25)]
    assert summed(lines_of(*apart)).incidents() == []


def test_only_a_clients_own_words_are_quoted() -> None:
    """Why a member left is its text, or what heartwheel makes of it."""
    group = GroupSummary(group_id="g", leaves=3, leave_reasons={"closed": 2, "tea break": 1})
    assert '3 leaves: 2 x closed, 1 x "tea break".' in verdict_of(group)


def test_ids_are_not_counted_as_members(capsys: pytest.CaptureFixture[str]) -> None:
    """Each member has a member id and a client id, so there are more ids than members."""
    assert run(["explain", LOG, "--member", "nosuch"]) == 1
    assert "member, client and instance ids: " in capsys.readouterr().err


def test_a_filter_of_members_says_nothing_about_the_whole_group(capsys: pytest.CaptureFixture[str]) -> None:
    """The group rebalanced four times, and one of its members is still there: the rows of one member do not show it."""
    assert run(["explain", LOG, "--member", "billing-1"]) == 0
    out = capsys.readouterr().out
    assert "billing: Once a member took itself out by a poll timeout: billing-1." in out
    assert "No rebalance was seen" not in out
    assert "Groups without members" not in out
    assert run(["explain", LOG, "--member", "billing-1", "--summary"]) == 0
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row[:7] == ["billing", "?", "0", "1", "?", "?", "?"]
