"""The job as Spark runs it: catch up, go live, die anywhere, start again.

A live trigger fetches the end offsets, then takes the timestamp, then writes both down; records may land in between.
Then it packs what is new, calls the state function of every shard, writes to the sink, writes the state, and commits.
The map side, the state function and the codec of the state are the real ones; Spark's part is simulated.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from random import Random
from typing import Final

import msgspec
import pandas as pd

from heartwheel.simulation.checkpoint import Checkpoint, Planned, Told
from heartwheel.simulation.clocks import DriverClock
from heartwheel.simulation.faults import Crash, Faults, Step
from heartwheel.simulation.plan import VALUE_BYTES_MAX, Plan
from heartwheel.simulation.story import Story
from heartwheel.simulation.topic import Topic
from heartwheel.spark.job_config import JobConfig
from heartwheel.spark.packer import Packer
from heartwheel.spark.schema import NEW_STATE, StateRow
from heartwheel.spark.slots import slots_of
from heartwheel.spark.state_function import StateFunction, advance_shard, state_function
from heartwheel.testing import frame_of


class _Counts(msgspec.Struct):
    """Read the counts of a status row, and nothing else."""

    counts: dict[str, int]


_decode_counts: Final = msgspec.json.Decoder(_Counts).decode


class _GroupState:
    """Stand for Spark's `GroupState`: the state of one key, and the timestamp of the batch."""

    def __init__(self, row: StateRow, batch_ms: int) -> None:
        self.get = row
        self.exists = row is not NEW_STATE
        self._batch_ms = batch_ms

    def getCurrentProcessingTimeMs(self) -> int:  # noqa: N802 - Spark's name
        return self._batch_ms

    def update(self, row: StateRow) -> None:
        self.get = row


Rows = list[tuple[str, str]]


def config_of(plan: Plan) -> JobConfig:
    """Shape a history's parameters as the configuration of the job."""
    return JobConfig(
        checkpoint="simulated",
        kafka_options={},
        source="consumer-heartbeats",
        topics={"heartbeats": "consumer-heartbeats"},
        slots=slots_of(plan.shards, plan.state_partitions),
        skew_allowance_ms=plan.skew_allowance_ms,
        value_bytes_max=VALUE_BYTES_MAX,
        at_risk_count=3,
        tick_ms=plan.tick_ms,
        wheel_size=plan.wheel_size,
        coordinator=plan.coordinator,
        limits=plan.limits,
    )


