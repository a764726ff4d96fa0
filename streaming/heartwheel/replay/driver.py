"""Replay: a log in, the verdicts of the rules out, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from heartwheel.coordinator.config import CoordinatorConfig
from heartwheel.coordinator.machine import GroupMachine
from heartwheel.coordinator.model import Group
from heartwheel.replay.evidence import Lane
from heartwheel.replay.recorded import decode_line
from heartwheel.verdicts import Verdict


def broker_config(broker_conf: Mapping[str, int]) -> CoordinatorConfig:
    """Make the coordinator's settings of a broker's, by Kafka's names with dots.

    Args:
        broker_conf: such as `{"group.initial.rebalance.delay.ms": 500}`.

    Raises:
        TypeError: if a name is none of the coordinator's settings.
    """
    return CoordinatorConfig(**{name.replace(".", "_"): value for name, value in broker_conf.items()})


class Replay:
    """Run the rules over a log.

    Args:
        config: the coordinator's settings.
    """

    def __init__(self, config: CoordinatorConfig) -> None:
        self._config = config
        self._lanes: dict[str, Lane] = {}
        self._verdicts: list[Verdict] = []
        self._lines = 0
        self._last_ms = 0

    def feed(self, line: bytes) -> None:
        """Take the next line of the log.

        Raises:
            RejectedError: if it is not an event; the replay goes on with the next line.
        """
        self._lines += 1
        recorded = decode_line(line, self._lines)
        if recorded is None:
            return
        self._last_ms = max(self._last_ms, recorded.evidence.t_ms)
        group_id = recorded.event.group_id
        lane = self._lanes.get(group_id)
        if lane is None:
            machine = GroupMachine(Group(group_id), self._config, self._verdicts.append)
            lane = self._lanes[group_id] = Lane(machine, self._config)
        lane.feed(recorded)

    def finish(self, until_ms: int | None = None) -> list[Verdict]:
        """Advance every group to the end and return all verdicts in the order of time.

        Args:
            until_ms: the end, epoch ms; by default the time of the last event.
        """
        end_ms = self._last_ms if until_ms is None else max(until_ms, self._last_ms)
        for lane in self._lanes.values():
            lane.advance(end_ms)
        # Stable: the verdicts of one group keep their order, which tells cause from effect within a millisecond.
        return sorted(self._verdicts, key=lambda verdict: verdict.time_ms)


def replay(lines: Iterable[bytes], config: CoordinatorConfig, until_ms: int | None = None) -> list[Verdict]:
    """Run the rules over a whole log; see `Replay`."""
    run = Replay(config)
    for line in lines:
        run.feed(line)
    return run.finish(until_ms)
