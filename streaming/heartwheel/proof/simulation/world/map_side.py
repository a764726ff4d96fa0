"""The map side of a simulated batch: workers that remember different values, and tasks that may run twice."""

from __future__ import annotations

from random import Random

from heartwheel.engine.heartbeats.packer import Packer
from heartwheel.engine.heartbeats.repeats import BatchOf
from heartwheel.engine.runtime.map.packed import PackedRow, PayloadKind
from heartwheel.engine.shard.pack import Pack
from heartwheel.engine.shard.sent_pack import decode_sent
from heartwheel.engine.time import ReadingsBuilder, encode_readings
from heartwheel.proof.log_builder import ProducedRecord
from heartwheel.proof.simulation.plan.parameters import VALUE_BYTES_MAX, Plan
from heartwheel.proof.simulation.story import Story
from heartwheel.proof.testing import frame_of

Payloads = list[tuple[PayloadKind, bytes]]


class SimulatedMapSide:
    """The workers of the present process.

    Args:
        dice: the job's dice, which cut the batch.
    """

    def __init__(self, plan: Plan, dice: Random, story: Story) -> None:
        self._plan = plan
        self._dice = dice
        self._worker_dice = Random(f"workers {plan.seed}")
        self._story = story
        self.start()

    def start(self) -> None:
        """Start a few workers of a new process; none of them knows what the others have sent."""
        self._workers = [self._new_packer() for _ in range(self._worker_dice.randrange(1, 4))]

    def pack(self, logs: list[list[ProducedRecord]], batch: BatchOf, runs: tuple[str, ...]) -> dict[int, Payloads]:
        """Pack new records: a task reads several partitions in frames of any size, and packs arrive in any order.

        Any worker may run a task. If another worker runs it again, only the packs of the last one are used.

        Args:
            logs: the new records of each partition.
            runs: the runs of the ticker that the process knows.
        """
        packed: dict[int, Payloads] = {shard: [] for shard in range(self._plan.shards)}
        cut = self._dice.randrange(len(logs) + 1) if self._dice.random() < 0.5 else len(logs)
        for task in (logs[:cut], logs[cut:]):
            records = [record for log in task for record in log]
            while self._worker_dice.random() < 0.15:
                self._story.mark("map task done again")
                self._packed_by_any([records[: self._worker_dice.randrange(len(records) + 1)]], batch, runs)
            readings, rows = self._packed_by_any(self._frames(records), batch, runs)
            for shard, kind, payload in rows:
                packed[shard].append((kind, payload))
                if kind is PayloadKind.RECORDS and _lacks_bytes(decode_sent(payload)):
                    self._story.mark("heartbeat without bytes")
            if found := readings.readings():
                for payloads in packed.values():
                    payloads.append((PayloadKind.READINGS, encode_readings(found)))
        for payloads in packed.values():
            self._dice.shuffle(payloads)
        return packed

    def _packed_by_any(
        self, frames: list[list[ProducedRecord]], batch: BatchOf, runs: tuple[str, ...]
    ) -> tuple[ReadingsBuilder, list[PackedRow]]:
        worker = self._worker_dice.randrange(len(self._workers))
        if self._worker_dice.random() < 0.02:
            self._workers[worker] = self._new_packer()
        packer = self._workers[worker]
        packer.begin(batch)
        readings = ReadingsBuilder(runs, self._plan.outage_min_ms)
        return readings, [row for frame in frames if frame for row in packer.pack(frame_of(frame), readings)]

    def _frames(self, records: list[ProducedRecord]) -> list[list[ProducedRecord]]:
        cut = self._dice.randrange(len(records) + 1) if self._dice.random() < 0.4 else len(records)
        return [frame for frame in (records[:cut], records[cut:]) if frame]

    def _new_packer(self) -> Packer:
        """Return a worker; some remember only a few values, so that they forget others."""
        remembered = self._worker_dice.choice((8, 4_096))
        return Packer(
            "consumer-heartbeats",
            self._plan.shards,
            value_bytes_max=VALUE_BYTES_MAX,
            remembered_max=remembered,
            feeds=self._plan.relayed.names,
        )


def _lacks_bytes(pack: Pack) -> bool:
    return len(pack.bodies) < len(pack.fingerprints)
