"""Incidents: when they open, what they gather, and when they close; time is passed in."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from heartwheel.readers.notify import incidents as incidents_module
from heartwheel.readers.notify.arrivals import ARRIVALS_MAX
from heartwheel.readers.notify.incident import MEMBERS_MAX, IncidentStep
from heartwheel.readers.notify.incidents import SEEN_MAX, Incidents, IncidentsSnapshot, Rules
from heartwheel.readers.notify.payload import incident_payload
from heartwheel.readers.notify.sentence import safe, sentence
from support.output_rows import T0, expired, joined

RULES = Rules(gather_ms=5_000, min_interval_ms=60_000, close_after_ms=600_000, incidents_max=3)
S = 1_000

Turn = tuple[int, Callable[[Incidents, int], None]]


def gone(*names: str, group: str = "g", **changes: object) -> Callable[[Incidents, int], None]:
    """Expire members at the moment of the turn."""

    def turn(incidents: Incidents, now_ms: int) -> None:
        for name in names:
            incidents.expired(expired(group, name, now_ms, **changes), now_ms=now_ms)

    return turn


def back(*names: str, group: str = "g") -> Callable[[Incidents, int], None]:
    """Bring members back at the moment of the turn."""
    return lambda incidents, now_ms: incidents.triggered(joined(group, *names, at_ms=now_ms), now_ms=now_ms)


def lines_of(incidents: Incidents, turns: list[Turn], *, until_s: int) -> list[str]:
    """Play turns, ask every second what is due, and list what a message would say, with its second."""
    lines = []
    for second in range(until_s + 1):
        now_ms = T0 + second * S
        for at_s, turn in turns:
            if at_s == second:
                turn(incidents, now_ms)
        for incident in incidents.due(now_ms):
            before = incident.reported_expired
            step, closed_by = incidents.report(incident, now_ms)
            lines.append(
                f"{second} {step} {sentence(incident_payload(incident, step, closed_by, expired_before=before))}"
            )
    return lines


def uuid(number: int) -> str:
    """Return the ending of an id as a broker makes it."""
    return f"00000000-0000-4000-8000-{number:012x}"


CASES: dict[str, tuple[list[Turn], list[str]]] = {
    "the first message waits and gathers": (
        [(0, gone("a")), (4, gone("b", "c"))],
        ["5 opened g: 3 members expired (session timeout): b at /10.0.0.7, c at /10.0.0.7, a at /10.0.0.7"],
    ),
    "updates keep their distance": (
        [(0, gone("a")), (10, gone("b")), (20, gone("c")), (70, gone("b"))],
        [
            "5 opened g: 1 member expired (session timeout): a at /10.0.0.7",
            "65 updated g: 2 more expired, 3 in all (session timeout): c at /10.0.0.7, b at /10.0.0.7, a at /10.0.0.7",
            (
                "125 updated g: expired 1 more time, 4 in all, of 3 members (session timeout): "
                "b at /10.0.0.7, c at /10.0.0.7, a at /10.0.0.7"
            ),
        ],
    ),
    "it closes when all are back": (
        [(0, gone("a", "b")), (80, back("a")), (200, back("b"))],
        [
            "5 opened g: 2 members expired (session timeout): a at /10.0.0.7, b at /10.0.0.7",
            "80 updated g: 2 in all (session timeout), 1 came back, 1 missing: b at /10.0.0.7",
            "200 closed g: all are back, after 2 expirations",
        ],
    ),
    "a member that flaps is one incident": (
        [(0, gone("a")), (10, back("a")), (20, gone("a")), (30, back("a"))],
        [
            "5 opened g: 1 member expired (session timeout): a at /10.0.0.7",
            "65 closed g: all are back, after 2 expirations",
        ],
    ),
    "a member that expires again is one member": (
        [(0, gone("a", "b")), (2, back("a")), (3, gone("a")), (70, back("a"))],
        [
            "5 opened g: 2 members expired, 3 times in all (session timeout): a at /10.0.0.7, b at /10.0.0.7",
            "70 updated g: 3 in all, of 2 members (session timeout), 1 came back, 1 missing: b at /10.0.0.7",
        ],
    ),
    "it is one member under the id it came back with": (
        [
            (0, gone(f"app-{uuid(1)}", client_id="app")),
            (2, back(f"app-{uuid(2)}")),
            (4, gone(f"app-{uuid(2)}", client_id="app")),
            (30, back(f"app-{uuid(3)}")),
        ],
        [
            f"5 opened g: 1 member expired 2 times (session timeout): app-{uuid(2)} at /10.0.0.7",
            "65 closed g: all are back, after 2 expirations",
        ],
    ),
    "a member that is back twice before the first message": (
        [(0, gone("a")), (1, back("a")), (2, gone("a")), (3, back("a"))],
        ["5 closed g: 1 member expired 2 times and came back"],
    ),
    "back before the first message makes one message": (
        [(0, gone("a")), (3, back("a"))],
        ["5 closed g: 1 member expired and came back"],
    ),
    "what stays away is closed when it is quiet": (
        [(0, gone("a", "b")), (100, back("b"))],
        [
            "5 opened g: 2 members expired (session timeout): a at /10.0.0.7, b at /10.0.0.7",
            "100 updated g: 2 in all (session timeout), 1 came back, 1 missing: a at /10.0.0.7",
            "600 closed g: closed, as nothing more happened; 1 did not come back, after 2 expirations",
        ],
    ),
    "after the end a new one begins": (
        [(0, gone("a")), (10, back("a")), (100, gone("a"))],
        [
            "5 opened g: 1 member expired (session timeout): a at /10.0.0.7",
            "65 closed g: all are back, after 1 expiration",
            "105 opened g: 1 member expired (session timeout): a at /10.0.0.7",
        ],
    ),
    "reasons are counted": (
        [(0, gone("a")), (0, gone("b", reason="rebalance_timeout"))],
        [
            "5 opened g: 2 members expired (1 session timeout, 1 rebalance timeout): a at /10.0.0.7, b at /10.0.0.7",
        ],
    ),
    "groups are told apart": (
        [(0, gone("a")), (1, gone("a", group="h"))],
        [
            "5 opened g: 1 member expired (session timeout): a at /10.0.0.7",
            "6 opened h: 1 member expired (session timeout): a at /10.0.0.7",
        ],
    ),
    "too many groups share one": (
        [(0, gone("a", group=name)) for name in ("g", "h", "i", "j", "k")],
        [
            *(f"5 opened {name}: 1 member expired (session timeout): a at /10.0.0.7" for name in ("g", "h", "i")),
            "5 opened further groups: 2 expirations (session timeout)",
            *(
                f"600 closed {name}: closed, as nothing more happened; 1 did not come back, after 1 expiration"
                for name in ("g", "h", "i")
            ),
            "600 closed further groups: closed, as nothing more happened, after 2 expirations",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_incident_is_told(case: str) -> None:
    """Each case reads like a table: what happens at which second, and what is posted at which second."""
    turns, wanted = CASES[case]
    last_s = int(wanted[-1].split()[0])
    assert lines_of(Incidents(RULES), turns, until_s=last_s) == wanted


def test_a_poll_timeout_is_named() -> None:
    """A consumer that took itself out is posted like the others, with its own reason."""
    incidents = Incidents(RULES)
    lines = lines_of(incidents, [(0, gone("slow", reason="poll_timeout"))], until_s=5)
    assert lines == ["5 opened g: 1 member expired (poll timeout): slow at /10.0.0.7"]


def test_a_failed_worker_is_named_with_its_failure() -> None:
    """A crash reads as one, with the exit code, the signal or the check; among timeouts it is counted by its reason."""
    killed = gone("a", reason="worker_failed", failure="ended by SIGKILL")
    turns = [(0, killed), (10, gone("b", reason="worker_failed", failure="exit code <3>")), (70, back("a"))]
    assert lines_of(Incidents(RULES), turns, until_s=65) == [
        "5 opened g: 1 worker failed: a at /10.0.0.7 (ended by SIGKILL)",
        (
            "65 updated g: 1 more failed, 2 in all (worker failed): b at /10.0.0.7 (exit code &lt;3&gt;), "
            "a at /10.0.0.7 (ended by SIGKILL)"
        ),
    ]
    mixed = lines_of(Incidents(RULES), [(0, killed), (1, gone("c"))], until_s=5)
    assert mixed[0].startswith("5 opened g: 2 members expired (1 worker failed, 1 session timeout): c at ")


def test_a_worker_that_failed_as_it_arrived_has_not_come_back() -> None:
    """The arrival that comes with a failure before the first beat is no return; the next one is."""
    turns = [(0, back("a")), (0, gone("a", reason="worker_failed", failure="exit code 127")), (80, back("a"))]
    assert lines_of(Incidents(RULES), turns, until_s=80) == [
        "5 opened g: 1 worker failed: a at /10.0.0.7 (exit code 127)",
        "80 closed g: all are back, after 1 expiration",
    ]


def test_a_job_that_is_overdue_is_told_as_one() -> None:
    """The line says by when a success was expected, or that a run was silent."""
    turns = [
        (0, gone("a", client_id="job", session_timeout_ms=90_000_000)),
        (0, gone("b", client_id="job-run", session_timeout_ms=30_000)),
    ]
    assert lines_of(Incidents(RULES), turns, until_s=5) == [
        (
            "5 opened g: 2 members expired (session timeout): a at /10.0.0.7 (no success within 1 d 1 h), "
            "b at /10.0.0.7 (a run was silent for 30 s)"
        )
    ]


def test_everything_is_told_in_the_end() -> None:
    """After the last message of an incident nothing is left of it."""
    incidents = Incidents(RULES)
    lines_of(incidents, [(0, gone("a")), (70, gone("b"))], until_s=670)
    assert list(incidents.incidents) == []


def test_a_row_that_was_written_twice_counts_once() -> None:
    """The job writes at least once; the same id is the same expiration (P3)."""
    incidents = Incidents(RULES)
    for _ in range(2):
        incidents.expired(expired("g", "a"), now_ms=T0)
    assert [incident.expired for incident in incidents.incidents] == [1]


def test_a_return_may_be_read_before_its_expiration() -> None:
    """Two topics have no common order: an arrival is remembered for an expiration that is read after it."""
    incidents = Incidents(RULES)
    incidents.triggered(joined("g", "a", at_ms=T0 + 1), now_ms=T0)
    incidents.expired(expired("g", "a", T0), now_ms=T0)
    assert [incident.missing for incident in incidents.incidents] == [0]


def test_an_arrival_before_the_deadline_is_no_return() -> None:
    """Somebody who joined before the expiration is who was expired."""
    incidents = Incidents(RULES)
    incidents.triggered(joined("g", "a", at_ms=T0 - 1), now_ms=T0)
    incidents.expired(expired("g", "a", T0), now_ms=T0)
    assert [incident.missing for incident in incidents.incidents] == [1]


def test_one_arrival_is_one_return() -> None:
    """Two members with one client id look alike; each arrival stands for one of them."""
    uuid = "00000000-0000-0000-0000-00000000000"
    incidents = Incidents(RULES)
    for number in (1, 2):
        incidents.expired(expired("g", f"app-{uuid}{number}", T0, client_id="app"), now_ms=T0)
    incidents.triggered(joined("g", f"app-{uuid}3"), now_ms=T0)
    assert [incident.missing for incident in incidents.incidents] == [1]
    incidents.triggered(joined("g", f"app-{uuid}4"), now_ms=T0)
    assert [incident.missing for incident in incidents.incidents] == [0]


def test_books_are_bounded() -> None:
    """A storm cannot fill the memory (P6): members beyond the limit are counted, old ids and arrivals forgotten."""
    incidents = Incidents(RULES)
    for number in range(SEEN_MAX + 10):
        incidents.expired(expired("g", f"m{number}"), now_ms=T0)
    for _ in range(3):
        incidents.triggered(joined("h", *(f"m{number}" for number in range(1_000))), now_ms=T0)
    snapshot = incidents.snapshot()
    assert (len(snapshot.seen), len(snapshot.arrivals)) == (SEEN_MAX, ARRIVALS_MAX)
    (incident,) = snapshot.incidents
    assert len(incident.members) == MEMBERS_MAX
    assert (incident.expired, incident.missing) == (SEEN_MAX + 10, SEEN_MAX + 10)


def test_members_of_all_groups_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many groups of many members cannot fill the memory either; a closed incident makes room (P6)."""
    monkeypatch.setattr(incidents_module, "TRACKED_MAX", 5)
    incidents = Incidents(RULES)
    for group in ("g", "h"):
        for name in "abcd":
            incidents.expired(expired(group, name), now_ms=T0)
    g, h = incidents.incidents
    assert (len(g.members), len(h.members), h.untracked, h.missing) == (4, 1, 3, 4)
    incidents.triggered(joined("g", *"abcd"), now_ms=T0)
    incidents.report(g, T0 + 5_000)
    incidents.expired(expired("i", "a"), now_ms=T0)
    assert [len(incident.members) for incident in incidents.incidents] == [1, 1]


