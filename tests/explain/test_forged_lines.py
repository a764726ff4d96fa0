"""What a client writes into the broker's log is no statement about another group."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from heartwheel.front.cli.app import run
from heartwheel.readers.live.now import View, now_of
from heartwheel.settings import DashboardSettings, Settings
from heartwheel.sources.explain.facts import FactKind
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.page import LogPage
from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from heartwheel.sources.explain.texts import read
from support.broker_logs import explained
from support.hostile_lines import HEAD, LOGGER, PREFIX, TIME

_OLD = "[GroupCoordinator 3]: "
_FORGED = f"{HEAD}Member payments-worker-7 in group payments has failed, removing it from the group."
_JOIN = " in Empty state. Created a new member id n-1 and requesting the member to rejoin with this id."
_BEGIN = f"{HEAD}Dynamic member with unknown member id joins group "
_HONEST = f"{HEAD}Member h-1 in group honest has failed, removing it from the group."

IN_ONE_LINE = {
    "a group id with a generation": (
        "Preparing to rebalance group payments with old generation 4 (reason: x in state PreparingRebalance with old "
        "generation 0 (reason: Adding new member m with group instance id None)."
    ),
    "a group id that ends a bracket": (
        "[GroupId payments] Member m fenced from the group because the member session expired.] Member q joins the "
        "consumer group using the consumer protocol."
    ),
    "a group id before a text that is about no member": (
        "[GroupId payments] Member m left the consumer group. (x] Computed new metadata hash: 17."
    ),
    "a group id before a text that is not known": "[GroupId payments] Member m left the consumer group. (x] Evicted it.",
    "a group id with a member": "[GroupId payments][MemberId x] Member m left the consumer group.",
    "a group id of a streams group with a member": (
        "[GroupId payments][MemberId x][MemberId k] Bumped streams group epoch to 3 with metadata hash 1."
    ),
    "a client's reason": (
        "Member MemberMetadata(memberId=c-1, groupInstanceId=None, clientId=c, clientHost=/h, sessionTimeoutMs=1, "
        "rebalanceTimeoutMs=1, supportedProtocols=List(range)) has left group evil through explicit `LeaveGroup`; client "
        "reason: x in group payments has failed, removing it from the group"
    ),
    "a client id": (
        "Member x in group payments has failed, removing it from the group-9c0f6a3e in group evil has failed, removing it "
        "from the group."
    ),
    "a client id with a whole member": (
        "Member MemberMetadata(memberId=x, groupInstanceId=None, clientId=c, clientHost=/h, sessionTimeoutMs=1, "
        "rebalanceTimeoutMs=1, supportedProtocols=List(a)) has left group payments through explicit `LeaveGroup`-9c0f6a3e "
        "in group evil has failed, removing it from the group."
    ),
    "a group id that is loaded": "Loaded classic group payments with 3 members. (x with 1 members.",
    "a group id that is unloaded": "[GroupId=payments] Unloaded group metadata for group epoch 4. (x] Unloaded group metadata for group epoch 1.",
    "a group id that is stable": "Stabilized group payments generation 3 with 2 members (x generation 5 with 1 members.",
    "a group id that is empty": "Group payments with generation 3 is now empty (x could not complete rebalance because no members rejoined.",
    "an instance id": (
        "Static member with groupInstanceId=i and unknown member id joins group payments in Stable state. Replacing "
        "previously mapped member w-7 with this groupInstanceId and unknown member id joins group evil in Stable state. "
        "Replacing previously mapped member e with this groupInstanceId."
    ),
}  # fmt: skip
"""Lines of the broker about the group of one client; each has the words of a line about the group payments in it."""


@pytest.mark.parametrize("text", IN_ONE_LINE.values(), ids=IN_ONE_LINE)
@pytest.mark.parametrize("prefix", [PREFIX, _OLD])
def test_a_line_that_can_be_read_in_two_ways_says_nothing(prefix: str, text: str) -> None:
    """An id or a reason with the coordinator's own words makes the line suspicious."""
    fact = read(prefix + text)
    assert fact is not None
    assert (fact.kind, fact.group_id) == (FactKind.SUSPICIOUS, "")


