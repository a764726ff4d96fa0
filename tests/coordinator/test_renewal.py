"""An outage is not silence: what of a group starts anew after one."""

from __future__ import annotations

from coordinator.group_script import STABLE_AB, play
from heartwheel.engine.rules.model import Member, postponed_by


def test_every_member_has_a_whole_session_after_an_outage() -> None:
    """However little was left of its session, a member has all of it from the outage's end on, and was not seen."""
    stage = play(STABLE_AB + "+4999")
    seen_ms = [member.last_seen_ms for member in stage.group.members.values()]
    assert stage.machine.renew(stage.now_ms, stage.now_ms + 20_000) == 2
    assert [member.deadline_ms - stage.now_ms for member in stage.group.members.values()] == [25_000, 25_000]
    assert [member.last_seen_ms for member in stage.group.members.values()] == seen_ms


def test_p1_a_rebalance_that_an_outage_hides_expires_nobody() -> None:
    """P1: a later generation is a mistake while a group is followed closely, and after an outage a missed rebalance."""
    stage = play(STABLE_AB + "+1000\nA beat g=2 -> NONE\nA beat g=4 -> ILLEGAL_GENERATION")
    stage.machine.renew(stage.now_ms, stage.now_ms + 20_000)
    stage.run("+20000\nA beat g=4 -> NONE\nB beat g=4 -> NONE\nA beat g=5 -> NONE\n= Stable 5 A B")
    closely = play(STABLE_AB)
    closely.machine.renew(closely.now_ms, closely.now_ms + 20_000)
    closely.run("+20001\nA beat g=2 -> NONE\nA beat g=4 -> ILLEGAL_GENERATION")
    joined = play(STABLE_AB)
    joined.machine.renew(joined.now_ms, joined.now_ms + 20_000)
    joined.run("+20001\nA join -> PARKED\nB join -> PARKED\nA beat g=7 -> NONE\n= Stable 7 A B")


def test_p3_a_group_that_an_outage_has_moved_on_is_stored_with_its_protocol() -> None:
    """P3: what its coordinator would read at a load has the protocol that its members have agreed on."""
    stage = play(STABLE_AB)
    stage.machine.renew(stage.now_ms, stage.now_ms + 20_000)
    stage.run("+20000\nA beat g=7 -> NONE\nC first -> PARKED")
    group = stage.machine.group
    assert (group.stored_generation, group.stored_protocol_name) == (7, "range")


def test_a_renewal_shortens_nothing() -> None:
    """A shorter outage of another partition leaves alone what a longer one has put off further."""
    stage = play(STABLE_AB)
    stage.machine.renew(stage.now_ms, stage.now_ms + 20_000)
    assert stage.machine.renew(stage.now_ms, stage.now_ms + 10_000) == 0
    assert [member.deadline_ms - stage.now_ms for member in stage.group.members.values()] == [25_000, 25_000]


def test_what_ended_before_an_outage_fires_first() -> None:
    """A deadline at the last record before the gap is the silence that it looks like."""
    stage = play(STABLE_AB)
    stage.machine.renew(stage.now_ms + 5_000, stage.now_ms + 20_000)
    assert not stage.group.members


def test_an_expiry_was_put_off_by_the_outage_whose_end_started_its_time() -> None:
    """The member has its time from the end of that outage on, and was not heard of since, not even at that moment."""
    member = Member("m", 0, timer_ms=5_000, last_seen_ms=9_000)
    assert postponed_by(30_000, member, 35_000) == 30_000
    assert postponed_by(29_999, member, 35_000) is None
    assert postponed_by(-1, member, 14_000) is None
    member.last_seen_ms = 30_000
    assert postponed_by(30_000, member, 35_000) is None


def test_an_expiry_by_the_rules_says_which_outage_put_it_off() -> None:
    """Members that the rules expire, and not the short way of a silent group, say it too."""
    stage = play(STABLE_AB + "+4999")
    end_ms = stage.now_ms + 20_000
    stage.machine.renew(stage.now_ms, end_ms)
    stage.machine.advance(end_ms + 5_000)
    expired = [each for each in stage.verdicts if each.expiry_reason]
    assert [each.renewed_ms for each in expired] == [end_ms, end_ms]


def test_a_group_that_begins_anew_knows_of_no_outage_before() -> None:
    """What renewed the group that was forgotten has put off nobody of that which has its name now.

    Whether a shard has forgotten it between two batches, or it began anew within one, says nothing.
    """
    stage = play(STABLE_AB)
    start_ms = stage.now_ms
    stage.machine.renew(start_ms, start_ms + 20_000)
    assert stage.machine.renewed_ms == start_ms + 20_000
    stage.machine.advance(start_ms + 30_000)
    stage.machine.advance(stage.machine.group.forget_deadline_ms)
    assert stage.machine.is_forgettable()
    assert stage.machine.renewed_ms == -1