def test_a_book_goes_on_from_its_pages() -> None:
    """Wherever a process ends, the next one tells what the first would have posted."""
    turns = [(0, gone("a", "b")), (3, back("x")), (30, gone("c")), (70, back("a", "b", "c"))]
    whole = lines_of(Incidents(RULES), turns, until_s=200)
    for cut_s in (0, 4, 40, 100):
        incidents = Incidents(RULES)
        first = lines_of(incidents, turns, until_s=cut_s)
        snapshot = msgspec.json.decode(msgspec.json.encode(incidents.snapshot()), type=IncidentsSnapshot)
        later = [(at_s - cut_s - 1, turn) for at_s, turn in turns]
        rest = lines_of(Incidents(RULES, _earlier(snapshot, (cut_s + 1) * S)), later, until_s=200 - cut_s - 1)
        assert [line.split(maxsplit=1)[1] for line in first + rest] == [line.split(maxsplit=1)[1] for line in whole]


def _earlier(snapshot: IncidentsSnapshot, by_ms: int) -> IncidentsSnapshot:
    """Shift the clock of the notifier, as `lines_of` begins at `T0`."""
    for incident in snapshot.incidents:
        incident.opened_ms -= by_ms
        incident.expired_ms -= by_ms
        incident.reported_ms -= by_ms
        incident.news_ms = None if incident.news_ms is None else incident.news_ms - by_ms
        for member in incident.members.values():
            member.row.deadline_ms -= by_ms
    return snapshot


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!channel>", "&lt;!channel&gt;"),
        ("a&b", "a&amp;b"),
        ("line\nbreak\u202e", "line\ufffdbreak\ufffd"),
        ("x" * 200, "x" * 79 + "…"),
    ],
)
def test_ids_are_harmless_in_a_chat(text: str, shown: str) -> None:
    """An id is anybody's text: it must not ping a channel, break a line or turn the writing round."""
    assert safe(text) == shown


def test_an_incident_says_who_is_missing_first() -> None:
    """Of many members a message names twenty: those that are missing, the latest first; the others are counted."""
    incidents = Incidents(RULES)
    for number in range(30):
        incidents.expired(expired("g", f"m{number}", T0 + number), now_ms=T0)
    incidents.triggered(joined("g", "m29", "m28", at_ms=T0 + 100), now_ms=T0)
    (incident,) = incidents.incidents
    shown = incident_payload(incident, IncidentStep.OPENED, None, expired_before=0)
    assert [member.member_id for member in shown.members] == [f"m{number}" for number in range(27, 7, -1)]
    assert (shown.members_left_out, shown.missing, shown.returned) == (10, 28, 2)
    assert sentence(shown).endswith("m23 at /10.0.0.7 and 23 more")