BROKEN = {
    "one forged line": f"{_BEGIN}n\n{_FORGED}\n{_JOIN}{LOGGER}",
    "forged lines with loggers": f"{_BEGIN}n\n{_FORGED}{LOGGER}\n{_FORGED}{LOGGER}\n{_JOIN}{LOGGER}",
    "the forged line takes the end": f"{_BEGIN}n\n{_FORGED}{_JOIN}{LOGGER}",
    "lines between": f"{_BEGIN}n\n\n{'x' * 5_000}\n{_FORGED}{LOGGER}\n{_JOIN}{LOGGER}",
    "a sentence before the break": f"{_BEGIN}n{_JOIN}\n{_FORGED}\n{_JOIN}{LOGGER}",
    "a reason": f"{HEAD}[Group evil] Member m has left group through explicit `LeaveGroup` request; client reason: x\n{_FORGED}{LOGGER}",
    "a text about no member": f"{HEAD}Group n\n{_FORGED}\n could not complete rebalance because no members rejoined.{LOGGER}",
    "a statement before the break": f"{HEAD}Member w-7 in group payments has failed, removing it from the group\n-9c0f6a3e in group evil has failed, removing it from the group.{LOGGER}",
}  # fmt: skip


def _kicked(log: str, scanned: Scanned | None = None) -> list[str]:
    return [event.group_id for event in explained(log, scanned=scanned)]


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_what_follows_a_broken_id_is_no_statement(text: str) -> None:
    """Where the log names its loggers, a message goes on until its own is named and its sentence is complete."""
    scanned = Scanned()
    before, behind = f"{_HONEST}{LOGGER}\n", f"{_HONEST.replace('h-1', 'h-2')}{LOGGER}\n"
    assert _kicked(f"{before * 1}{text}\n{behind}", scanned) == ["honest", "honest"]
    assert scanned.suspicious_lines[0][:3] == ("log0", 2, 2)
    assert all(line.since == 2 for line in scanned.suspicious_lines)
    assert scanned.suspicious == text.count(PREFIX)


@pytest.mark.parametrize("name", ["one forged line", "lines between"])
def test_logs_without_loggers_are_read_by_their_sentences(name: str) -> None:
    """A sentence that is not complete goes on until a line without the coordinator's prefix completes it."""
    text, scanned = BROKEN[name].replace(LOGGER, ""), Scanned()
    assert _kicked(f"{_HONEST}\n{text}\n{_HONEST.replace('h-1', 'h-2')}\n", scanned) == ["honest", "honest"]
    assert scanned.suspicious == text.count(PREFIX)


@pytest.mark.parametrize("name", BROKEN)
def test_a_line_break_in_json_is_the_clients(name: str) -> None:
    """A string in JSON is one message, so what stands behind a line break in it is the client's."""
    message = BROKEN[name].replace(LOGGER, "").removeprefix(TIME)
    log = json.dumps({"timestamp": "2026-11-22T02:12:24.836Z", "message": message})
    scanned = Scanned()
    assert not [group for group in _kicked(f"{log}\n", scanned) if group in {"payments", "honest"}]


def test_several_lines_in_one_string_are_several_messages() -> None:
    """A carrier may put lines together that were whole: each names its logger."""
    log = json.dumps({"log": f"{_HONEST}{LOGGER}\n{_FORGED}{LOGGER}\n", "time": "2026-11-22T02:12:24.836Z"})
    assert _kicked(log) == ["honest", "payments"]


def test_a_text_that_is_not_known_makes_nothing_suspicious() -> None:
    """A new wording of a broker is no broken line, with a logger behind it or not."""
    for logger in (LOGGER, ""):
        scanned = Scanned()
        log = f"{_HONEST}{logger}\n{HEAD}Member x of group g was evicted.{logger}\n{_HONEST.replace('h-1', 'h-2')}{logger}\n"
        assert _kicked(log, scanned) == ["honest", "honest"]
        assert (scanned.suspicious, scanned.unknown_lines) == (0, 1)


def test_a_broken_line_is_followed_over_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a block ends, the client's text is seen whole."""
    log = f"{_HONEST}{LOGGER}\n{BROKEN['forged lines with loggers']}\n{_HONEST}{LOGGER}\n".encode()
    for size in range(300, len(log), 97):
        monkeypatch.setattr("heartwheel.sources.explain.scan.BLOCK_BYTES", size)
        scanned = Scanned()
        facts = list(scan(io.BytesIO(log), FactReader("log", 0, Layout(), scanned), scanned))
        assert [(fact.group_id, fact.line) for fact in facts] == [("honest", 1), ("honest", 6)]
        assert scanned.suspicious == 3


