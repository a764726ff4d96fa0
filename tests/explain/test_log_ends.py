"""What a log's end cuts off: rebalances that still run, and times of which it tells nothing."""

from __future__ import annotations

import io
import itertools
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from heartwheel.front.cli.app import run
from heartwheel.settings import Settings
from heartwheel.settings.servers import DashboardSettings
from heartwheel.sources.explain.history import History
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.page import LogPage
from heartwheel.sources.explain.run import follow_logs
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from heartwheel.sources.explain.shown import rows_of_log
from heartwheel.sources.explain.summary import LogSummary
from heartwheel.sources.explain.verdicts import judged
from support.broker_logs import REAL, explained
from support.scripted_log import START_MS, lines_of, member, preparing, read, stable

NEW = member("g-2")
BEGUN = preparing(1, f"Adding new member {NEW} with group instance id None")
OPEN = lines_of((0, stable(1)), (2, BEGUN), (5, stable(9, "other")))


def test_a_rebalance_that_still_runs_is_an_event() -> None:
    """Its time is the log's end; one that was done, or whose group was unloaded, is not."""
    event = explained(OPEN)[-1]
    assert (event.kind, event.group_id, event.caused_by) == ("rebalancing", "g", (NEW,))
    assert event.time_ms == START_MS + 5_000
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


def test_a_follower_sees_a_rebalance_that_goes_on(tmp_path: Path) -> None:
    """It is shown once when it has run for ten seconds, though the log stands still, and again where following ends."""
    (tmp_path / "server.log").write_text(OPEN)
    looks, seconds = iter(range(11)), itertools.count(100, 4)
    shown = [
        [event for event in events if event.kind == "rebalancing"]
        for events in follow_logs(
            [str(tmp_path / "server.log")],
            Scanned(),
            stdin=io.BytesIO(),
            go_on=lambda: next(looks, 11) < 9,
            clock=lambda: next(seconds),
        )
    ]
    assert [len(events) for events in shown] == [0, 0, 0, 1, 0, 0, 1]
    event = shown[3][0]
    assert (event.group_id, event.started_ms, event.duration_ms) == ("g", START_MS + 2_000, 12_000)


def test_a_rebalance_that_was_shown_ends() -> None:
    """On its page it is one rebalance, and a summary does not call it open any more."""
    log = OPEN + lines_of((30, stable(9, "other")))
    scanned, history = Scanned(), History(["server.log"], hold_ms=0)
    reader = FactReader("server.log", 0, Layout(), scanned)
    facts = list(scan(io.BytesIO(log.encode()), reader, scanned))
    events = [event for fact in facts for event in history.add(fact)]
    events += history.running(0)
    assert events[-1].kind == "rebalancing"
    done = lines_of((31, stable(2)))
    events += [event for fact in scan(io.BytesIO(done.encode()), reader, scanned) for event in history.add(fact)]
    summary = LogSummary()
    for event in events:
        summary.add(event)
    group = next(group for group in summary.groups() if group.group_id == "g")
    assert (group.rebalancing, group.rebalancing_since_ms, group.rebalances) == ("", None, 2)
    begun = [each.row.id for each in rows_of_log(events) if each.row.group_id == "g" and each.row.duration_ms is None]  # type: ignore[union-attr]
    assert len(set(begun)) == len(begun) - 1


