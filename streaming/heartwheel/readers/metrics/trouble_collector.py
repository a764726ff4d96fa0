"""Metrics of groups in trouble, for alerts about groups: those about the engine do not cover them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from heartwheel.readers.live.trouble import GroupsInTrouble
from heartwheel.readers.metrics.catalogue import verdicts as about_verdicts
from heartwheel.readers.metrics.families import family


class TroubleCollector(Collector):
    """The groups in trouble at the moment that Prometheus asks.

    A group's name is a label only while the group is in trouble, and only for the worst ones
    (`heartwheel.readers.live.trouble.TROUBLED_MAX`), so the number of series is bounded at any moment.
    """

    def __init__(self, find: Callable[[], GroupsInTrouble]) -> None:
        self._find = find

    def collect(self) -> Iterable[Family]:
        """Return the figures; none while no engine processes the groups, because then nothing is known of them."""
        found = self._find()
        if not found.known:
            return
        yield family(
            about_verdicts.GROUP_TROUBLE,
            {(each.group_id, trouble.kind.value): 1.0 for each in found.groups for trouble in each.troubles},
        )
        yield family(about_verdicts.GROUPS_IN_TROUBLE, found.count)
