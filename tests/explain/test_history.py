"""What lines mean beside one another: leaves that are poll timeouts, second lines of one cause, who was waited for."""

from __future__ import annotations

from datetime import UTC, datetime

from heartwheel.sources.explain.scan import Scanned
from heartwheel.wire.explained import BROKERS, ExplainedEvent, Happened
from support.broker_logs import OUT, explained

A = "app-a-9c0f6a3e-1f7b-4c4e-9a55-0d9a3b3d1c11"
B = "app-b-1c0f6a3e-1f7b-4c4e-9a55-0d9a3b3d1c22"
C = "app-a-2c0f6a3e-1f7b-4c4e-9a55-0d9a3b3d1c33"
K = "Yk3yQq0TSVuRW1yU3oCQeg"
LOGGER = "kafka.coordinator.group.GroupCoordinator"
START_MS = 1_795_313_510_000


def log(*lines: tuple[float, str], broker: int = 1, new: bool = False) -> str:
    """Write a broker's log of lines at seconds after `START_MS`."""
    prefix = (
        f"[GroupCoordinator id={broker} topic=__consumer_offsets partition=3] "
        if new
        else f"[GroupCoordinator {broker}]: "
    )
    written = []
    for second, text in lines:
        at = datetime.fromtimestamp(START_MS / 1000 + second, UTC)
        written.append(f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}] INFO {prefix}{text} ({LOGGER})")
    return "\n".join(written) + "\n"


def preparing(old: int, reason: str, group: str = "g") -> str:
    """Write the line that begins a rebalance."""
    return f"Preparing to rebalance group {group} in state PreparingRebalance with old generation {old} (__consumer_offsets-3) (reason: {reason})"


def stable(number: int, group: str = "g") -> str:
    """Write the line that ends one."""
    return f"Stabilized group {group} generation {number} (__consumer_offsets-3) with 2 members"


def kinds(events: list[ExplainedEvent]) -> list[Happened]:
    """List the kinds of events."""
    return [event.kind for event in events]


def out(events: list[ExplainedEvent]) -> list[ExplainedEvent]:
    """Pick the events in which a membership ended."""
    return [event for event in events if event.kind in OUT]


def test_an_expiry_has_its_rebalance_and_its_return() -> None:
    """It says from which generation it was, how long the rebalance took that it led to, and when the client was back."""
    events = explained(
        log(
            (0, f"Member {A} in group g has failed, removing it from the group"),
            (0, preparing(4, f"removing member {A} on heartbeat expiration")),
            (1.5, stable(5)),
            (9, f"Dynamic member with unknown member id joins group g in Stable state. Created a new member id {C} and request the member to rejoin with this id."),
        )
    )  # fmt: skip
    expired, rebalance = events
    assert (expired.kind, expired.time_ms, expired.generation_id) == (Happened.EXPIRED, START_MS, 4)
    assert (expired.client_id, expired.reason, expired.rebalance_generation, expired.rebalance_ms) == (
        "app-a",
        "session_timeout",
        5,
        1_500,
    )
    assert (expired.returned_ms, expired.returned_as) == (START_MS + 9_000, C)
    assert (rebalance.reason, rebalance.caused_by, rebalance.duration_ms) == ("member_expired", (A,), 1_500)
    assert rebalance.time_ms == START_MS + 1_500
    assert any("raise session.timeout.ms" in sentence for sentence in expired.explanation)


def test_a_member_that_is_back_after_hours_is_known_to_be() -> None:
    """Its removal is returned before that, and whoever keeps it, as `advise` does, sees when it was back."""
    lines = (
        (0, f"Member {A} in group g has failed, removing it from the group"),
        (7_200, f"Member {B} in group g has failed, removing it from the group"),
        (10_800, preparing(4, f"Adding new member {A} with group instance id None")),
    )
    first = explained(log(*lines))[0]
    assert (first.member_id, first.returned_ms, first.returned_as) == (A, START_MS + 10_800_000, A)


def test_who_a_rebalance_waited_for() -> None:
    """Who was removed at its end, and who died while it ran and was the last that it waited for, blocked it."""
    at_barrier = explained(
        log(
            (0, preparing(1, f"Adding new member {B} with group instance id None; client reason: not provided")),
            (5, f"Group g removed dynamic members who haven't joined: Set({A})"),
            (5.001, stable(2)),
        )
    )
    assert kinds(at_barrier) == [Happened.REMOVED_AT_REBALANCE, Happened.REBALANCE]
    assert (at_barrier[0].member_id, at_barrier[0].duration_ms, at_barrier[1].blocked_by) == (A, 5_000, (A,))
    died = explained(
        log(
            (0, preparing(1, f"Adding new member {B} with group instance id None")),
            (4, f"Member {A} in group g has failed, removing it from the group"),
            (4.002, stable(2)),
        )
    )
    assert (died[0].kind, died[1].blocked_by, died[1].caused_by) == (Happened.EXPIRED, (A,), (B,))
    in_time = explained(
        log(
            (0, preparing(1, f"Adding new member {B} with group instance id None")),
            (1, f"Member {A} in group g has failed, removing it from the group"),
            (4, stable(2)),
        )
    )
    assert in_time[1].blocked_by == ()


