"""Replay of a log: returns the verdicts of the rules, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from heartwheel.engine.replay.evidence import LaneState, ReplayLane
from heartwheel.engine.replay.recorded import decode_line
from heartwheel.engine.rules.config import CoordinatorConfig, coordinator_config
from heartwheel.engine.rules.model import Group
from heartwheel.wire.verdicts import Verdict


def broker_config(broker_conf: Mapping[str, int]) -> CoordinatorConfig:
    """Return the coordinator's settings for those of a broker, by Kafka's names with dots.

    Args:
        broker_conf: such as `{"group.initial.rebalance.delay.ms": 500}`.

    Raises:
        TypeError: a name is none of the coordinator's settings.
    """
    return coordinator_config({name.replace(".", "_"): value for name, value in broker_conf.items()})


class _Snapshot(msgspec.Struct):
    lines: int
    last_ms: int
    lanes: dict[str, LaneState]
    verdicts: list[Verdict]


class Replay:
    """A run of the rules over a log.

    Args:
        snapshot: what `snapshot` returned, to continue from there.
    """

    def __init__(self, config: CoordinatorConfig, snapshot: bytes | None = None) -> None:
        self._config = config
        state = _Snapshot(0, 0, {}, []) if snapshot is None else msgspec.json.decode(snapshot, type=_Snapshot)
        self._lines = state.lines
        self._last_ms = state.last_ms
        self._verdicts = state.verdicts
        self._lanes = {group_id: self._lane(lane) for group_id, lane in state.lanes.items()}

    def feed(self, line: bytes) -> None:
        """Apply the next line of the log.

        Raises:
            RejectedError: it is not an event; the replay continues with the next line.
        """
        self._lines += 1
        recorded = decode_line(line, self._lines)
        if recorded is None:
            return
        self._last_ms = max(self._last_ms, recorded.evidence.t_ms)
        group_id = recorded.event.group_id
        lane = self._lanes.get(group_id)
        if lane is None:
            lane = self._lanes[group_id] = self._lane(LaneState(Group(group_id)))
        lane.feed(recorded)

    def snapshot(self) -> bytes:
        """Return the replay as bytes: a `Replay` of them, fed the rest of the log, ends with the same verdicts."""
        lanes = {group_id: lane.state() for group_id, lane in self._lanes.items()}
        return msgspec.json.encode(_Snapshot(self._lines, self._last_ms, lanes, self._verdicts))

    def finish(self, until_ms: int | None = None) -> list[Verdict]:
        """Advance every group to the end and return all verdicts in the order of time.

        Args:
            until_ms: the end, epoch ms; by default the time of the last event.
        """
        end_ms = self._last_ms if until_ms is None else max(until_ms, self._last_ms)
        for lane in self._lanes.values():
            lane.advance(end_ms)
        # Stable: the verdicts of one group keep their order, which shows cause and effect within a millisecond.
        return sorted(self._verdicts, key=lambda verdict: (verdict.time_ms, verdict.group_id))

    def _lane(self, state: LaneState) -> ReplayLane:
        return ReplayLane(state, self._config, self._verdicts.append)


def replay(lines: Iterable[bytes], config: CoordinatorConfig, until_ms: int | None = None) -> list[Verdict]:
    """Run the rules over a whole log; see `Replay`."""
    run = Replay(config)
    for line in lines:
        run.feed(line)
    return run.finish(until_ms)
