"""Replay of a whole log: the rules of each group on its own lines.

The verdicts of a group depend on the order of its own lines alone, so the lines of different groups may come in any
order, even one group after the other. Therefore no verdict is returned before the log ends, or before the caller
declares that it is complete up to a moment (`settle`): until then the next line may be an earlier one. The output is
sorted by time, then group, then by the order of decision within the group, which makes it a function of the log. A cut
with a snapshot does not change it (`test_log_replay.py`).

The engine's shards are not used: they need NumPy, and a log of a million lines took them twice as long as the rules
alone (`replay_bench.py`: 61 against 105 thousand lines a second).
"""

from __future__ import annotations

from collections.abc import Iterable

from heartwheel.engine.replay.epoch_lane import EpochLane, EpochLaneState, EpochLine
from heartwheel.engine.replay.epoch_lines import decode_epoch_line, is_epoch_line
from heartwheel.engine.replay.evidence import LaneState, ReplayLane
from heartwheel.engine.replay.lines import T_MS_MAX, LineReader, ReplayedLine
from heartwheel.engine.replay.recorded import Recorded
from heartwheel.engine.replay.revocations import Revocations
from heartwheel.engine.replay.snapshot import Snapshot, check_fits, read_snapshot, write_snapshot
from heartwheel.engine.rules.config import CoordinatorConfig
from heartwheel.engine.rules.epochs.config import EpochConfig
from heartwheel.engine.rules.model import Group
from heartwheel.wire.events import RejectCause, RejectedError
from heartwheel.wire.verdicts import Verdict


