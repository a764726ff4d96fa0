"""Groups that go by member epochs: both paths of a shard, and the rules alone, reach the same verdicts."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heartwheel.engine.rules.config import CoordinatorConfig, GroupOverride
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.epochs.model import EpochGroup
from heartwheel.engine.rules.manager import ClassicRules
from heartwheel.engine.rules.model import Group
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.shard import Shard
from heartwheel.proof.testing import LogBuilder, by_group, read_records, run_rules, run_shard, until
from heartwheel.wire.group_heartbeats import GroupHeartbeat, HeartbeatType
from heartwheel.wire.requests import decode_request, fingerprint_of
from heartwheel.wire.verdicts import ExpiryReason, Kind, Verdict
from support.epoch_beats import EPOCHS_CONFIG, epoch_logs, mid_life_logs, steady_epoch_logs
from support.heartbeat_logs import EXAMPLES, T0, cuts_of

LATER = 30_000


def _end(log: LogBuilder) -> int:
    return max([T0, *(record.append_ms for record in log.records)]) + LATER


@given(epoch_logs(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_any_log_any_cut_gives_the_verdicts_of_the_rules(log: LogBuilder, data: st.DataObject) -> None:
    """P3: heartbeats of the newer kinds and classic requests, cut anywhere, with a restart at each cut."""
    verdicts = run_shard(log, clock_ms=_end(log), cuts=data.draw(cuts_of(log)), config=EPOCHS_CONFIG)
    assert by_group(verdicts) == by_group(run_rules(log, clock_ms=_end(log), config=EPOCHS_CONFIG))


@given(steady_epoch_logs(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_steady_heartbeats_give_the_verdicts_of_the_rules(log: LogBuilder, data: st.DataObject) -> None:
    """P3 on the fast path: members that say the same again and again, fall silent and come back."""
    verdicts = run_shard(log, clock_ms=_end(log), cuts=data.draw(cuts_of(log)), config=EPOCHS_CONFIG)
    assert by_group(verdicts) == by_group(run_rules(log, clock_ms=_end(log), config=EPOCHS_CONFIG))


@given(mid_life_logs(), st.data())
@settings(max_examples=EXAMPLES)
def test_p3_groups_met_in_mid_life_give_the_verdicts_of_the_rules(log: LogBuilder, data: st.DataObject) -> None:
    """P3: a consumer group with classic members whose joins are not in the log, cut anywhere."""
    verdicts = run_shard(log, clock_ms=_end(log), cuts=data.draw(cuts_of(log)), config=EPOCHS_CONFIG)
    assert by_group(verdicts) == by_group(run_rules(log, clock_ms=_end(log), config=EPOCHS_CONFIG))


def _plain(manager: ClassicRules) -> tuple[dict[str, tuple[object, ...]], int | None]:
    group = manager.group
    members: dict[str, tuple[object, ...]] = {
        member.member_id: (
            member.epoch,
            member.assigned,
            member.unrevoked,
            {name: (timer.deadline_ms, timer.length_ms, timer.epoch) for name, timer in member.timers.items()},
        )
        for member in (group.members.values() if isinstance(group, EpochGroup) else ())
    }
    return members, group.epoch if isinstance(group, EpochGroup) else None


@given(epoch_logs(size_max=25), st.integers(0, 1_000))
@settings(max_examples=EXAMPLES)
def test_fingerprint_promises_a_plain_reset(log: LogBuilder, later_ms: int) -> None:
    """A heartbeat whose fingerprint a member holds does nothing but give it a whole session, however often it comes."""
    verdicts: list[Verdict] = []
    manager = ClassicRules(Group("g"), EpochConfig(EPOCHS_CONFIG), verdicts.append)
    seen: dict[int, GroupHeartbeat] = {}
    for record in log.records:
        request = decode_request(record.value)
        if request.group_id == "g":
            mark = fingerprint_of(request)
            manager.apply(request, record.append_ms, mark)
            if isinstance(request, GroupHeartbeat):
                seen[mark] = request
    group = manager.group
    if not isinstance(group, EpochGroup):
        return
    now_ms = min(group.last_event_ms + later_ms, manager.next_deadline_ms() - 1)
    for member in [m for m in group.members.values() if m.fingerprint and m.fingerprint in seen]:
        verdicts.clear()
        length_ms = member.session_ms
        before = _plain(manager)
        manager.apply(seen[member.fingerprint], now_ms, member.fingerprint)
        (timer,) = member.timers.values()
        assert (timer.deadline_ms, timer.length_ms) == (now_ms + length_ms, length_ms)
        assert not verdicts
        assert _without(before, member.member_id) == _without(_plain(manager), member.member_id)


def _without(plain: tuple[dict[str, tuple[object, ...]], int | None], member_id: str) -> object:
    members, epoch = plain
    return {name: of if name != member_id else of[:3] for name, of in members.items()}, epoch


def _steady(kind: HeartbeatType, members: int, beats: int) -> LogBuilder:
    log = LogBuilder()
    for member in range(members):
        log.group_beat(T0 + member, "g", f"m{member}", 0, answer=2 + member, kind=kind)
    for beat in range(beats):
        for member in range(members):
            log.group_beat(T0 + 300 * (beat + 1), "g", f"m{member}", 1 + members, answer=1 + members, kind=kind)
    return log


def test_who_is_asked_again_starts_its_timer() -> None:
    """P1: a member that owns nothing any more, and is asked all the same, is fenced as by the rules, if it beats on."""
    beat = GroupHeartbeat(type=HeartbeatType.CONSUMER, group_id="g", member_id="a", member_epoch=0)
    joins = {"answer_member_epoch": 1, "assignment": {"t": (0, 1)}, "rebalance_timeout_ms": 600}
    asked = {"member_epoch": 1, "owned": {}, "assignment": {}, "revoking": True}
    log = LogBuilder()
    log.add(T0, msgspec.structs.replace(beat, **joins))
    for at_ms in range(300, 3_000, 300):
        log.add(T0 + at_ms, msgspec.structs.replace(beat, **asked))
    verdicts = run_shard(log, clock_ms=_end(log), cuts=[1, 2, 3], config=EPOCHS_CONFIG)
    assert by_group(verdicts) == by_group(run_rules(log, clock_ms=_end(log), config=EPOCHS_CONFIG))
    assert [each.expiry_reason for each in verdicts if each.expiry_reason] == [ExpiryReason.REVOCATION_TIMEOUT]


@pytest.mark.parametrize("kind", list(HeartbeatType))
def test_known_heartbeats_take_the_fast_path(kind: HeartbeatType) -> None:
    """Once the rules have seen a member's heartbeat, its repetitions cost no rule, whatever the kind of group."""
    log = _steady(kind, members=3, beats=50)
    shard = Shard(coordinator=EPOCHS_CONFIG, limits=ShardLimits())
    # A streams group waits for company before its first target.
    shard.apply(*read_records(log.records[:12]))
    rest = shard.apply(*read_records(log.records[12:]))
    assert (rest.counts["records_rules"], rest.counts["records_fast"]) == (0, 3 * 50 - 9)
    assert not [verdict for verdict in rest.verdicts if verdict.expiry_reason]


