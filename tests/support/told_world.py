"""A world with a script: what happened in each group, as rows of the output topics, and what people must be shown.

The truth stands in the script, written by hand; nothing of it is computed by what is judged. A story is one group. To
add one, write it and name it in `STORIES`: the page, the terminal and the webhook are then held to it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from heartwheel.readers.live.topic_rows import TopicRow
from heartwheel.wire.job import Phase
from heartwheel.wire.status import ListedGroup
from support.dashboard_rows import at_risk, expired, job, status, triggered

MOMENT: Final = dt.datetime(2026, 5, 12, 9, 41, 7, tzinfo=dt.UTC)
T: Final = int(MOMENT.timestamp() * 1_000)
"""The moment at which everybody looks, epoch ms."""

S: Final = 1_000
NOTHING: Final = "\u2013"
"""What stands where nothing is known, or nothing is."""

WORDS_OF_KAFKA: Final = "removing member on heartbeat expiration"
"""What the coordinator itself logs, which no group without its protocol has."""

LAGGING: Final = "Feed broker-1 has relayed nothing for 24 s: no member of its groups expires until it does."
"""What is to be said of the tap of a broker, as long as somebody reads what it passes on."""

DIED_MS: Final = T + 60 * S
"""When the job is looked at after its end; its last batch was at `T`."""


def uuid(number: int) -> str:
    """Return the ending of an id as a broker makes it."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


@dataclass(frozen=True, kw_only=True)
class Gone:
    """What is to be told of one expiration.

    Args:
        cells: its row on page Expired, as it is read there.
        page: words that its own page has.
        top: its row in the terminal: timer, silence, lateness, whether it is back.
    """

    member_id: str
    cells: tuple[str, ...]
    page: tuple[str, ...]
    top: tuple[str, str, str, str]


@dataclass(frozen=True, kw_only=True)
class Story:
    """What happened in one group, and what is to be told of it.

    Args:
        rows: what the topics say, in the order of time.
        listed: what its shard says of it; `None` if nothing that its rows do not say.
        cells: its row on page Groups, as it is read there.
        former: its state there once the engine decides no more.
        members: how many it has; they add up to those of the first page.
        troubles: what stands of it in the light about groups, on the page.
        gone: its expirations, the newest first.
        course: what happened, the newest first, as its own page has it.
        words: a part of what its state means, as its own page has it.
        rebalances: the head of its part of page Rebalances; empty if it has none.
        waited_for: the members that its rebalances waited for until they were taken out.
        top: its row in the terminal: state, members, last change, storm.
        messages: what the webhook is told, in order.
    """

    group_id: str
    rows: Sequence[TopicRow]
    cells: tuple[str, ...]
    former: str
    members: int
    top: tuple[str, str, str, str]
    troubles: tuple[str, ...] = ()
    gone: tuple[Gone, ...] = ()
    course: tuple[str, ...] = ()
    words: str = ""
    listed: ListedGroup | None = None
    rebalances: str = ""
    waited_for: tuple[str, ...] = ()
    messages: tuple[str, ...] = field(default=())