def test_members_that_never_sync() -> None:
    """The reason of the next rebalance is the only line that names them."""
    events = explained(
        log((0, stable(3)), (10, preparing(3, f"Removing Set({A}, {B}) on pending sync request expiration")))
    )
    assert [(event.kind, event.member_id, event.generation_id) for event in events[1:3]] == [
        (Happened.SYNC_TIMEOUT, A, 3),
        (Happened.SYNC_TIMEOUT, B, 3),
    ]


def test_a_poll_timeout_that_is_told() -> None:
    """A classic client says why it leaves: no guess is needed, and its own limit is named."""
    left = (
        f"Member MemberMetadata(memberId={A}, groupInstanceId=None, clientId=app-a, clientHost=/10.0.0.7, sessionTimeoutMs=45000, "
        "rebalanceTimeoutMs=300000, supportedProtocols=List(range)) has left group g through explicit `LeaveGroup`; "
        "client reason: consumer poll timeout has expired."
    )
    (event,) = explained(log((0, left)))
    assert (event.kind, event.certainty, event.rebalance_timeout_ms) == (Happened.POLL_TIMEOUT, "certain", 300_000)
    assert event.reason_text == "consumer poll timeout has expired."
    text = " ".join(event.explanation)
    assert "max.poll.interval.ms, 5 min" in text
    assert "max.poll.records" in text


def test_a_poll_timeout_that_is_not_told() -> None:
    """A KIP-848 member that leaves and is back under its id was most likely over its poll interval; a closed one left."""
    lines = [
        (0, f"[GroupId g] Member {K} left the consumer group."),
        (0, "[GroupId g] Bumped group epoch to 8."),
        (5, f"[GroupId g] Member other{K} left the consumer group."),
        (14, f"[GroupId g] Member {K} joins the consumer group using the consumer protocol."),
        (14, "[GroupId g] Bumped group epoch to 9 with metadata hash -5."),
    ]
    events = explained(log(*lines, new=True))
    poll, left = out(events)
    assert (poll.kind, poll.certainty, poll.returned_ms) == (Happened.POLL_TIMEOUT, "likely", START_MS + 14_000)
    assert (left.kind, left.certainty) == (Happened.LEFT, "certain")
    assert [(event.epoch, event.reason, event.caused_by) for event in events if event.kind is Happened.REBALANCE] == [
        (8, "member_left", (K,)),
        (9, "member_joined", (K,)),
    ]


def test_a_static_poll_timeout_that_is_not_told() -> None:
    """A static KIP-848 member that replaces itself was over its poll interval; one that gets a new id was restarted."""
    away = f"[GroupId g] Static member {K} with instance id i-1 temporarily left the consumer group."
    back = "[GroupId g] Static member with instance id i-1 re-joins the consumer group using the consumer protocol. Created a new member {} to replace the existing member {}."
    (poll,) = out(explained(log((0, away), (9, back.format(K, K)), new=True)))
    assert (poll.kind, poll.certainty, poll.group_instance_id) == (Happened.POLL_TIMEOUT, "likely", "i-1")
    left, replaced = out(explained(log((0, away), (9, back.format("new" + K, K)), new=True)))
    assert (left.kind, left.returned_as) == (Happened.TEMPORARILY_LEFT, "new" + K)
    assert (replaced.kind, replaced.member_id, replaced.new_member_id) == (Happened.REPLACED, K, "new" + K)


def test_a_static_member_that_comes_back_too_late() -> None:
    """Its close is two lines, a while apart: the second says that the first was its cause."""
    events = explained(
        log(
            (0, f"[GroupId g] Static member {K} with instance id i-1 temporarily left the consumer group."),
            (45, f"[GroupId g] Member {K} fenced from the group because the member session expired."),
            new=True,
        )
    )
    assert kinds(events) == [Happened.TEMPORARILY_LEFT, Happened.EXPIRED]
    assert events[1].reason == "static_not_back"
    assert any("had left 45.0 s before" in sentence for sentence in events[1].explanation)