@pytest.mark.parametrize("kind", list(HeartbeatType))
def test_silence_ends_a_member_by_the_session_of_the_broker(kind: HeartbeatType) -> None:
    """Its session is that of the kind of group; the row says which kind, and at which epoch the member was."""
    log = _steady(kind, members=2, beats=5)
    (last_ms,) = {record.append_ms for record in log.records[-2:]}
    verdicts = run_shard(log, clock_ms=last_ms + LATER, config=EPOCHS_CONFIG)
    expired = [v for v in verdicts if v.expiry_reason]
    session_ms = getattr(EPOCHS_CONFIG, f"group_{kind.partition('_')[0]}_session_timeout_ms")
    assert [(v.member_id, v.time_ms - last_ms, v.group_kind, v.member_epoch) for v in expired] == [
        ("m0", session_ms, kind.partition("_")[0], 3),
        ("m1", session_ms, kind.partition("_")[0], 3),
    ]


def _as_the_rules(log: LogBuilder) -> list[Verdict]:
    """Run a log through a shard, a batch a record, and hold it to the rules; return the verdicts."""
    verdicts = run_shard(log, clock_ms=_end(log), cuts=range(1, len(log.records)), config=EPOCHS_CONFIG)
    assert verdicts == run_rules(log, clock_ms=_end(log), config=EPOCHS_CONFIG)
    return verdicts