def test_ctrl_c_ends_following_with_the_answers(tmp_path: Path) -> None:
    """The terminal of a follower has the row of a rebalance that runs, and after Ctrl-C what the log comes to."""
    log = tmp_path / "server.log"
    log.write_text(OPEN + lines_of((30, stable(9, "other"))))
    command = [sys.executable, "-u", "-m", "heartwheel", "explain", "--follow", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        rows: list[str] = []
        while not rows or " rebalancing " not in rows[-1]:
            rows.append(process.stdout.readline())
            assert rows[-1], "it has ended"
        assert "for 28.0 s so far: a member joined" in rows[-1]
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 0
    assert "Groups that still rebalance at the end of the log: g (for 28.0 s so far" in rest


def _fails(log: Path, *options: str) -> int:
    return run(["explain", str(log), "--fail-on-expired", *options])


CLOSED = "the consumer is being closed"


def leaves(client: str, words: str = CLOSED) -> str:
    """Write the line of a member of group g that leaves, in its own words."""
    return (
        f"Member MemberMetadata(memberId={member(client)}, groupInstanceId=None, clientId={client}, "
        "clientHost=/10.0.0.7, sessionTimeoutMs=45000, rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has "
        f"left group g through explicit `LeaveGroup`; client reason: {words}"
    )


FAILS = f"Member {member('g-1')} in group g has failed, removing it from the group"
EMPTIED = "Group g with generation 4 is now empty (__consumer_offsets-3)"


@pytest.mark.parametrize(
    ("lines", "troubles"),
    [
        ([(0, FAILS), (60, leaves("g-2")), (60.003, EMPTIED)], []),
        # Kafka 3.9 lists the leave behind what it led to, in the same second.
        ([(0, FAILS), (60, EMPTIED), (60.003, leaves("g-2"))], []),
        ([(0, leaves("g-2")), (60, FAILS), (60.003, EMPTIED)], ["empty"]),
        ([(0, leaves("g-2")), (60, EMPTIED), (60.003, leaves("g-1", "consumer poll timeout has expired."))], ["empty"]),
    ],
)
def test_a_group_whose_last_member_left_is_no_trouble(
    tmp_path: Path, lines: list[tuple[float, str]], troubles: list[str]
) -> None:
    """It is empty, as it is meant to be; trouble is a group whose last member a timeout has taken."""
    names, events, scanned = read(tmp_path, lines_of((-9, stable(3)), *lines))
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as shown:
        shown.take(events, scanned)
        group = httpx.get(f"{shown.url}api/groups/g").json()
    assert group["state"] == "Empty"
    assert [trouble["kind"] for trouble in group["troubles"]] == troubles


def test_a_check_fails_where_nothing_of_its_time_was_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A log that ends before, or begins after what is asked for shows nothing; one that spans it does."""
    log = tmp_path / "server.log"
    log.write_text(OPEN)
    assert _fails(log, "--since", "2026-11-22T02:11:51", "--until", "2026-11-22T02:12") == 0
    capsys.readouterr()
    assert _fails(log, "--since", "2026-11-22T02:13") == 1
    assert "the newest line about a group is of 2026-11-22 02:11:55, before --since" in capsys.readouterr().err
    assert _fails(log, "--until", "2026-11-22T02:11") == 1
    assert "the oldest line about a group is of 2026-11-22 02:11:50, not before --until" in capsys.readouterr().err
    assert _fails(log, "--since", "2026-11-22T02:12", "--until", "2026-11-22T02:11") == 2
    assert "--until" in capsys.readouterr().err


@pytest.mark.parametrize("more", [[], ["--fail-on-expired"], ["--json"], ["--summary"], ["--page", "--port", "0"]])
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--group", "nosuch"], "no group 'nosuch' in this log"),
        (["--member", "nosuch"], "no member 'nosuch' in this log"),
        (["--since", "2026-11-22T02:13"], "is of 2026-11-22 02:11:55, before --since (2026-11-22 02:13:00)"),
        (["--until", "2026-11-22T02:11"], "is of 2026-11-22 02:11:50, not before --until (2026-11-22 02:11:00)"),
    ],
)
def test_what_is_nowhere_in_the_log_is_an_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, asked: list[str], words: str, more: list[str]
) -> None:
    """One rule for groups, members and times, with every option: no event is no answer there."""
    log = tmp_path / "server.log"
    log.write_text(OPEN)
    assert run(["explain", str(log), *asked, *more]) == 1
    assert capsys.readouterr().err.replace("\n", " ").count(words) == 1
    assert run(["explain", str(log), "--since", "2026-11-22T02:11"]) == 0
    assert "--since" not in capsys.readouterr().err


JOINED = (
    "[2026-11-22 02:11:50,000] INFO [Consumer clientId=a, groupId=orders] Successfully joined group with generation "
    "Generation{generationId=4, memberId='a-1', protocol='range'} "
    "(org.apache.kafka.clients.consumer.internals.ConsumerCoordinator)\n"
)


def test_a_consumers_log_does_not_show_that_nobody_was_thrown_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """It is said what it is; lengths that it does not tell are unknown, and its times are in no known zone."""
    log = tmp_path / "consumer.log"
    log.write_text(JOINED)
    assert _fails(log) == 1
    out, err = capsys.readouterr()
    assert "No member was thrown out" not in out
    assert "tells of no removal: orders." in out
    assert "1 line, 0 of group coordinators" in err
    assert "only consumers' own logs" in err.replace("\n", " ")
    assert "02:11:50Z" not in err
    assert run(["explain", str(log), "--summary"]) == 0
    assert "0 ms" not in capsys.readouterr().out
    assert run(["explain", str(log), "--summary", "--json"]) == 0
    assert '"rebalancing_ms":null' in capsys.readouterr().out.replace(" ", "")


def test_an_empty_log_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """There is nothing to explain."""
    log = tmp_path / "server.log"
    log.write_text("")
    assert run(["explain", str(log)]) == 1
    assert "is empty" in capsys.readouterr().err


def test_a_page_of_a_log_without_coordinators_knows_no_trouble(tmp_path: Path) -> None:
    """No group in trouble is an answer, and such a log gives none."""
    for text, known in (("", False), (JOINED, False), (OPEN, True)):
        names, events, scanned = read(tmp_path, text)
        with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as shown:
            shown.take(events, scanned)
            assert httpx.get(f"{shown.url}api/now").json()["trouble"]["known"] is known


def test_a_brokers_log_without_group_coordinators_is_a_brokers(tmp_path: Path) -> None:
    """Other coordinators write into it as well."""
    text = "[2026-11-22 02:11:50,000] INFO [TransactionCoordinator id=1] Starting up. (kafka.coordinator.transaction.TransactionCoordinator)\n"
    _, _, scanned = read(tmp_path, text)
    assert list(scanned.others.values()) == ["broker"]


def test_a_member_of_another_group(capsys: pytest.CaptureFixture[str]) -> None:
    """The log has it: only the groups that were asked for do not."""
    assert run(["explain", str(REAL / "server.log"), "--group", "orders", "--member", "billing-1"]) == 1
    assert "no member 'billing-1' of these groups" in capsys.readouterr().err


def test_groups_whose_size_no_line_tells_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All members of a group with epochs that began before the log may be gone: that is not known, and said so."""
    log = tmp_path / "server.log"
    log.write_text(
        lines_of(
            (1, "[GroupId alerts] Member Zk3yQq0TSVuRW1yU3oCQeg fenced from the group because the member session expired."),
            (1, "[GroupId alerts] Bumped group epoch to 42."),
            new=True,
        )
        + lines_of((2, stable(3, "known")))
    )  # fmt: skip
    assert run(["explain", str(log)]) == 0
    out = capsys.readouterr().out
    assert "Groups without members at the end of the log: none; not known of: alerts." in out


def test_a_rebalance_that_began_before_the_log_counts_for_no_length(tmp_path: Path) -> None:
    """The log begins while the real group rebalances for the third time; only of the fourth it shows how long."""
    whole = (REAL / "server.log").read_text().splitlines(keepends=True)
    cut = "".join(line for line in whole[927:] if "orders" in line)
    sums = LogSummary()
    for event in explained(cut):
        sums.add(event)
    group = judged(sums)[0]
    assert (group.rebalances, group.unmeasured, group.rebalancing_ms) == (2, 1, 3)
    assert "1 rebalance took 3 ms, and 1 more of unknown length." in group.verdict
    names, events, scanned = read(tmp_path, cut)
    with LogPage(Settings(dashboard=DashboardSettings(port=0)), names) as shown:
        shown.take(events, scanned)
        day = httpx.get(f"{shown.url}api/rebalances").json()["groups"][0]["days"][0]
    assert (day["rebalances"], day["lost_ms"], day["unmeasured"]) == (2, 3, 1)