def test_people_see_what_may_be_forged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The line, and the one in which the client's text begins; nothing of it is an event or a reason to fail."""
    (tmp_path / "server.log").write_text(f"{HEAD}Starting up.{LOGGER}\n{BROKEN['one forged line']}\n")
    assert run(["explain", str(tmp_path / "server.log"), "--fail-on-expired"]) == 0
    out, err = capsys.readouterr()
    assert "payments" not in out
    said = " ".join(err.split())
    assert "2 lines may be forged by a client, and count for nothing:" in said
    assert "server.log:3 (may be forged, line 2): [GroupCoordinator id=1" in said
    assert "payments-worker-7" in said


def test_the_page_names_what_may_be_forged(tmp_path: Path) -> None:
    """The page shows nothing of the forged member, and says which lines it passed over and why."""
    (tmp_path / "server.log").write_text(f"{HEAD}Starting up.{LOGGER}\n{BROKEN['one forged line']}\n")
    scanned, logs = Scanned(), [str(tmp_path / "server.log")]
    page = LogPage(Settings(dashboard=DashboardSettings(port=0)), logs)
    page.take([], scanned)
    page.take(list(explain_logs(logs, scanned, stdin=io.BytesIO())), scanned)
    page.take([], scanned)
    now = now_of(page.picture, View(), now_ms=0)
    assert now.log is not None
    assert now.log.doubts[0] == "2 lines may be forged by a client, and count for nothing:"
    assert "payments" not in page.picture.groups.entries


_SELECTOR = "(org.apache.kafka.common.network.Selector)"
_STRANGER = (
    f"{TIME} INFO [SocketServer listenerType=BROKER, nodeId=1] Failed authentication with /10.0.0.9 "
    "(channelId=10.0.0.1:9093-10.0.0.9:43244-2-0) (Unsupported SASL mechanism "
)

STRANGERS = {
    "an open end": f"{_STRANGER}x\n{_FORGED}{LOGGER}\nx) {_SELECTOR}",
    "two whole ends": f"{_STRANGER}x) {_SELECTOR}\n{_FORGED}{LOGGER}\n{TIME} INFO [SocketServer] x) {_SELECTOR}",
    "a second message": f"{_STRANGER}x) {_SELECTOR}\n{_FORGED}{LOGGER}\n{_STRANGER}y) {_SELECTOR}",
    "the forged line takes the end": f"{_STRANGER}x) {_SELECTOR}\n{_FORGED}{LOGGER} x) {_SELECTOR}",
}
"""What a client writes that has not logged in: the SASL mechanism that it asks for is free text."""


@pytest.mark.parametrize("text", STRANGERS.values(), ids=STRANGERS)
@pytest.mark.parametrize("layout", ["logger at the end", "logger in front"])
def test_a_client_that_has_not_logged_in_makes_no_statement(text: str, layout: str) -> None:
    """Lines up to the last one that may end its message count for nothing, and are shown; those before it count."""
    log = f"{_HONEST}{LOGGER}\n{text}\n{_HONEST.replace('h-1', 'h-2')}{LOGGER}\n"
    if layout == "logger in front":
        log = log.replace(f" {_SELECTOR}", "").replace(LOGGER, "")
    scanned = Scanned()
    assert set(_kicked(log, scanned)) == {"honest"}
    assert _FORGED.split("Member ", 1)[1][:30] in scanned.suspicious_lines[0].text


def test_an_honest_stranger_makes_nothing_suspicious() -> None:
    """One client that asks for a mechanism which the broker does not have is no reason to doubt the lines behind it."""
    scanned = Scanned()
    log = f"{_STRANGER}PLAIN) {_SELECTOR}\n{_HONEST}{LOGGER}\n"
    assert (_kicked(log, scanned), scanned.suspicious) == (["honest"], 0)


def test_an_id_with_the_words_about_a_stranger_hides_no_line() -> None:
    """The words count where the broker writes them, and not in a group's id."""
    scanned = Scanned()
    log = f"{_BEGIN}Unsupported SASL mechanism x){_JOIN}{LOGGER}\n{_HONEST}{LOGGER}\n{_STRANGER}y) {_SELECTOR}\n"
    assert (_kicked(log, scanned), scanned.suspicious) == (["honest"], 0)


def test_a_stranger_is_followed_from_block_to_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a block ends, the forged line is not read without the line before it."""
    text = STRANGERS["two whole ends"]
    for size in (64, 100, 333, 1_000):
        monkeypatch.setattr("heartwheel.sources.explain.scan.BLOCK_BYTES", size)
        assert _kicked(f"{text}\n{_HONEST}{LOGGER}\n") == ["honest"]
