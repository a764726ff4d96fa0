"""How a verdict about a member is made from a verdict about its group, for every kind of group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from heartwheel.wire.verdicts import Cause, Kind


class Known(Protocol):
    """A member of any kind of group, with the fields that a verdict names."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None


class Speaker(ABC):
    """A source of the verdicts of one group."""

    __slots__ = ()

    @abstractmethod
    def report(self, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
        """Emit a verdict about the group at this moment; `fields` are further fields of `Verdict`."""

    def report_member(self, member: Known, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
        """Emit a verdict about one member at this moment."""
        self.report(
            kind,
            reason,
            cause,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            **fields,
        )
