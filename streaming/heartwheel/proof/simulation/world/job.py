"""The job as Spark runs it: it reads batch after batch, dies anywhere, and starts again.

A trigger fetches the end offsets, then takes the timestamp, then writes both; records may be appended in between. Then
it packs the new records, calls the state function of every shard, writes to the sink, writes the state, and commits.
The map side, the state function and the codec of the state are the real ones; Spark is simulated.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Final, cast

import msgspec

from heartwheel.engine.heartbeats.advance import advance_shard
from heartwheel.engine.heartbeats.config import JobConfig
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.runtime.map.slots import slots_of
from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow
from heartwheel.engine.runtime.state.state_function import StateFunction, state_function
from heartwheel.proof.simulation.plan.parameters import VALUE_BYTES_MAX, Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.simulation.world.checkpoint import Checkpoint, Planned, SinkRecord
from heartwheel.proof.simulation.world.faults import Crash, Faults, JobStep
from heartwheel.proof.simulation.world.map_side import Payloads, SimulatedMapSide
from heartwheel.proof.simulation.world.ticker import SimulatedTicker
from heartwheel.proof.simulation.world.topic import SimulatedTopic

if TYPE_CHECKING:
    import pandas as pd


class _Counts(msgspec.Struct):
    """The counts of a status row."""

    counts: dict[str, int]


_decode_counts: Final = msgspec.json.Decoder(_Counts).decode


class _GroupState:
    """The part of Spark's `GroupState` that the job uses: the state of one key, and the timestamp of the batch."""

    def __init__(self, row: StateRow, batch_ms: int) -> None:
        self.get = row
        self.exists = row is not NEW_STATE
        self._batch_ms = batch_ms

    def getCurrentProcessingTimeMs(self) -> int:  # noqa: N802 - Spark's name
        return self._batch_ms

    def update(self, row: StateRow) -> None:
        self.get = row


_METADATA_AGE_MS: Final = 300
"""How long the ticker takes to learn that the topic has grown, ms."""

Rows = list[tuple[str, str]]


def config_of(plan: Plan) -> JobConfig:
    """Return the configuration of the job for a history's parameters."""
    return JobConfig(
        checkpoint="simulated",
        kafka_options={},
        source="consumer-heartbeats",
        topics={"heartbeats": "consumer-heartbeats"},
        slots=slots_of(plan.shards, plan.state_partitions),
        tick_interval_ms=plan.tick_interval_ms,
        outage_min_ms=plan.outage_min_ms,
        value_bytes_max=VALUE_BYTES_MAX,
        at_risk_count=3,
        tick_ms=plan.tick_ms,
        wheel_size=plan.wheel_size,
        coordinator=plan.coordinator,
        limits=plan.limits,
        feeds=plan.relayed.names,
    )