def _dead() -> Story:
    """One of three members of a classic group dies, and stays away."""
    at_ms, member = T - 120 * S, f"orders-1-{uuid(1)}"
    rows = [
        expired(
            "orders", member, at_ms, session_ms=10_000, client_id="orders-1", generation_id=6, group_kind="classic"
        ),
        _begun("orders", at_ms, 6),
        _done("orders", at_ms + 2_600, 7, took_ms=2_600, members=2),
    ]
    return Story(
        group_id="orders",
        rows=rows,
        members=2,
        cells=("orders\nclassic", "Stable", "2\ngen. 7", "member expired\n2 min ago, took 2.6 s", NOTHING, "1"),
        former="was Stable",
        gone=(
            Gone(
                member_id=member,
                cells=(
                    "09:39:07\nseen 09:38:57",
                    "Silent",
                    "orders\nwas Stable",
                    f"{member}\norders-1 · 10.0.0.7",
                    "11 s\nof 10 s",
                    "730 ms\nat 09:39:07",
                    "6",
                    "not yet",
                ),
                page=(
                    "Has not come back",
                    "No heartbeat of it reached the broker for 10.6 s",
                    "its session timeout is 10 s (session.timeout.ms).",
                    "Its time was over at the deadline; the engine decided 640 ms after that.",
                ),
                top=("session", "10.6 s", "730 ms", "no"),
            ),
        ),
        course=(
            "09:39:09 Generation 7 begins with 2 members after 2.6 s: all joined",
            "09:39:07 Rebalance to generation 7 begins: member expired",
            f"09:39:07 {member} expired: session timeout, silent for 10.6 s",
        ),
        rebalances="1 rebalance, 2.6 s in all, the longest 2.6 s",
        top=("Stable", "2", "member expired, 2 min ago", ""),
        messages=(f"orders: 1 member expired (session timeout): {member} at /10.0.0.7",),
    )


def _left() -> Story:
    """All members of a group leave by themselves: it is empty, and nothing is wrong."""
    rows = [
        _begun("reports", T - 300 * S, 3, cause="member_left"),
        triggered(
            *("group_empty", "reports", T - 300 * S),
            generation_id=4,
            cause="no_members",
            group_kind="classic",
            duration_ms=0,
        ),
    ]
    return Story(
        group_id="reports",
        rows=rows,
        members=0,
        cells=("reports\nclassic", "Empty", "0\ngen. 4", "no members left\n5 min ago", NOTHING, "0"),
        former="was Empty",
        course=(
            "09:36:07 No member is left at generation 4: no members left",
            "09:36:07 Rebalance to generation 4 begins: member left",
        ),
        rebalances="1 rebalance, 0 ms in all, the longest 0 ms",
        top=("Empty", "0", "no members left, 5 min ago", ""),
    )


def _returned() -> Story:
    """A member dies and is back under a new id."""
    at_ms, member, again = T - 90 * S, f"billing-1-{uuid(2)}", f"billing-1-{uuid(3)}"
    rows = [
        expired("billing", member, at_ms, client_id="billing-1", generation_id=8, group_kind="classic"),
        _begun("billing", at_ms, 8),
        _done("billing", at_ms + 4 * S, 9, took_ms=4_000, members=3, joined=(again,)),
    ]
    return Story(
        group_id="billing",
        rows=rows,
        members=3,
        cells=("billing\nclassic", "Stable", "3\ngen. 9", "member expired\n1 min 30 s ago, took 4 s", NOTHING, "1"),
        former="was Stable",
        gone=(
            Gone(
                member_id=member,
                cells=(
                    "09:39:37\nseen 09:39:31",
                    "Silent",
                    "billing\nwas Stable",
                    f"{member}\nbilling-1 · 10.0.0.7",
                    "6.6 s\nof 6 s",
                    "730 ms\nat 09:39:37",
                    "8",
                    "4 s",
                ),
                page=("Came back 4 s after its deadline", "for 6.6 s; its session timeout is 6 s"),
                top=("session", "6.6 s", "730 ms", "after 4.0 s"),
            ),
        ),
        course=(
            "09:39:41 Generation 9 begins with 3 members after 4.0 s: all joined",
            "09:39:37 Rebalance to generation 9 begins: member expired",
            f"09:39:37 {member} expired: session timeout, silent for 6.6 s",
        ),
        rebalances="1 rebalance, 4 s in all, the longest 4 s",
        top=("Stable", "3", "member expired, 1 min 30 s ago", ""),
        messages=("billing: 1 member expired and came back",),
    )