def test_a_new_epoch_is_assigned_by_the_next_known_heartbeat() -> None:
    """A heartbeat that did nothing but keep alive brings the target once the epoch has moved, so it is looked at."""
    log = LogBuilder()
    log.group_beat(T0, "g", "a", 0)
    for at_ms in (400, 500):
        log.group_beat(T0 + at_ms, "g", "a", 2)
    log.group_beat(T0 + 600, "g", "b", 0)
    log.group_beat(T0 + 700, "g", "c", 0)
    for at_ms in (800, 1_000, 1_200):
        log.group_beat(T0 + at_ms, "g", "a", 2)
    targets = [v.time_ms - T0 for v in _as_the_rules(log) if v.kind is Kind.TARGET_COMPUTED]
    assert targets[:3] == [0, 600, 1_000]


def test_who_owes_partitions_is_fenced_however_often_it_beats() -> None:
    """The same heartbeat again and again keeps the session, not the time for giving partitions back."""
    log = LogBuilder()
    fields: dict[str, object] = {"type": HeartbeatType.CONSUMER, "group_id": "g", "member_id": "a"}

    def beat(at_ms: int, epoch: int, answer: int, **more: object) -> None:
        said = {**fields, "member_epoch": epoch, "answer_member_epoch": answer, **more}
        log.add(T0 + at_ms, GroupHeartbeat(**said))  # type: ignore[arg-type]  # fields by name

    beat(0, 0, 2, assignment={"t": (0, 1)}, rebalance_timeout_ms=600)
    log.group_beat(T0 + 100, "g", "b", 0, answer=3)
    for at_ms in range(200, 1_200, 100):
        beat(at_ms, 2, 2, owned={"t": (0, 1)}, assignment={"t": (0,)})
    fenced = [v for v in _as_the_rules(log) if v.kind is Kind.MEMBER_FENCED_REBALANCE_TIMEOUT]
    assert [(v.member_id, v.time_ms - T0) for v in fenced] == [("a", 800)]


def _alone(config: CoordinatorConfig, blob: str = "") -> Shard:
    return Shard(coordinator=config, limits=ShardLimits(), blob=blob)


@pytest.mark.parametrize("override", [False, True])
def test_a_changed_session_timeout_holds_from_the_next_heartbeat_on(*, override: bool) -> None:
    """A restart with another session timeout leaves running timers alone, as a broker does; each heartbeat takes it."""
    log = _steady(HeartbeatType.CONSUMER, members=2, beats=6)
    shard = _alone(EPOCHS_CONFIG)
    shard.apply(*read_records(log.records[:10]))
    if override:
        own = (GroupOverride("g", "consumer.session.timeout.ms", 5_000),)
        changed = replace(EPOCHS_CONFIG, group_overrides=own)
    else:
        changed = replace(EPOCHS_CONFIG, group_consumer_session_timeout_ms=5_000)
    again = _alone(changed, shard.encode())
    last_ms = log.records[9].append_ms
    only_first = log.records[10:11]
    again.apply(*read_records(only_first))
    told = again.apply([], until(T0 + LATER)).verdicts
    ends = {v.member_id: v.time_ms for v in told if v.expiry_reason}
    assert ends == {"m1": last_ms + 1_200, "m0": only_first[0].append_ms + 5_000}


def test_an_empty_group_is_forgotten_after_its_retention() -> None:
    """A group that lost its last member takes a row until its retention is over, and none after it."""
    log = LogBuilder()
    log.group_beat(T0, "g", "a", 0, answer=2)
    log.group_beat(T0 + 100, "g", "a", -1)
    shard = _alone(EPOCHS_CONFIG)
    shard.apply(*read_records(log.records))
    shard.apply([], until(T0 + 100 + EPOCHS_CONFIG.empty_group_retention_ms - 1))
    assert shard.group_count == 1
    shard.apply([], until(T0 + 100 + EPOCHS_CONFIG.empty_group_retention_ms + 200))
    assert shard.group_count == 0


def test_a_full_group_refuses_by_name() -> None:
    """`group.consumer.max.size`: a stranger's join is refused, and its record kept as `group_full`."""
    log = LogBuilder()
    for member in range(5):
        log.group_beat(T0 + member, "g", f"m{member}", 0)
    outcome = _alone(EPOCHS_CONFIG).apply(*read_records(log.records))
    assert [refusal.cause.value for refusal in outcome.refused] == ["group_full"]
    assert outcome.refused[0].offset == 4
