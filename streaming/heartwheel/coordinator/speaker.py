"""How verdicts about members are made of verdicts about their group, whatever the kind of group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from heartwheel.wire.verdicts import Cause, Kind


class Known(Protocol):
    """A member of any kind of group, as far as a verdict names it."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    client_host: str | None


class Speaker(ABC):
    """What emits the verdicts of one group."""

    __slots__ = ()

    @abstractmethod
    def say(self, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
        """Emit a verdict about the group at this moment; `fields` are further fields of `Verdict`."""

    def say_of(self, member: Known, kind: Kind, reason: str, cause: Cause | None = None, **fields: Any) -> None:
        """Emit a verdict about one member at this moment."""
        self.say(
            kind,
            reason,
            cause,
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            **fields,
        )
