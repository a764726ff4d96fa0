"""What the version of a request changes, where the source knows it: `JoinGroupRequest`, `SyncGroupRequest`."""

from __future__ import annotations

from typing import Any

import pytest

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.machine import GroupMachine
from heartwheel.engine.rules.model import Group, GroupKind
from heartwheel.proof.audit import AuditConfig
from heartwheel.proof.audit.rules.groups import apply
from heartwheel.proof.audit.rules.model import AuditedGroup
from heartwheel.wire.event_codec import decode_event, encode_event
from heartwheel.wire.events import Event, EventType, Protocol, RejectCause, RejectedError


class _Both:
    """Let the rules and the audit see the same requests."""

    def __init__(self) -> None:
        self.machine = GroupMachine(Group("g"), CoordinatorConfig(), lambda _: None)
        self.audited = AuditedGroup("g")

    def send(self, t_ms: int, event: Event) -> Answer:
        apply(self.audited, event, t_ms, AuditConfig(), [])
        return self.machine.apply(event, t_ms)

    def members(self) -> tuple[list[str], list[str]]:
        group = self.machine.group
        found = list(group.members), list(group.pending)
        assert found == (list(self.audited.members), list(self.audited.pending))
        return found

    def unsynced(self) -> list[str]:
        waiting = [m.member_id for m in self.machine.group.members.values() if m.pending_sync]
        assert waiting == list(self.audited.unsynced)
        return waiting


def _join(**fields: Any) -> Event:
    usual: dict[str, Any] = {
        "type": EventType.JOIN,
        "group_id": "g",
        "assigned_member_id": "a",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "consumer",
        "protocols": (Protocol("range"),),
    }
    return Event(**(usual | fields))


def _sync(**fields: Any) -> Event:
    return Event(type=EventType.SYNC, group_id="g", member_id="a", generation_id=1, **fields)


@pytest.mark.parametrize("version", [0, 3])
def test_old_join_makes_a_member_at_once(version: int) -> None:
    """A JoinGroup below version 4 is not sent back for its id: `requiresKnownMemberId` (KIP-394)."""
    both = _Both()
    assert both.send(0, _join(api_version=version)) is Answer.PARKED
    assert both.members() == (["a"], [])


@pytest.mark.parametrize("version", [None, 4, 9])
def test_join_of_today_is_told_its_id_first(version: int | None) -> None:
    """From version 4 on, and where the version is not known, a first join makes a pending member."""
    both = _Both()
    assert both.send(0, _join(api_version=version)) is Answer.MEMBER_ID_REQUIRED
    assert both.members() == ([], ["a"])


def test_first_version_has_one_timeout() -> None:
    """JoinGroup version 0 has no rebalance timeout: the session timeout stands for it, in a repeated join as well."""
    both = _Both()
    both.send(0, _join(api_version=0))
    assert both.machine.group.members["a"].rebalance_timeout_ms == both.audited.members["a"].rebalance_ms == 10_000
    both.send(1, _join(member_id="a", assigned_member_id=None, api_version=0, session_timeout_ms=7_000))
    assert both.machine.group.members["a"].rebalance_timeout_ms == both.audited.members["a"].rebalance_ms == 7_000


def _completed() -> _Both:
    both = _Both()
    both.send(0, _join(api_version=3))
    both.send(3_000, Event(group_id="g", member_id="a", generation_id=1))
    assert both.unsynced() == ["a"]
    return both


@pytest.mark.parametrize(
    "fields",
    [
        {"api_version": 5},
        {"api_version": 5, "protocol_type": "consumer"},
        {"api_version": 6, "protocol_name": "range"},
        {"protocol_type": "connect", "protocol_name": "range"},
        {"protocol_type": "consumer", "protocol_name": "sticky"},
    ],
)
def test_sync_without_or_with_another_protocol_is_refused(fields: dict[str, Any]) -> None:
    """A SyncGroup from version 5 on has to name protocol and type, and at any version they must be the group's."""
    both = _completed()
    assert both.send(3_010, _sync(**fields)) is Answer.INCONSISTENT_GROUP_PROTOCOL
    assert both.unsynced() == ["a"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"api_version": 4},
        {"protocol_name": "range"},
        {"api_version": 5, "protocol_type": "consumer", "protocol_name": "range"},
    ],
)
def test_sync_that_agrees_is_let_through(fields: dict[str, Any]) -> None:
    """An old SyncGroup, one of unknown version, and one that names the group's protocol count."""
    both = _completed()
    assert both.send(3_010, _sync(**fields)) is Answer.NONE
    assert both.unsynced() == []


def test_refused_sync_makes_no_group() -> None:
    """The broker refuses it before any coordinator sees it, so a group is not met in mid-life by it."""
    both = _Both()
    assert both.send(0, _sync(api_version=5)) is Answer.INCONSISTENT_GROUP_PROTOCOL
    assert (both.machine.group.kind, both.audited.kind) == (GroupKind.NEW, "")


def test_both_fields_survive_the_round_trip() -> None:
    """Events are packed for the shards as JSON: version and protocol name are there afterwards."""
    event = _sync(api_version=5, protocol_type="consumer", protocol_name="range")
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("version", [b"-1", b"32768", b'"5"', b"1.5"])
def test_version_that_is_none_is_rejected(version: bytes) -> None:
    """A version is a number that Kafka's protocol can carry; anything else is a reject by name."""
    with pytest.raises(RejectedError) as error:
        decode_event(b'{"group_id":"g","member_id":"m","api_version":' + version + b"}")
    assert error.value.cause is RejectCause.BAD_FIELD


def test_long_protocol_name_is_rejected() -> None:
    """The name of a protocol is an id like the others, and bounded like them."""
    with pytest.raises(RejectedError) as error:
        decode_event(encode_event(_sync(protocol_name="x" * 2_000)))
    assert error.value.cause is RejectCause.ID_TOO_LONG