class Job:
    """Run the job through a history.

    Args:
        plan: the history's parameters.
        topic: the heartbeats.
        story: told what happens.
    """

    def __init__(self, plan: Plan, topic: Topic, story: Story) -> None:
        self._plan = plan
        self._topic = topic
        self._story = story
        self._config = config_of(plan)
        self._dice = Random(f"job {plan.seed}")
        self._wheel_dice = Random(f"wheel {plan.seed}")
        self._functions = self._configured(plan.skew_allowance_ms)
        self._faults = Faults(plan, self._dice, story)
        self._clock = DriverClock(plan.driver, plan.brokers, plan.skew_allowance_ms)
        self._packer = self._new_packer()
        self._attempts = 0
        self.now_ms = plan.start_ms
        self.checkpoint = Checkpoint(topic.ends_at(plan.start_ms) if plan.latest else {})

    def run(self) -> None:
        """Run through the faults."""
        while self.now_ms < self._plan.stop_ms:
            try:
                self._live_once()
            except Crash as crash:
                self._story.say(self.now_ms, "CRASH, {}", crash.step)
                self.now_ms += self._faults.downtime_ms()

    def finish(self, wait_ms: int) -> None:
        """Start once more, undisturbed, and let two triggers pass after a wait, true ms."""
        self._faults.calm = True
        self._start()
        self.now_ms += wait_ms
        self.trigger()
        self.trigger()

    def defers(self) -> bool:
        """Tell whether the last batch put off verdicts, as it would have told too many."""
        batch = self.checkpoint.commits - 1
        newest = (told for told in self.checkpoint.sink if told.topic == "status" and told.batch == batch)
        return any("groups_deferred" in _decode_counts(told.value).counts for told in newest)

    def clock_ms(self) -> int:
        """Tell what the driver's clock shows, epoch ms."""
        return self._clock.at(self.now_ms)

    # -- the life of a driver

    def _live_once(self) -> None:
        self._start()
        while self.now_ms < self._plan.stop_ms:
            self.trigger()

    def trigger(self) -> None:
        """Run one live batch, and wait for the next trigger; after a batch that took too long it comes at once."""
        began_ms, interval_ms = self.now_ms, self._plan.interval_ms
        self._plan_batch(self._topic.ends_at(self.now_ms), held=False)
        self._run(held=False)
        self.now_ms = max(self.now_ms, (began_ms // interval_ms + 1) * interval_ms)

    def _start(self) -> None:
        """Begin a life: nothing is remembered but the checkpoint, and the backlog is read with clocks held."""
        self._story.say(self.now_ms, "the job starts")
        self._packer = self._new_packer()
        # Somebody may change the configuration while the job is down.
        self._functions = self._configured(self._plan.skew_allowance_ms + self._dice.choice((0, 0, 300)))
        self._reach(Step.STARTED, held=True)
        if self.checkpoint.unfinished:
            self._story.mark("batch done again")
            self._run(held=True)
        ends = self._topic.ends_at(self.now_ms)
        grown = bool(self.checkpoint.offsets) and len(ends) > len(self.checkpoint.read)
        if grown:
            self._story.mark("backlog at once")
        while True:
            bounded = ends if grown else self._bounded(ends)
            self._plan_batch(bounded, held=True)
            self._run(held=True)
            if bounded == ends:
                return
            self._story.mark("batch bounded")

    def _bounded(self, ends: dict[int, int]) -> dict[int, int]:
        """Take a part of the backlog, of each partition in proportion to its own, as Spark's Kafka source does."""
        read = self.checkpoint.read
        backlog = {partition: end - read.get(partition, 0) for partition, end in ends.items()}
        total, most = sum(backlog.values()), self._plan.catch_up_max
        if total <= most:
            return ends
        # Rounded up, as every partition with a backlog must move on.
        return {p: read.get(p, 0) + min(size, -(-most * size // total)) for p, size in backlog.items()}

    def _plan_batch(self, ends: dict[int, int], *, held: bool) -> None:
        self._reach(Step.OFFSETS_FETCHED, held=held)
        if self._topic.ends_at(self.now_ms) != ends and not held:
            self._story.mark("fault records between offsets and timestamp")
        batch_ms = self._clock.at(self.now_ms)
        self._reach(Step.TIMESTAMP_TAKEN, held=held)
        self.checkpoint.plan(ends, batch_ms)
        self._reach(Step.OFFSETS_WRITTEN, held=held)

    def _run(self, *, held: bool) -> None:
        """Run the newest planned batch, which may have been tried before."""
        planned = self.checkpoint.offsets[-1]
        self._attempts += 1
        packed = self._pack(planned)
        self._reach(Step.PACKED, held=held)
        results = {}
        for shard, payloads in packed.items():
            results[shard] = self._advance(shard, payloads, planned, held=held)
            self._reach(Step.STATE_FUNCTION_RUNNING, held=held)
        self._write(self._interleaved({shard: rows for shard, (_, rows) in results.items()}), held=held)
        self._reach(Step.SINK_WRITTEN, held=held)
        for shard, (state, _) in results.items():
            self.checkpoint.put_state(shard, state)
            self._reach(Step.STATE_PARTLY_WRITTEN, held=held)
        self._reach(Step.STATE_WRITTEN, held=held)
        self.checkpoint.commit()
        self._story.mark("batch held" if held else "batch live")
        self._story.say(
            self.now_ms, "batch {} at {}{}", self.checkpoint.commits - 1, planned.batch_ms, ", held" if held else ""
        )
        self._reach(Step.COMMITTED, held=held)

    def _reach(self, step: Step, *, held: bool) -> None:
        self.now_ms += self._faults.stall_ms() if step in _TAKES_TIME else 0
        if self._faults.crash_at(step, held=held):
            raise Crash(step)

    # -- Spark's part of a batch

    def _pack(self, planned: Planned) -> dict[int, list[tuple[bool, bytes]]]:
        """Pack what is new: a task reads several partitions, in frames of any size; packs arrive in any order."""
        packed: dict[int, list[tuple[bool, bytes]]] = {shard: [] for shard in range(self._plan.shards)}
        records = list(chain.from_iterable(self._topic.records(planned.starts, planned.ends)))
        cut = self._dice.randrange(len(records) + 1) if self._dice.random() < 0.4 else len(records)
        for part in (records[:cut], records[cut:]):
            if part:
                for shard, rejected, payload in self._packer.pack(frame_of(part)):
                    packed[shard].append((rejected, payload))
        for payloads in packed.values():
            self._dice.shuffle(payloads)
        return packed

    def _advance(
        self, shard: int, payloads: list[tuple[bool, bytes]], planned: Planned, *, held: bool
    ) -> tuple[StateRow, Rows]:
        """Call the state function; now and then the task fails after it wrote some rows, and is done again."""
        if self._faults.retries():
            self._story.mark("fault task retried")
            _, rows = self._call(shard, payloads, planned, held=held)
            self._tell(shard, rows[: self._dice.randrange(len(rows))])
            self._dice.shuffle(payloads)
        return self._call(shard, payloads, planned, held=held)

    def _call(
        self, shard: int, payloads: list[tuple[bool, bytes]], planned: Planned, *, held: bool
    ) -> tuple[StateRow, Rows]:
        frame = pd.DataFrame([*payloads, (False, None)], columns=["rejected", "payload"])
        state = _GroupState(self.checkpoint.state(shard), planned.batch_ms)
        rows: Rows = []
        for output in self._functions[held]((self._config.slots[shard],), [frame], state):
            rows += zip(output["topic"], output["value"], strict=True)
        return state.get, rows

    def _interleaved(self, rows: dict[int, Rows]) -> list[tuple[int, tuple[str, str]]]:
        """Mix the rows of tasks, which run side by side; each task's own keep their order."""
        tasks: list[list[tuple[int, tuple[str, str]]]] = [[] for _ in range(self._plan.state_partitions)]
        for shard, of_shard in rows.items():
            tasks[shard % len(tasks)] += ((shard, row) for row in of_shard)
        turns = [task for task, of_task in enumerate(tasks) for _ in of_task]
        if len(tasks) > 1:
            self._dice.shuffle(turns)
        iterators = [iter(task) for task in tasks]
        return [next(iterators[turn]) for turn in turns]

    def _write(self, rows: list[tuple[int, tuple[str, str]]], *, held: bool) -> None:
        dies = self._faults.crash_at(Step.SINK_PARTLY_WRITTEN, held=held)
        written = rows[: self._dice.randrange(len(rows) + 1)] if dies else rows
        for shard, row in written:
            self._tell(shard, [row])
        if dies:
            raise Crash(Step.SINK_PARTLY_WRITTEN)

    def _tell(self, shard: int, rows: Rows) -> None:
        batch = self.checkpoint.commits
        for topic, value in rows:
            self.checkpoint.sink.append(Told(topic, value, batch, self._attempts, shard))
            if topic != "status":
                self._story.say(self.now_ms, "tells {}: {:.400}", topic, value)

    def _configured(self, skew_allowance_ms: int) -> dict[bool, StateFunction]:
        """Make the state functions of a process, for live and for held batches; it may have another wheel."""
        dice, plan = self._wheel_dice, self._plan
        config = replace(
            self._config,
            skew_allowance_ms=skew_allowance_ms,
            # Never a coarser tick than the plan's, by which it is judged how late a verdict may be.
            tick_ms=dice.choice((plan.tick_ms, plan.tick_ms, 1)),
            wheel_size=dice.choice((plan.wheel_size, plan.wheel_size, 7)),
        )
        if (config.tick_ms, config.wheel_size) != (plan.tick_ms, plan.wheel_size):
            self._story.mark("another wheel")
        return {held: state_function(config, advance_shard, held=held) for held in (False, True)}

    def _new_packer(self) -> Packer:
        """Make the map side of a new process; it remembers few values, so that it forgets some."""
        return Packer("consumer-heartbeats", self._plan.shards, value_bytes_max=VALUE_BYTES_MAX, remembered_max=8)


_TAKES_TIME = frozenset({Step.OFFSETS_FETCHED, Step.PACKED, Step.SINK_WRITTEN})
