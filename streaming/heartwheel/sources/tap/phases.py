"""Join phases: the phase of each join, by the generation in its answer.

Requests are dated by their arrival, and a busy broker handles them in another order: a join may arrive before the last
one of a phase, and be handled after it. Its answer shows that: it has the generation of the next phase. So it is dated
right after the end of the phase before. A join that arrived while its group was being loaded, and was accepted, was
handled after the load. The load would remove it, so it is dated right after the load.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from heartwheel.sources.tap.request_log import Answered
from heartwheel.sources.tap.requests import NO_ERROR, error_of, group_of

_JOIN: Final = 11
_GROUPS_MAX: Final = 100_000


class LoggedPhases:
    """When the newest join phases of groups ended, according to the log."""

    def __init__(self) -> None:
        self._ended: OrderedDict[str, list[tuple[int, int]]] = OrderedDict()
        self._loaded: OrderedDict[str, int] = OrderedDict()

    def note_load(self, group_id: str, at_ms: int) -> None:
        """Note that the coordinator loaded a group, according to its own log."""
        self._loaded[group_id] = at_ms
        self._loaded.move_to_end(group_id)
        if len(self._loaded) > _GROUPS_MAX:
            self._loaded.popitem(last=False)

    def begun_ms(self, answered: Answered) -> int:
        """Return when a join's phase had certainly begun, epoch ms; 0 for any other request, or if that is unknown.

        Args:
            answered: the next request of the log.
        """
        if answered.api != _JOIN or error_of(answered) != NO_ERROR:
            return 0
        generation = int(answered.answer.get("generationId", -1))
        group_id = group_of(answered)
        ended = self._ended.setdefault(group_id, [])
        self._ended.move_to_end(group_id)
        if len(self._ended) > _GROUPS_MAX:
            self._ended.popitem(last=False)
        if not ended or generation > ended[-1][0]:
            ended.append((generation, answered.logged_ms))
            del ended[:-2]
        before = [ended_ms for known, ended_ms in ended if known == generation - 1]
        loaded_ms = self._loaded.get(group_id, -1)
        return max(before[0] + 1 if before else 0, loaded_ms + 1 if loaded_ms <= answered.logged_ms else 0)
