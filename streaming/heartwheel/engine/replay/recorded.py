"""Lines of a recorded log: a request, when it arrived and, where a broker was recorded, its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from heartwheel.wire.event_codec import decode_event
from heartwheel.wire.events import Event, EventType, RejectCause, RejectedError, TickError
from heartwheel.wire.verdicts import Kind

PROMPT_MS: Final = 5
"""An answer within this time was given at once; a later one was parked, ms."""

PARKED_US: Final = 1_000
"""A refusal is given in less time than this, microseconds."""

_ACCEPTED: Final = frozenset({"NONE", "REBALANCE_IN_PROGRESS"})

_CUT_SHORT: Final = frozenset({"UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "NOT_COORDINATOR"})
"""Errors of a parked request that had had its effect before."""


VERDICT: Final = "it is a verdict"
"""The error for a line that heartwheel wrote as output, and does not read."""

_KINDS: Final = frozenset(Kind)


class RecordedAnswer(msgspec.Struct, frozen=True):
    """What a broker's request log records in addition to the request.

    Args:
        t_us: when the request arrived, epoch us, if known.
        answer_ms: when it was answered, epoch ms, if known.
        answer_us: the same in microseconds, if known.
        error: the answer by Kafka's name, `None` if it was not recorded.
        response_generation_id: the generation that a join was answered with.
        leader: the leader that a join was answered with.
        kind: the kind of a verdict, which is no request.
    """

    t_ms: int
    t_us: int | None = None
    answer_ms: int | None = None
    answer_us: int | None = None
    error: str | None = None
    response_generation_id: int | None = None
    leader: str | None = None
    kind: Any = None


_decode_evidence = msgspec.json.Decoder(RecordedAnswer).decode


@dataclass(slots=True)
class Recorded:
    """One line: the event and the evidence recorded with it."""

    event: Event
    evidence: RecordedAnswer

    @property
    def t_us(self) -> int:
        """Return when it arrived, epoch microseconds."""
        evidence = self.evidence
        return evidence.t_ms * 1000 if evidence.t_us is None else evidence.t_us

    @property
    def wait_ms(self) -> int:
        """Return how long the answer took, ms; 0 if it is not known."""
        answer_ms = self.evidence.answer_ms
        return 0 if answer_ms is None else answer_ms - self.evidence.t_ms

    @property
    def was_prompt(self) -> bool:
        """Return whether it was answered at once."""
        return self.evidence.answer_ms is not None and self.wait_ms <= PROMPT_MS

    @property
    def was_parked(self) -> bool:
        """Return whether it waited for something else to happen, as far as microseconds show that."""
        answer_us = self.evidence.answer_us
        return answer_us is not None and answer_us - self.t_us >= PARKED_US

    @property
    def came_to_lead(self) -> bool:
        """Return whether it is a join that was answered with its own member as the leader."""
        leader = self.evidence.leader
        return bool(leader) and leader in (self.event.member_id, self.event.assigned_member_id)

    @property
    def was_given_its_id(self) -> bool:
        """Return whether a first join was sent back with its id, as brokers do from JoinGroup v4 on (KIP-394)."""
        error, version = self.evidence.error, self.event.api_version
        if error is None:
            return version is None or version >= 4
        return error == "MEMBER_ID_REQUIRED"

    def was_let_into(self, generation: int | None) -> bool:
        """Return whether it is a join that was answered with this generation."""
        evidence = self.evidence
        joined = self.event.type is EventType.JOIN and evidence.error == "NONE"
        return joined and evidence.response_generation_id == generation

    def was_accepted_at(self, generation: int) -> bool:
        """Return whether it is a request of a member that was accepted at this generation, which must exist by then."""
        asks = self.event.type in (EventType.HEARTBEAT, EventType.SYNC, EventType.COMMIT)
        return asks and self.evidence.error in _ACCEPTED and self.event.generation_id == generation

    @property
    def had_no_effect(self) -> bool:
        """Return whether the broker refused it without any effect on the group."""
        error, kind = self.evidence.error, self.event.type
        if error is None or error in _ACCEPTED or kind in (EventType.LOAD, EventType.UNLOAD):
            return kind is EventType.COMMIT and error == "REBALANCE_IN_PROGRESS"
        if kind is EventType.LEAVE:
            return len(self.event.leaving) <= 1  # of several, each was decided separately
        if kind is EventType.JOIN and error in ("MEMBER_ID_REQUIRED", "GROUP_MAX_SIZE_REACHED"):
            return False
        if kind in (EventType.JOIN, EventType.SYNC) and error in _CUT_SHORT:
            first_join = kind is EventType.JOIN and not self.event.member_id
            return self.was_prompt and not first_join
        return True


def decode_line(line: bytes, number: int) -> Recorded | None:
    """Decode one line of a log.

    Args:
        line: a JSON object: the fields of an event, `t_ms`, and what was recorded of the answer.
        number: its line number; it names a member that was never given an id.

    Returns:
        The request, or `None` for a tick, and for a request that a broker refused as invalid.

    Raises:
        RejectedError: it is no event, and no broker has refused it.
    """
    try:
        evidence = _decode_evidence(line)
    except msgspec.ValidationError as error:
        raise RejectedError(RejectCause.BAD_FIELD, str(error)) from None
    except msgspec.DecodeError as error:
        raise RejectedError(RejectCause.NOT_JSON, str(error)) from None
    if isinstance(evidence.kind, str) and evidence.kind in _KINDS:
        raise RejectedError(RejectCause.BAD_FIELD, f"{VERDICT}, {evidence.kind}, and no request")
    try:
        return Recorded(decode_event(line), evidence)
    except TickError:
        return None
    except RejectedError:
        if evidence.error is None:
            raise
        return _decode_refused(line, number, evidence)


def _decode_refused(line: bytes, number: int, evidence: RecordedAnswer) -> Recorded | None:
    """Return a parked first join that never got its member id; every other refused request has had no effect."""
    fields = msgspec.json.decode(line)
    parked = fields.get("type") == "join" and not fields.get("member_id") and evidence.error in _CUT_SHORT
    if not parked:
        return None
    fields["assigned_member_id"] = f"unlogged-{number}"
    try:
        return Recorded(decode_event(msgspec.json.encode(fields)), evidence)
    except RejectedError:
        return None