def test_fences_by_their_rule() -> None:
    """Each reason of a fence is a rule of its own; the wordy second dot of 3.9 changes nothing."""
    rules = {
        "the member session expired.": (Happened.EXPIRED, "session_timeout"),
        "it failed to transition from epoch 7 within 5000ms": (Happened.REVOCATION_TIMEOUT, "revocation_timeout"),
        "the classic member failed to join within the rebalance timeout": (Happened.REMOVED_AT_REBALANCE, "rebalance_timeout"),
        "the member failed to sync within timeout": (Happened.SYNC_TIMEOUT, "sync_timeout"),
    }  # fmt: skip
    for words, (kind, reason) in rules.items():
        (event,) = explained(log((0, f"[GroupId g] Member {K} fenced from the group because {words}."), new=True))
        assert (event.kind, event.reason, event.member_id, event.client_id) == (kind, reason, K, None)
    (event,) = explained(log((0, f"[GroupId g] Member {K} fenced from the group because it failed to transition from epoch 7 within 5000ms."), new=True))  # fmt: skip
    assert (event.epoch, event.rebalance_timeout_ms) == (7, 5_000)


def test_a_pending_member_that_left_is_not_removed_again() -> None:
    """The old coordinator says of it later, too, that its session ran out."""
    gone = f"Pending member {A} in group g has been removed after session timeout expiration."
    left = f"Pending member with memberId={A} has left group g through explicit `LeaveGroup` request"
    assert kinds(explained(log((0, left), (6, gone)))) == [Happened.LEFT]
    assert kinds(explained(log((6, gone)))) == [Happened.PENDING_EXPIRED]


def test_a_group_that_ends_empty_is_no_rebalance() -> None:
    """It has no `Stabilized`; who left last is of the generation before, and comes first though its line comes after."""
    left = f"Member[group.instance.id None, member.id {A}] in group g has left, removing it from the group"
    events = explained(
        log(
            (0, preparing(3, f"removing member {A} on LeaveGroup")),
            (0.001, "Group g with generation 4 is now empty (__consumer_offsets-3)"),
            (0.001, left),
        )
    )
    assert [(event.kind, event.generation_id) for event in events] == [(Happened.LEFT, 3), (Happened.GROUP_EMPTY, 4)]


def test_a_static_member_of_24_gets_its_group_from_elsewhere() -> None:
    """Kafka 2.4 names no group when a static member is replaced; a line before or after it does."""
    rejoins = f"Static member Some(i-1) with unknown member id rejoins, assigning new member id {B}, while old member {A} will be removed."
    before = explained(
        log((0, preparing(0, f"Adding new member {A} with group instanceid Some(i-1)")), (1, stable(1)), (5, rejoins))
    )
    after = explained(log((0, rejoins), (8, f"Member {B} in group g has failed, removing it from the group")))
    for events in (before, after):
        (replaced,) = [event for event in events if event.kind is Happened.REPLACED]
        assert (replaced.group_id, replaced.member_id, replaced.new_member_id) == ("g", A, B)
        assert replaced.group_instance_id == "i-1"


def test_a_static_member_of_24_is_followed_through_its_ids() -> None:
    """Where it was replaced several times, one line about its last id names the group of all."""
    text = "Static member Some(i-1) with unknown member id rejoins, assigning new member id {}, while old member {} will be removed."
    chain = [(n, text.format(f"i-1-{n + 1}", f"i-1-{n}")) for n in range(4)]
    named = explained(log(*chain, (8, "Member i-1-4 in group g has failed, removing it from the group")))
    assert [(event.kind, event.group_id) for event in named] == [(Happened.REPLACED, "g")] * 4 + [
        (Happened.EXPIRED, "g")
    ]
    unnamed = explained(log(*chain))
    assert [event.group_id for event in unnamed] == [""] * 4
    assert all("do not name the group on this line" in " ".join(event.explanation) for event in unnamed)
    assert not any("do not name the group" in " ".join(event.explanation) for event in named)


def test_a_coordinator_that_moved() -> None:
    """A group's lines of two brokers, in the order of time whichever file is named first; its members are not gone."""
    first = log(
        (0, "Elected as the group coordinator for partition 3 in epoch 0"),
        (400, preparing(1, f"Adding new member {A} with group instance id None")),
        (401, stable(2)),
        (500, "Unloading group metadata for g with generation 2"),
        (900, "Elected as the group coordinator for partition 9 in epoch 2"),
    )
    second = log(
        (0, "Elected as the group coordinator for partition 5 in epoch 0"),
        (502, "Loading group metadata for g with generation 2"),
        (530, f"Member {A} in group g has failed, removing it from the group"),
        broker=2,
    )
    for logs in ((first, second), (second, first), (second + first,)):
        events = explained(*logs)
        assert kinds(events) == [Happened.REBALANCE, Happened.COORDINATOR_MOVED, Happened.EXPIRED]
        moved, expired = events[1:]
        assert (moved.moved_from, moved.broker_id, moved.duration_ms) == (1, 2, 2_000)
        assert any("loaded 28.0 s before" in sentence for sentence in expired.explanation)
    (moved,) = [event for event in explained(first) if event.kind is Happened.COORDINATOR_MOVED]
    assert (moved.moved_from, moved.broker_id) == (1, None)


