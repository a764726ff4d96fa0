"""Admission to a shard (promise P6): a member or a group over a limit is refused, and its record is kept."""

from __future__ import annotations

from typing import Final, NamedTuple

from heartwheel.engine.rules.answer import Answer
from heartwheel.engine.shard.limits import ShardLimits
from heartwheel.engine.shard.log import BatchLog
from heartwheel.wire.events import RejectCause

_REFUSED: Final = {
    Answer.INVALID_SESSION_TIMEOUT: RejectCause.INVALID_SESSION_TIMEOUT,
    Answer.GROUP_MAX_SIZE_REACHED: RejectCause.GROUP_FULL,
}
"""Answers that mean that a bound of the configuration was reached. Their events are kept as rejects."""


class Refusal(NamedTuple):
    """One record that reached a limit.

    Args:
        append_ms: its effective append time, epoch ms.
        value: its value. If it is a heartbeat that came without its bytes, it may be encoded differently.
    """

    partition: int
    offset: int
    append_ms: int
    cause: RejectCause
    detail: str
    group_id: str
    value: bytes


class Admission:
    """The room that is left in a shard during one batch, and the records that were refused.

    Args:
        heavy: whether its state has reached the limit of bytes, so that no new member is admitted.
        members: the number of its members, pending ones included.
    """

    def __init__(self, limits: ShardLimits, *, heavy: bool, members: int) -> None:
        self.refused: list[Refusal] = []
        self._limits = limits
        self._heavy = heavy
        self._room = 0 if heavy else limits.members_max - members

    def is_full(self, group_size: int) -> bool:
        """Return whether no new member may join a group of that size."""
        return self._room <= 0 or group_size >= self._limits.members_per_group_max

    def has_room_for(self, members: int) -> bool:
        """Return whether the shard has room for that many more members."""
        return members <= self._room

    def add_members(self, members: int) -> None:
        """Add admitted members to the count."""
        self._room -= members

    def recount(self, size: int, size_before: int) -> int:
        """Update the count for a group's change of size, and return its size."""
        self._room -= size - size_before
        return size

    def refuse_group(self, log: BatchLog, record: int) -> None:
        """Refuse a record because there is no room for its group."""
        self._refuse(log, record, RejectCause.SHARD_FULL, self._why_full(f"{self._limits.groups_max} groups"))

    def refuse_member(self, log: BatchLog, record: int) -> None:
        """Refuse a record because there is no room for its new member."""
        if self._room <= 0:
            full = self._why_full(f"{self._limits.members_max} members")
            self._refuse(log, record, RejectCause.SHARD_FULL, full)
        else:
            full = f"the group has {self._limits.members_per_group_max} members"
            self._refuse(log, record, RejectCause.GROUP_FULL, full)

    def check_answer(self, log: BatchLog, record: int, answer: Answer) -> None:
        """Refuse a record if the coordinator's answer means that a bound of the configuration was reached."""
        cause = _REFUSED.get(answer)
        if cause is not None:
            self._refuse(log, record, cause, f"the coordinator answers {answer}")

    def _why_full(self, count: str) -> str:
        if self._heavy:
            return f"the shard's state has reached {self._limits.state_bytes_max} bytes"
        return f"the shard holds {count}"

    def _refuse(self, log: BatchLog, record: int, cause: RejectCause, detail: str) -> None:
        entry = int(log.entry[record])
        self.refused.append(
            Refusal(
                int(log.entry_partition[entry]),
                int(log.offset[record]),
                int(log.append_ms[record]),
                cause,
                detail,
                log.event(entry).group_id,
                log.body(entry),
            )
        )