class SimulatedJob:
    """The job in a history."""

    def __init__(self, plan: Plan, topic: SimulatedTopic, story: Story) -> None:
        self._plan = plan
        self._topic = topic
        self._story = story
        self._config = config_of(plan)
        self._dice = Random(f"job {plan.seed}")
        self._wheel_dice = Random(f"wheel {plan.seed}")
        self.now_ms = plan.start_ms
        self._faults = Faults(plan, self._dice, story)
        self._ticker = SimulatedTicker(plan, topic, story)
        self.checkpoint = Checkpoint(topic.ends_at(plan.start_ms) if plan.latest else {})
        self._function = self._configured()
        self._map_side = SimulatedMapSide(plan, self._dice, story)
        self._starts = 0
        self._attempts = 0

    @property
    def runs(self) -> tuple[str, ...]:
        """All runs of its ticker."""
        return tuple(self._ticker.runs)

    def run(self) -> None:
        """Run until the faults of the history end."""
        same = False
        while self.now_ms < self._plan.stop_ms:
            try:
                self._start(same_process=same)
                while self.now_ms < self._plan.stop_ms:
                    self.trigger()
            except Crash as crash:
                same = self._dice.random() < self._plan.retry_rate
                self._story.say(self.now_ms, "CRASH, {}{}", crash.step, ", tried again in the process" if same else "")
                self._story.mark("restart in the process" if same else "restart of the process")
                if not same:
                    self._ticker.stop(self.now_ms)
                self._pass(self._faults.downtime_ms())
        self._ticker.stop(self.now_ms)

    def finish(self, wait_ms: int) -> None:
        """Start again without faults, wait so long, ms, and read the topic to its end."""
        self._faults.calm = True
        self._start(same_process=False)
        self._pass(wait_ms)
        self.trigger()
        while (ends := self._ends()) != self.checkpoint.read:
            # After the last records of members there are only ticks, which are read in one batch.
            self._once(self._bounded(ends) if self._topic.is_left(self.checkpoint.read) else ends)

    def defers(self) -> bool:
        """Return whether the last batch left verdicts to the next one, because there were too many."""
        batch = self.checkpoint.commits - 1
        newest = (written for written in self.checkpoint.sink if written.topic == "status" and written.batch == batch)
        return any("groups_deferred" in _decode_counts(written.value).counts for written in newest)

    # -- one driver

    def trigger(self) -> None:
        """Run one batch, and wait for the next trigger; it comes at once if the batch took longer than an interval."""
        began_ms, interval_ms = self.now_ms, self._plan.interval_ms
        if self._topic.count_at(self.now_ms - _METADATA_AGE_MS) > max(self.checkpoint.counts):
            self._function = self._restarted()
        self._once(self._bounded(self._ends()))
        self._pass(max(0, (began_ms // interval_ms + 1) * interval_ms - self.now_ms))

    def _once(self, ends: dict[int, int]) -> None:
        self._plan_batch(ends)
        self._run()

    def _start(self, *, same_process: bool) -> None:
        """Start a driver, which knows only the checkpoint."""
        self._story.say(self.now_ms, "the job starts")
        if not same_process:
            self._ticker.start(self.now_ms)
            self._map_side.start()
        self._starts += 1
        # The configuration may be changed while the job is down.
        self._function = self._configured()
        self._reach(JobStep.STARTED)
        if self.checkpoint.unfinished:
            self._story.mark("batch done again")
            self._run()

    def _pass(self, wait_ms: int) -> None:
        """Advance true time and the ticker."""
        self.now_ms += wait_ms
        self._ticker.advance(self.now_ms)

    def _ends(self) -> dict[int, int]:
        self._ticker.advance(self.now_ms)
        return self._topic.ends_at(self.now_ms)

    def _bounded(self, ends: dict[int, int]) -> dict[int, int]:
        """Limit a batch to a part of the backlog, each partition in proportion, as Spark's Kafka source does."""
        read = self.checkpoint.read
        backlog = {partition: end - read.get(partition, 0) for partition, end in ends.items()}
        total, most = sum(backlog.values()), self._plan.records_max
        if total <= most:
            return ends
        self._story.mark("batch bounded")
        # Rounded up, so that every partition with a backlog makes progress.
        return {p: read.get(p, 0) + min(size, -(-most * size // total)) for p, size in backlog.items()}

    def _plan_batch(self, ends: dict[int, int]) -> None:
        self._reach(JobStep.OFFSETS_FETCHED)
        batch_ms = self._plan.driver.at(self.now_ms)
        self._reach(JobStep.TIMESTAMP_TAKEN)
        self.checkpoint.plan(ends, batch_ms)
        self._reach(JobStep.OFFSETS_WRITTEN)

    def _run(self) -> None:
        """Run the newest planned batch; it may not be the first attempt."""
        planned = self.checkpoint.offsets[-1]
        self._attempts += 1
        logs = self._topic.records(planned.starts, planned.ends)
        packed = self._map_side.pack(logs, BatchOf(f"start {self._starts}", self.checkpoint.commits), self._config.runs)
        self._reach(JobStep.PACKED)
        results = {}
        for shard, payloads in packed.items():
            results[shard] = self._advance(shard, payloads, planned)
            self._reach(JobStep.STATE_FUNCTION_RUNNING)
        self._write(self._interleaved({shard: rows for shard, (_, rows) in results.items()}))
        self._reach(JobStep.SINK_WRITTEN)
        for shard, (state, _) in results.items():
            self.checkpoint.put_state(shard, state)
            self._reach(JobStep.STATE_PARTLY_WRITTEN)
        self._reach(JobStep.STATE_WRITTEN)
        self.checkpoint.commit()
        self._story.mark("batch")
        self._story.say(self.now_ms, "batch {} at {}", self.checkpoint.commits - 1, planned.batch_ms)
        self._reach(JobStep.COMMITTED)

    def _reach(self, step: JobStep) -> None:
        self._pass(self._faults.stall_ms() if step in _TAKES_TIME else 0)
        if self._faults.crash_at(step):
            raise Crash(step)

    # -- Spark's part of a batch

    def _advance(self, shard: int, payloads: Payloads, planned: Planned) -> tuple[StateRow, Rows]:
        """Call the state function; sometimes the task fails after it wrote some rows, and is run again."""
        if self._faults.retries():
            self._story.mark("fault task retried")
            _, rows = self._call(shard, payloads, planned)
            self._emit(shard, rows[: self._dice.randrange(len(rows))])
            self._dice.shuffle(payloads)
        return self._call(shard, payloads, planned)

    def _call(self, shard: int, payloads: Payloads, planned: Planned) -> tuple[StateRow, Rows]:
        # The state function uses only the columns, and a pandas frame is slow to make.
        kinds, values = zip(*payloads, strict=True) if payloads else ((), ())
        frame = cast("pd.DataFrame", {"kind": kinds, "payload": values})
        state = _GroupState(self.checkpoint.state(shard), planned.batch_ms)
        rows: Rows = []
        for records in self._function((self._config.slots[shard],), [frame], state):
            rows += ((record.topic, record.value) for record in records)
        return state.get, rows

    def _interleaved(self, rows: dict[int, Rows]) -> list[tuple[int, tuple[str, str]]]:
        """Interleave the rows of parallel tasks; the rows of one task keep their order."""
        tasks: list[list[tuple[int, tuple[str, str]]]] = [[] for _ in range(self._plan.state_partitions)]
        for shard, of_shard in rows.items():
            tasks[shard % len(tasks)] += ((shard, row) for row in of_shard)
        turns = [task for task, of_task in enumerate(tasks) for _ in of_task]
        if len(tasks) > 1:
            self._dice.shuffle(turns)
        iterators = [iter(task) for task in tasks]
        return [next(iterators[turn]) for turn in turns]

    def _write(self, rows: list[tuple[int, tuple[str, str]]]) -> None:
        dies = self._faults.crash_at(JobStep.SINK_PARTLY_WRITTEN)
        written = rows[: self._dice.randrange(len(rows) + 1)] if dies else rows
        for shard, row in written:
            self._emit(shard, [row])
        if dies:
            raise Crash(JobStep.SINK_PARTLY_WRITTEN)

    def _emit(self, shard: int, rows: Rows) -> None:
        batch = self.checkpoint.commits
        for topic, value in rows:
            self.checkpoint.sink.append(SinkRecord(topic, value, batch, self._attempts, shard))
            if topic != "status":
                self._story.say(self.now_ms, "writes {}: {:.400}", topic, value)

    def _configured(self) -> StateFunction:
        """Return the state function of a new process, which knows all runs of its ticker; its wheel may differ."""
        dice, plan = self._wheel_dice, self._plan
        self._config = replace(
            self._config,
            runs=self.runs,
            # Never coarser than the plan's tick, because that determines how late a verdict may be.
            tick_ms=dice.choice((plan.tick_ms, plan.tick_ms, 1)),
            wheel_size=dice.choice((plan.wheel_size, plan.wheel_size, 7)),
        )
        if (self._config.tick_ms, self._config.wheel_size) != (plan.tick_ms, plan.wheel_size):
            self._story.mark("another wheel")
        return self._restarted()

    def _restarted(self) -> StateFunction:
        """Return the state function of a query that starts now, with the present number of partitions."""
        counts = self.checkpoint.counts
        counts.setdefault(self._topic.count_at(self.now_ms), len(self.checkpoint.offsets))
        self._config = replace(self._config, counts=tuple(counts.items()))
        return state_function(
            self._config, advance_shard, lambda output: output.records, lambda: self.checkpoint.commits
        )


_TAKES_TIME = frozenset({JobStep.OFFSETS_FETCHED, JobStep.PACKED, JobStep.SINK_WRITTEN})