def _emptied() -> Story:
    """Both members of a group die: nobody is left, and that is trouble."""
    first, second = f"night-1-{uuid(4)}", f"night-2-{uuid(5)}"
    fields: dict[str, Any] = {"session_ms": 30_000, "generation_id": 2, "group_kind": "classic"}
    rows = [
        expired("night", first, T - 202 * S, client_id="night-1", **fields),
        _begun("night", T - 202 * S, 2),
        expired("night", second, T - 200 * S, client_id="night-2", group_state="PreparingRebalance", **fields),
        triggered(
            *("group_empty", "night", T - 200 * S),
            generation_id=3,
            cause="no_members",
            group_kind="classic",
            duration_ms=2_000,
        ),
    ]
    trouble = "no members for 3 min 20 s; 2 expired members not back"

    def gone(member: str, name: str, when: str, state: str, at: str) -> Gone:
        return Gone(
            member_id=member,
            cells=(
                when,
                "Silent",
                f"night\nwas {state}",
                f"{member}\n{name} · 10.0.0.7",
                "31 s\nof 30 s",
                f"730 ms\nat {at}",
                "2",
                "not yet",
            ),
            page=("Has not come back", "for 30.6 s; its session timeout is 30 s"),
            top=("session", "30.6 s", "730 ms", "no"),
        )

    return Story(
        group_id="night",
        rows=rows,
        members=0,
        cells=("night\nclassic", "Empty", "0\ngen. 3", "no members left\n3 min 20 s ago", NOTHING, "2\nno members"),
        former="was Empty",
        troubles=(f"no members {trouble}",),
        gone=(
            gone(second, "night-2", "09:37:47\nseen 09:37:17", "Preparing rebalance", "09:37:47"),
            gone(first, "night-1", "09:37:45\nseen 09:37:15", "Stable", "09:37:45"),
        ),
        course=(
            "09:37:47 No member is left at generation 3: no members left",
            f"09:37:47 {second} expired: session timeout, silent for 30.6 s",
            "09:37:45 Rebalance to generation 3 begins: member expired",
            f"09:37:45 {first} expired: session timeout, silent for 30.6 s",
        ),
        rebalances="1 rebalance, 2 s in all, the longest 2 s",
        waited_for=(second,),
        top=("Empty", "0", "no members left, 3 min 20 s ago", ""),
        messages=(f"night: 2 members expired (session timeout): {second} at /10.0.0.7, {first} at /10.0.0.7",),
    )


def _storm() -> Story:
    """A group rebalances six times in two and a half minutes, as new members keep coming; nobody is expired."""
    rows = []
    for number in range(6):
        at_ms = T - (160 - 30 * number) * S
        rows.append(_begun("fraud", at_ms, 10 + number, cause="member_joined"))
        rows.append(_done("fraud", at_ms + 3 * S, 11 + number, took_ms=3_000, members=5))
    return Story(
        group_id="fraud",
        rows=rows,
        members=5,
        cells=("fraud\nclassic", "Stable", "5\ngen. 16", "member joined\n10 s ago, took 3 s", NOTHING, "0\nstorm"),
        former="was Stable",
        troubles=("storm 6 rebalances in 5 min, the first by: member joined",),
        course=(
            "09:41:00 Generation 16 begins with 5 members after 3.0 s: all joined",
            "09:40:57 Rebalance to generation 16 begins: member joined",
        ),
        rebalances="6 rebalances, 18 s in all, the longest 3 s",
        top=("Stable", "5", "member joined, 10 s ago", "6 rebalances, first: member joined"),
    )


