"""One group's state machine: events and time in, verdicts out."""

from __future__ import annotations

from collections.abc import Callable

from heartwheel.coordinator.answer import Answer
from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.model import Group
from heartwheel.events import Event
from heartwheel.verdicts import Verdict


class GroupMachine:
    """Run the rules of one group.

    The machine keeps its whole state in the `Group` it was given; a second machine on the same group carries on where
    the first one stopped.

    Args:
        group: the state, changed in place.
        config: bounds and delays.
        emit: called with every verdict, in order.
    """

    clamped: int
    """How many events came with an append time before the group's effective time, and were counted as at that time."""

    def __init__(self, group: Group, config: CoordinatorConfig, emit: Callable[[Verdict], None]) -> None:
        raise NotImplementedError

    def apply(self, event: Event, append_ms: int, fingerprint: int = 0) -> Answer:
        """Fire every timer that is due at the event's effective time, then apply the event.

        Args:
            event: the request.
            append_ms: append time of its record, epoch ms.
            fingerprint: `heartwheel.events.fingerprint` of the event, for heartbeats on the way to the fast path.

        Returns:
            What the coordinator would have answered.
        """
        raise NotImplementedError

    def advance(self, clock_ms: int) -> None:
        """Fire every timer with a deadline at or before the clock (epoch ms), in order."""
        raise NotImplementedError

    def next_deadline_ms(self) -> int:
        """Tell when the next timer fires, epoch ms; `NEVER` if none is armed."""
        raise NotImplementedError

    def is_forgettable(self) -> bool:
        """Tell that nothing of the group is left to remember: a fresh `Group` would behave the same."""
        raise NotImplementedError