class LogReplay:
    """A run of the rules over a log.

    Args:
        snapshot: what `snapshot` returned, to continue from there.
        epochs: the settings of groups with member epochs; by default `config` for all of them.
        revocations: records each member that has to give partitions back.

    Raises:
        ReplaySnapshotError: the snapshot cannot be read, or belongs to other settings.
    """

    def __init__(
        self,
        config: CoordinatorConfig,
        *,
        snapshot: bytes | None = None,
        epochs: EpochConfig | None = None,
        revocations: Revocations | None = None,
    ) -> None:
        self._config = config
        self._epochs = EpochConfig(config) if epochs is None else epochs
        self._revocations = revocations
        self._reader = LineReader()
        state = Snapshot(config) if snapshot is None else read_snapshot(snapshot)
        check_fits(state, config)
        self._lines = state.lines
        self._last_ms = state.last_ms
        self._settled_ms = state.settled_ms
        self._end_ms = -1
        self._verdicts = state.verdicts
        self._is_answered = state.is_answered
        self._lanes = {group_id: self._lane(lane) for group_id, lane in state.lanes.items()}
        self._epoch_lanes = {group_id: self._epoch_lane(lane) for group_id, lane in state.epoch_lanes.items()}

    @property
    def waiting(self) -> int:
        """The number of verdicts that were decided and not returned yet."""
        return len(self._verdicts)

    @property
    def end_ms(self) -> int:
        """The clock that the replay was advanced to, or the newest time that was read, epoch ms; -1 before that."""
        return max(self._last_ms, self._settled_ms, self._end_ms)

    def feed(self, line: bytes) -> ReplayedLine | EpochLine | None:
        """Apply the next line of the log.

        Returns:
            The decoded line; `None` if a broker refused the request as invalid.

        Raises:
            RejectedError: it is not an event, or is too late; the replay continues with the next line.
        """
        self._lines += 1
        if is_epoch_line(line):
            return self._feed_epoch_line(line)
        read = self._reader.read(line, self._lines)
        if read is None:
            return None
        self._note_time(read.t_ms)
        self._is_answered |= read.evidence is not None
        group_id, recorded = read.event.group_id, read.recorded()
        lane = self._epoch_lanes.get(group_id)
        if lane is not None:
            lane.feed(EpochLine(recorded.evidence, event=read.event))
        else:
            if group_id not in self._lanes:
                self._lanes[group_id] = self._lane(LaneState(Group(group_id)))
            self._lanes[group_id].feed(recorded)
        return read

    def settle(self, until_ms: int) -> list[Verdict]:
        """Return all verdicts up to a moment; the caller guarantees that every line up to then has been read.

        A later answer may still change the order of requests in groups with recorded answers. If the log has any, all
        verdicts wait.

        Args:
            until_ms: epoch ms; from now on a line that is not later is refused.
        """
        if self._is_answered:
            return []
        self._settled_ms = max(self._settled_ms, until_ms)
        for lane in self._lanes.values():
            lane.advance(self._settled_ms)
        ready = [verdict for verdict in self._verdicts if verdict.time_ms <= self._settled_ms]
        self._verdicts[:] = [verdict for verdict in self._verdicts if verdict.time_ms > self._settled_ms]
        return _in_order(ready)

    def finish(self, until_ms: int | None = None) -> list[Verdict]:
        """Advance every group to the end of the log and return all verdicts that were not returned yet.

        Args:
            until_ms: the end, epoch ms; the time of the newest event if that is later, or if there is none.
        """
        self._end_ms = -1 if until_ms is None else until_ms
        for lane in self._lanes.values():
            lane.advance(self.end_ms)
        for epoch_lane in self._epoch_lanes.values():
            epoch_lane.advance(self.end_ms)
        rest, self._verdicts[:] = _in_order(self._verdicts), []
        return rest

    def snapshot(self) -> bytes:
        """Return the replay as bytes: a `LogReplay` made from them and fed the rest of the log returns the rest."""
        return write_snapshot(
            Snapshot(
                config=self._config,
                lines=self._lines,
                last_ms=self._last_ms,
                settled_ms=self._settled_ms,
                lanes={group_id: lane.state() for group_id, lane in self._lanes.items()},
                is_answered=self._is_answered,
                verdicts=self._verdicts,
                epoch_lanes={group_id: lane.state() for group_id, lane in self._epoch_lanes.items()},
            )
        )

    def _note_time(self, t_ms: int) -> None:
        if not 0 <= t_ms <= T_MS_MAX:
            raise RejectedError(RejectCause.BAD_FIELD, f"`t_ms` is {t_ms}, no time in milliseconds since 1970")
        if t_ms <= self._settled_ms:
            detail = f"`t_ms` is {t_ms}, and the log was declared complete up to {self._settled_ms}"
            raise RejectedError(RejectCause.BAD_FIELD, detail)
        self._last_ms = max(self._last_ms, t_ms)

    def _feed_epoch_line(self, line: bytes) -> EpochLine | None:
        read = decode_epoch_line(line)
        if read is None:
            return None
        event = read.event or read.beat
        group_id = "" if event is None else event.group_id
        self._note_time(read.evidence.t_ms)
        self._is_answered = True
        if read.beat is not None and group_id not in self._epoch_lanes:
            classic = self._lanes.pop(group_id, None)
            known = EpochLaneState(classic=None if classic is None else classic.state())
            self._epoch_lanes[group_id] = self._epoch_lane(known)
        if group_id in self._epoch_lanes:
            self._epoch_lanes[group_id].feed(read)
        elif read.event is not None and group_id in self._lanes:
            self._lanes[group_id].feed(Recorded(read.event, read.evidence))
        return read

    def _lane(self, state: LaneState) -> ReplayLane:
        return ReplayLane(state, self._config, self._verdicts.append)

    def _epoch_lane(self, state: EpochLaneState) -> EpochLane:
        follow = None if self._revocations is None else self._revocations.follow
        return EpochLane(state, self._epochs, self._verdicts.append, follow)


def _in_order(verdicts: Iterable[Verdict]) -> list[Verdict]:
    # Stable: the verdicts of one group keep their order, which shows cause and effect within a millisecond.
    return sorted(verdicts, key=lambda verdict: (verdict.time_ms, verdict.group_id))


def replay_log(lines: Iterable[bytes], config: CoordinatorConfig, until_ms: int | None = None) -> list[Verdict]:
    """Run the rules over a whole log; see `LogReplay`.

    Raises:
        RejectedError: a line is not an event.
    """
    run = LogReplay(config)
    for line in lines:
        run.feed(line)
    return run.finish(until_ms)