def _epochs() -> Story:
    """A member of a consumer group (KIP-848) is fenced; if its client was started again, nobody could tell."""
    at_ms, member = T - 60 * S, "dHJ1dGgtb2YtYS1tZW0"
    rows = [
        expired(
            *("quotes", member, at_ms),
            session_ms=45_000,
            client_id="quotes-1",
            generation_id=4,
            group_kind="consumer",
            member_epoch=4,
        ),
        triggered(
            *("epoch_bumped", "quotes", at_ms),
            generation_id=5,
            cause="member_expired",
            group_kind="consumer",
            member_count=4,
            removed=(member,),
        ),
    ]
    return Story(
        group_id="quotes",
        rows=rows,
        members=4,
        cells=("quotes\nconsumer", "Stable", "4\ngen. 5", "member expired\n1 min ago", NOTHING, "1"),
        former="was Stable",
        gone=(
            Gone(
                member_id=member,
                cells=(
                    "09:40:07\nseen 09:39:22",
                    "Silent",
                    "quotes\nwas Stable",
                    f"{member}\nquotes-1 · 10.0.0.7",
                    "46 s\nof 45 s",
                    "730 ms\nat 09:40:07",
                    "4",
                    "not known",
                ),
                page=(
                    "Has not come back under this id",
                    "which the broker sets for consumer groups (group.consumer.session.timeout.ms)",
                ),
                top=("session", "45.6 s", "730 ms", "not known"),
            ),
        ),
        course=(
            f"09:40:07 {member}: member expired, 4 members there, epoch 5",
            f"09:40:07 {member} expired: session timeout, silent for 45.6 s",
        ),
        top=("Stable", "4", "member expired, 1 min ago", ""),
        messages=(f"quotes: 1 member expired (session timeout): {member} at /10.0.0.7",),
    )


def _slow() -> Story:
    """Two members of one group do not poll in time, and say so as they leave; they are back a little later."""
    rows: list[TopicRow] = []
    for number, at_ms in enumerate((T - 400 * S, T - 380 * S)):
        gone, again = f"exports-{number}-{uuid(20 + number)}", f"exports-{number}-{uuid(30 + number)}"
        rows += [
            expired(
                *("exports", gone, at_ms),
                reason="poll_timeout",
                session_ms=300_000,
                late_ms=200,
                client_id=f"exports-{number}",
                generation_id=number + 1,
                group_kind="classic",
            ),
            _begun("exports", at_ms, number + 1, cause="member_left"),
            _done("exports", at_ms + 8 * S, number + 2, took_ms=8_000, members=2, joined=(again,)),
        ]

    def gone_of(number: int, when: str, at: str) -> Gone:
        member = f"exports-{number}-{uuid(20 + number)}"
        return Gone(
            member_id=member,
            cells=(
                when,
                "Took itself out",
                "exports\nwas Stable",
                f"{member}\nexports-{number} · 10.0.0.7",
                "5 min\ntimer: 5 min",
                f"290 ms\nat {at}",
                str(number + 1),
                "8 s",
            ),
            page=("Came back 8 s after its deadline", "it had not polled for 5 min, its max.poll.interval.ms"),
            top=("poll", "5 min", "290 ms", "after 8.0 s"),
        )

    return Story(
        group_id="exports",
        rows=rows,
        members=2,
        cells=(
            "exports\nclassic",
            "Stable",
            "2\ngen. 3",
            "member left\n6 min 20 s ago, took 8 s",
            NOTHING,
            "2\nlate polls",
        ),
        former="was Stable",
        troubles=("late polls 2 members did not poll in time in 15 min",),
        gone=(
            gone_of(1, "09:34:47\nseen 09:29:47", "09:34:47"),
            gone_of(0, "09:34:27\nseen 09:29:27", "09:34:27"),
        ),
        rebalances="2 rebalances, 16 s in all, the longest 8 s",
        top=("Stable", "2", "member left, 6 min 20 s ago", ""),
        messages=(
            "exports: 1 member expired (poll timeout): exports-0-" + uuid(20) + " at /10.0.0.7",
            "exports: all are back, after 2 expirations",
        ),
    )