def test_a_restart_is_no_move() -> None:
    """A broker that stops unloads its groups, and loads them when it starts; what it loads of the dead is not alive."""
    events = explained(
        log(
            (0, "Starting up."),
            (3, stable(2)),
            (10, "Unloading group metadata for g with generation 2"),
            (11, "Shutting down."),
            (20, "Starting up."),
            (22, f"Loaded member MemberMetadata(memberId={A}, groupInstanceId=None, clientId=app-a) in group g with generation 1."),
            (22, "Loading group metadata for g with generation 2"),
        )
    )  # fmt: skip
    started, stable_, stopped, again = events
    assert [each.kind for each in events if each.kind not in BROKERS] == [Happened.REBALANCE]
    assert stable_.kind is Happened.REBALANCE
    assert [(each.kind, each.reason, each.broker_id, each.group_id) for each in (started, stopped, again)] == [
        (Happened.BROKER_STARTED, "started", 1, ""),
        (Happened.BROKER_STOPPED, "stopped", 1, ""),
        (Happened.BROKER_STARTED, "started", 1, ""),
    ]


def test_a_broker_that_was_killed_has_no_line_of_its_end() -> None:
    """It starts again, and nothing says that it stopped; both coordinators of one broker start once."""
    events = explained(
        log((0, "Starting up.")) + log((0.1, "Starting up."), new=True) + log((60, "Starting up.")), log((9, "Starting up."), broker=2)
    )  # fmt: skip
    assert [(each.reason, each.broker_id) for each in events] == [("started", 1), ("started", 2), ("not_stopped", 1)]


def test_storms_and_repeated_kicks() -> None:
    """Five rebalances within five minutes are a storm, once, with whom it began."""
    lines = []
    for number in range(7):
        lines += [
            (number * 20, f"Member {A} in group g has failed, removing it from the group"),
            (number * 20, preparing(number, f"removing member {A} on heartbeat expiration")),
            (number * 20 + 1, stable(number + 1)),
        ]
    storms = [event for event in explained(log(*lines)) if event.kind is Happened.STORM]
    (storm,) = storms
    assert (storm.member_count, storm.caused_by) == (7, (A,))
    assert (storm.reason, storm.started_ms) == ("member_expired", START_MS)
    assert [event.times_out for event in explained(log(*lines)) if event.kind is Happened.EXPIRED] == list(range(1, 8))
    apart = [(second * 10, text) for second, text in lines]
    assert [event for event in explained(log(*apart)) if event.kind is Happened.STORM] == []


def test_unknown_lines_are_counted_and_stop_nothing() -> None:
    """A new Kafka's wording is noticed, by its shape, with an example and its place."""
    scanned = Scanned()
    text = log((0, f"Member {A} of group g was evicted."), (1, f"Member {B} of group g was evicted."), (2, stable(4)))
    assert kinds(explained(text, scanned=scanned)) == [Happened.REBALANCE]
    ((shape, number),) = scanned.unknown.items()
    assert number == scanned.unknown_lines == 2
    assert scanned.unknown_example[shape][1:] == ("log0", 1)


def test_config_dumps_and_other_lines_are_not_the_coordinators() -> None:
    """Settings that span lines, traces and the like are skipped, whatever words are in them."""
    noise = "\tgroup.min.session.timeout.ms = 1000\n\tat kafka.coordinator.group.GroupCoordinator.run(GroupCoordinator.scala:1)\n"
    scanned = Scanned()
    assert kinds(explained(noise + log((0, stable(4))) + noise, scanned=scanned)) == [Happened.REBALANCE]
    assert scanned.unknown_lines == 0


def test_words_of_a_client_stay_its_own() -> None:
    """A client's reason may end in a dot, hold brackets, or look like a line of the coordinator."""
    for words in (
        "bye.",
        "disk full (reason: none)",
        "as Member x in group g has failed, removing it from the group",
        "[x] ]:",
    ):
        line = f"[Group g] Member {A} has left group through explicit `LeaveGroup` request; client reason: {words}"
        (event,) = explained(
            log((0, line), new=True).replace(LOGGER, "org.apache.kafka.coordinator.group.GroupMetadataManager")
        )
        assert (event.kind, event.reason_text) == (Happened.LEFT, words)
