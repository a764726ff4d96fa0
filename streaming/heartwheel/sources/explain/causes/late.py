"""Causes that are known after a removal was shown: Kubernetes' events come later, and files are written late."""

from __future__ import annotations

import bisect
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from heartwheel.sources.explain.causes.happening import Happening
from heartwheel.sources.explain.causes.join import Causes, window_ms
from heartwheel.sources.explain.explanation import explained_copy
from heartwheel.wire.explained import REASON_OF, ExplainedCause, ExplainedEvent

REMOVALS_MAX: Final = 10_000
"""Most removals that are looked at again, the newest."""


class LateCauses(Causes):
    """Happenings, and the newest removals, which get causes that are known later.

    Args:
        happenings: the first ones.
        kept_max: so many that were added last are kept, and at most twice as many.
        removals_max: most removals that are looked at again; 0 if no happenings come later.
    """

    def __init__(
        self, happenings: Iterable[Happening] = (), *, kept_max: int, removals_max: int = REMOVALS_MAX
    ) -> None:
        self._removals: deque[ExplainedEvent] = deque(maxlen=removals_max)
        super().__init__(happenings, kept_max=kept_max)

    def of(self, event: ExplainedEvent) -> tuple[ExplainedCause, ...]:
        """Return what may have caused a removal that is about to be explained, and remember the removal."""
        if event.kind in REASON_OF:
            self._removals.append(event)
        return super().of(event)

    @property
    def removals(self) -> list[ExplainedEvent]:
        """The removals that are remembered, explained, in the order in which they were at first."""
        return list(map(explained_copy, self._removals))

    def again(self, new: Iterable[Happening]) -> list[ExplainedEvent]:
        """Look again at removals that new happenings may have caused, or whose member was alive after its cause.

        Returns:
            Those with other causes, explained.
        """
        times = self.times_near(new)
        some = (event for event in self._removals if _is_near(event, times) or (event.causes and event.returned_as))
        return [explained_copy(event) for event in some if self._differs(event)]

    def _differs(self, event: ExplainedEvent) -> bool:
        before, event.causes = event.causes, super().of(event)
        return event.causes != before


def _is_near(event: ExplainedEvent, times: Sequence[int]) -> bool:
    from_ms, to_ms = window_ms(event)
    at = bisect.bisect_left(times, from_ms)
    return at < len(times) and times[at] <= to_ms