def _failed() -> Story:
    """A worker under `heartwheel beat` ends with an exit code: that is no polite leave, and is reported."""

    def failed(member: str, at_ms: int, seen_ms: int, failure: str, generation: int) -> list[TopicRow]:
        row = expired(
            *("jobs", member, at_ms),
            reason="worker_failed",
            failure=failure,
            session_ms=10_000,
            late_ms=700,
            client_id="beat",
            generation_id=generation,
            group_kind="presence",
        )
        return [
            row._replace(row=msgspec.structs.replace(row.row, last_seen_ms=seen_ms)),
            _changed("jobs", at_ms, generation + 1, cause="member_expired", members=3, removed=(member,)),
        ]

    rows = [
        *failed("import-7", T - 30 * S, T - 33 * S, "exit code 3", 1),
        # By the rules of the engine one that fails before its first heartbeat arrives, and fails in the same moment.
        _changed("jobs", T - 25 * S, 3, cause="member_joined", members=4, joined=("import-8",)),
        *failed("import-8", T - 25 * S, T - 25 * S, "exit code 127", 3),
    ]
    return Story(
        group_id="jobs",
        rows=rows,
        members=3,
        cells=("jobs\npresence", "Stable", "3\ngen. 4", "member expired\n25 s ago", NOTHING, "2"),
        former="was Stable",
        gone=(
            Gone(
                member_id="import-8",
                cells=(
                    "09:40:42\nnever beat",
                    "Failed",
                    "jobs\nwas Stable",
                    "import-8\nexit code 127 \u00b7 beat \u00b7 10.0.0.7",
                    NOTHING,
                    "790 ms\nat 09:40:42",
                    "3",
                    "not yet",
                ),
                page=("It failed 25 s ago: exit code 127.", "The engine knew it 700 ms after that."),
                top=("failed", "-", "790 ms", "no"),
            ),
            Gone(
                member_id="import-7",
                cells=(
                    "09:40:37\nseen 09:40:34",
                    "Failed",
                    "jobs\nwas Stable",
                    "import-7\nexit code 3 \u00b7 beat \u00b7 10.0.0.7",
                    NOTHING,
                    "790 ms\nat 09:40:37",
                    "1",
                    "not yet",
                ),
                page=("It failed 30 s ago: exit code 3.", "The engine knew it 700 ms after that."),
                top=("failed", "-", "790 ms", "no"),
            ),
        ),
        course=(
            "09:40:42 import-8: member expired, 3 members there, generations 3 and 4",
            "09:40:42 import-8 failed: exit code 127",
            "09:40:37 import-7: member expired, 3 members there, generation 2",
            "09:40:37 import-7 failed: exit code 3",
        ),
        top=("Stable", "3", "member expired, 25 s ago", ""),
        messages=(
            "jobs: 2 workers failed: import-8 at /10.0.0.7 (exit code 127), import-7 at /10.0.0.7 (exit code 3)",
        ),
    )


def _overdue() -> Story:
    """A job that is expected once an hour, with ten minutes of grace, has not run: its group has no other member."""
    at_ms, member, within_ms = T - 150 * S, "backup-db", 4_200_000
    rows = [
        expired("backup", member, at_ms, session_ms=within_ms, client_id="job", generation_id=1, group_kind="presence"),
        triggered(
            *("group_empty", "backup", at_ms),
            generation_id=2,
            cause="no_members",
            group_kind="presence",
            removed=(member,),
            duration_ms=0,
            reason="Group backup with generation 2 is now empty",
        ),
    ]
    return Story(
        group_id="backup",
        rows=rows,
        words="It has no members. The first worker that sends a heartbeat becomes one.",
        members=0,
        cells=(
            "backup\npresence",
            "Empty",
            "0\ngen. 2",
            "last member gone\n2 min 30 s ago",
            NOTHING,
            "1\noverdue",
        ),
        former="was Empty",
        troubles=("overdue no run for 1 h 12 min; one was expected within 1 h 10 min",),
        gone=(
            Gone(
                member_id=member,
                cells=(
                    "09:38:37\nseen 08:28:37",
                    "Silent",
                    "backup\nwas Stable",
                    f"{member}\njob \u00b7 10.0.0.7",
                    "1 h 10 min\nof 1 h 10 min",
                    "730 ms\nat 09:38:37",
                    "1",
                    "not yet",
                ),
                page=("Its next success was expected within 1 h 10 min, period and grace together",),
                top=("session", "1 h 10 min", "730 ms", "no"),
            ),
        ),
        course=(
            "09:38:37 backup-db: last member gone, generation 2",
            "09:38:37 backup-db expired: session timeout, silent for 1 h 10 min",
        ),
        top=("Empty", "0", "last member gone, 2 min 30 s ago", ""),
        messages=("backup: 1 member expired (session timeout): backup-db at /10.0.0.7 (no success within 1 h 10 min)",),
    )


def _unknown() -> Story:
    """One of three members joined before the tap began: its session is not known, so nobody judges it."""
    return Story(
        group_id="ledger",
        rows=(),
        listed=ListedGroup(group_id="ledger", kind="loaded", state="Stable", members=3, unknown_sessions=1),
        members=3,
        cells=("ledger\nloaded", "Stable", f"3 (1 unknown)\ngen. {NOTHING}", "none seen", NOTHING, "0"),
        former="was Stable",
        words="1 member is unknown: it joined before the tap, and its session is not in the log.",
        top=("Stable", "3 (1 unknown)", "-", ""),
    )


def _changed(group: str, at_ms: int, generation: int, *, cause: str, members: int, **who: Any) -> TopicRow:
    """Say who came to a presence group, or went."""
    return triggered(
        *("rebalance_completed", group, at_ms),
        generation_id=generation,
        cause=cause,
        group_kind="presence",
        member_count=members,
        duration_ms=0,
        reason=f"Stabilized group {group} generation {generation}",
        **who,
    )


def _begun(group: str, at_ms: int, generation: int, *, cause: str = "member_expired") -> TopicRow:
    return triggered(
        *("rebalance_triggered", group, at_ms),
        generation_id=generation,
        cause=cause,
        deadline_ms=at_ms + 300_000,
        group_kind="classic",
        reason=WORDS_OF_KAFKA,
    )


def _done(
    group: str, at_ms: int, generation: int, *, took_ms: int, members: int, joined: tuple[str, ...] = ()
) -> TopicRow:
    return triggered(
        *("rebalance_completed", group, at_ms),
        generation_id=generation,
        cause="all_joined",
        leader="somebody",
        member_count=members,
        joined=joined,
        duration_ms=took_ms,
        group_kind="classic",
    )


STORIES: Final = (
    _dead(),
    _left(),
    _returned(),
    _emptied(),
    _storm(),
    _epochs(),
    _slow(),
    _failed(),
    _overdue(),
    _unknown(),
)
"""All that happened. A story is found by its group."""

NEXT: Final = ("orders", f"orders-2-{uuid(50)}", T + 4_000, 10_000)
"""The one member that is near its deadline, when that is, and how long its session is."""


def history() -> list[TopicRow]:
    """Return what the topics say up to the moment at which everybody looks, in the order of time."""
    rows = sorted((row for story in STORIES for row in story.rows), key=lambda row: row.append_ms)
    kinds = {"classic": 6, "consumer": 1, "presence": 2, "loaded": 1}
    group, member, deadline_ms, session_ms = NEXT
    # Two steps of five seconds with twenty records each: four heartbeats a second.
    before = [status(0, at_ms, counts={"records": 20}) for at_ms in (T - 9 * S, T - 4 * S)]
    shard = status(
        *(0, T - 500),
        members=sum(story.members for story in STORIES),
        groups=len(STORIES),
        groups_by_state={"Stable": 7, "Empty": 3},
        groups_by_kind=kinds,
        feeds={"broker-1": T - 24_500},
        at_risk=(at_risk(group, member, deadline_ms, session_ms),),
        listed=(
            ListedGroup(group_id="orders", kind="classic", state="Stable", members=2),
            *(story.listed for story in STORIES if story.listed is not None),
        ),
    )
    return [*rows, *before, shard, job(T, shards=1, duration_ms=420, records=160, trigger_interval_ms=1_000)]


def killed() -> TopicRow:
    """Return the last word of the job: Spark's JVM was killed a second after its last batch."""
    last_ms = T + 1 * S
    return job(
        *(last_ms,),
        phase=Phase.STOPPED,
        phase_since_ms=last_ms,
        ended_ms=T,
        shards=1,
        fault="Spark's JVM was ended by signal 9",
    )
