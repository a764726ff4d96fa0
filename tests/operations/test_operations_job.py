"""The job of delayed operations: batches as Spark hands them over, and one real run on a real broker."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pyarrow as pa
import pytest

from heartwheel.engine.operations import OperationEvent, OutcomeRow, encode_operation
from heartwheel.engine.operations_job.advance import OperationsConfig, advance_operations
from heartwheel.engine.operations_job.packer import OperationPacker, decode_packet, pack_operations
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.map.slots import slots_of
from heartwheel.engine.runtime.state.schema import NEW_STATE, STATE_VERSION, StateRow
from heartwheel.engine.runtime.state.state_function import StateVersionError
from heartwheel.kafka.broker.embedded import EmbeddedKafka
from heartwheel.kafka.readback import LogRecord, read_topic
from heartwheel.kafka.sender import Sender
from heartwheel.kafka.topic_specs import operations_topics
from heartwheel.kafka.topics import ensure_topics
from heartwheel.proof.testing import ProducedRecord, frame_of
from heartwheel.wire.rejects import Reject
from heartwheel.wire.tick import Tick, encode_tick
from support.job import PATIENCE_S, wait_for
from support.operation_logs import T0, done, finished, mark, produce, watch

SHARDS = 4
PACKER = OperationPacker("delayed-operations", SHARDS, 1 << 20, 86_400_000)


def _config(**changes: Any) -> OperationsConfig:
    fields: dict[str, Any] = {
        "checkpoint": "unused",
        "kafka_options": {},
        "source": "delayed-operations",
        "topics": {},
        "slots": (0,),
    }
    return OperationsConfig(**(fields | changes))


def _frame(*records: tuple[int, OperationEvent | bytes | None, int]) -> pa.RecordBatch:
    """Make the Arrow frame of (ms after the begin, event, partition)."""
    offsets: dict[int, int] = {}
    rows = []
    for at_ms, event, partition in records:
        offsets[partition] = offsets.get(partition, -1) + 1
        value = encode_operation(event) if isinstance(event, OperationEvent) else event
        rows.append(ProducedRecord(T0 + at_ms, value, partition, offsets[partition]))
    return frame_of(rows)


class Batches:
    """Run one shard as Spark would, batch by batch."""

    def __init__(self, config: OperationsConfig) -> None:
        self.config = config
        self.state: StateRow = NEW_STATE
        self.rows: list[dict[str, Any]] = []
        self._packer = PACKER._replace(shards=1)

    def batch(
        self, at_ms: int, frame: pa.RecordBatch | None = None, *, ticks: tuple[int, ...] = (0,)
    ) -> list[dict[str, Any]]:
        """Run one batch that ends with a tick in some partitions, and give the rows that go to Kafka."""
        records = [ProducedRecord(T0 + at_ms, encode_tick(Tick()), partition, 1 << 40) for partition in ticks]
        packed = [] if frame is None else list(self._packer.pack(frame))
        packed += self._packer.pack(frame_of(records)) if records else []
        frames = [pd.DataFrame([row[1:] for row in packed], columns=["kind", "payload"])]
        self.state, output = advance_operations(self.config, 0, self.state, frames, batch_ms=T0 + at_ms)
        rows = [record._asdict() for record in output.records]
        self.rows += rows
        return rows

    def outcomes(self) -> list[tuple[str, str, int]]:
        """Give (operation, outcome, ms after the begin) of what went to the outcomes topic."""
        values = [msgspec.json.decode(row["value"], type=OutcomeRow) for row in self.rows if row["topic"] == "outcomes"]
        return [(value.operation_id, value.outcome, value.time_ms - T0) for value in values]


def test_records_about_a_key_go_everywhere_and_others_home() -> None:
    """A watch and a completion by id have one shard; completions by key, high watermarks and progress have all."""
    frame = _frame((0, watch("op", "k"), 0), (1, finished("op"), 0), (2, done("k"), 0), (3, mark("t-0", 1), 0))
    packets = {shard: decode_packet(payload) for shard, _, payload in PACKER.pack(frame)}
    assert sorted(packets) == list(range(SHARDS))
    assert {packet.newest_ms for packet in packets.values()} == {T0 + 3}
    assert sorted(len(packet.records) for packet in packets.values()) == [2, 2, 2, 4]


def test_partitions_of_one_frame_are_packed_apart() -> None:
    """Spark may gather partitions into one task: each has packets of its own, with times that never go back."""
    frame = _frame((5, done("a"), 0), (3, done("b"), 0), (1, done("c"), 1))
    packets = [decode_packet(payload) for shard, _, payload in PACKER.pack(frame) if shard == 0]
    assert [(each.partition, [record.time_ms - T0 for record in each.records]) for each in packets] == [
        (0, [5, 5]),
        (1, [1]),
    ]


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        (None, "tombstone"),
        (b"nonsense", "not_json"),
        (b'{"operation_id":"x"}', "missing_field"),
        (b'{"type":"dance"}', "unknown_type"),
        (b'{"type":"watch","keys":["k"],"timeout_ms":5}', "missing_field"),
        (b'{"type":"watch","operation_id":"x","keys":["k"]}', "missing_field"),
        (b'{"type":"watch","operation_id":"x","timeout_ms":5}', "missing_field"),
        (b'{"type":"watch","operation_id":"x","timeout_ms":5,"keys":["k"],"offsets":{"t-0":1}}', "bad_field"),
        (b'{"type":"watch","operation_id":"x","timeout_ms":0,"keys":["k"]}', "bad_field"),
        (b'{"type":"watch","operation_id":"x","timeout_ms":86400001,"keys":["k"]}', "bad_field"),
        (b'{"type":"complete"}', "missing_field"),
        (b'{"type":"complete","key":"k","operation_id":"x"}', "bad_field"),
        (b'{"type":"high_watermark","offset":1}', "missing_field"),
        (b'{"type":"high_watermark","key":"t-0"}', "missing_field"),
        (b'{"type":"high_watermark","key":"t-0","offset":-1}', "bad_field"),
        (b'{"type":"complete","key":"' + b"k" * 1025 + b'"}', "id_too_long"),
        (b'{"type":"complete","key":"k","x":"' + b"x" * (1 << 20) + b'"}', "too_large"),
        (msgspec.json.encode({"type": "watch", "operation_id": "x", "timeout_ms": 5, "keys": list("ab" * 501)}), ""),
        (
            msgspec.json.encode(
                {"type": "watch", "operation_id": "x", "timeout_ms": 5, "keys": [str(n) for n in range(1_001)]}
            ),
            "bad_field",
        ),
    ],
)
def test_bad_records_of_operations_are_set_aside_by_cause(value: bytes | None, cause: str) -> None:
    """I1: what cannot be used is rejected once, with its place and cause; its neighbours are packed."""
    frame = _frame((0, done("a"), 3), (1, value, 3), (2, done("b"), 3))
    rows = list(PACKER.pack(frame))
    rejects = [
        reject for _, kind, payload in rows if kind is PayloadKind.REJECTS for reject in msgspec.json.decode(payload)
    ]
    assert [(each["partition"], each["offset"], each["cause"]) for each in rejects] == (
        [(3, 1, cause)] if cause else []
    )
    assert all(len(decode_packet(payload).records) >= 2 for _, kind, payload in rows if kind is PayloadKind.RECORDS)


def test_packets_are_grouped_under_the_slots_of_their_shards() -> None:
    """What leaves the map side bears the grouping key of its shard, for every shard."""
    slots = slots_of(SHARDS, 2)
    (packed,) = pack_operations([_frame((0, done("k"), 0))], PACKER, slots)
    assert packed.column("slot").to_pylist() == list(slots)
    assert list(pack_operations([_frame()], PACKER, slots)) == []


def test_i10_p1_only_what_was_read_moves_time() -> None:
    """I10, P1: however late a batch is by the driver's clock, a completion that was not read yet counts."""
    job = Batches(_config())
    job.batch(0, _frame((0, watch("op", "k", timeout_ms=1_000), 0)))
    job.batch(900)
    assert job.outcomes() == []
    job.batch(6_000, frame_of([ProducedRecord(T0 + 950, encode_operation(done("k")), 0, 1)]))
    assert job.outcomes() == [("op", "completed", 950)]


def test_p2_an_outcome_is_known_by_the_first_tick_after_its_deadline() -> None:
    """P2: the batch that reads a record from the deadline on tells it, and no earlier one."""
    job = Batches(_config())
    job.batch(0, _frame((0, watch("op", "k", timeout_ms=1_000), 0)))
    found = [at_ms for at_ms in range(500, 3_001, 500) if job.batch(at_ms)]
    assert found == [1_000]
    assert job.outcomes() == [("op", "expired", 1_000)]


def test_p5_a_backlog_waits_for_every_partition() -> None:
    """P5: an operation expires only as far as all partitions were read: a completion in another one counts."""
    job = Batches(_config())
    job.batch(100_000, _frame((0, watch("op", "k"), 0), (50_000, done("x"), 0), (10, done("x"), 1)), ticks=())
    assert job.outcomes() == []
    job.batch(100_001, frame_of([ProducedRecord(T0 + 900, encode_operation(done("k")), 1, 1)]), ticks=())
    job.batch(200_000, ticks=(0, 1))
    assert job.outcomes() == [("op", "completed", 900)]


def test_ticks_among_operations_are_passed_over() -> None:
    """A tick is no operation and no reject; one of a known run says for how many partitions all wait."""
    job = Batches(_config())
    job._packer = job._packer._replace(runs=("known",), partitions_max=3)
    tick = encode_tick(Tick("known", 1, 2, 200))
    rows = job.batch(0, _frame((0, watch("op", "k", timeout_ms=1_000), 0), (1, tick, 0)))
    assert rows == []
    assert job.batch(5_000) == []
    job.batch(5_000, ticks=(1,))
    assert job.outcomes() == [("op", "expired", 1_000)]


def test_p3_a_replayed_batch_writes_the_same_rows() -> None:
    """P3: a batch whose commit was lost is done again, to the byte."""
    job = Batches(_config())
    job.batch(0, _frame((0, watch("op", "k"), 0), (0, b"garbage", 0)))
    before = job.state
    first = job.batch(5_000)
    job.state = before
    assert job.batch(5_000) == first


def test_refusals_are_told_by_one_shard() -> None:
    """P6: a duplicate goes to the rejects topic with its value, its place and its cause."""
    job = Batches(_config())
    job.batch(0, _frame((0, watch("op", "k"), 0), (1, watch("op", "other"), 0)))
    job.batch(10)
    job.batch(20)
    (reject,) = [msgspec.json.decode(row["value"], type=Reject) for row in job.rows if row["topic"] == "rejects"]
    assert (reject.topic, reject.offset, reject.cause) == ("delayed-operations", 1, "duplicate_operation")


def test_a_newer_state_row_of_operations_is_refused() -> None:
    """F6: the state of a newer release is refused by name."""
    job = Batches(_config())
    job.state = NEW_STATE._replace(version=STATE_VERSION + 1)
    with pytest.raises(StateVersionError, match=f"version {STATE_VERSION + 1}"):
        job.batch(0)


@pytest.mark.spark
@pytest.mark.kafka
def test_operations_on_a_real_broker(kafka_broker: EmbeddedKafka, topics: Callable[[str], str], tmp_path: Path) -> None:
    """Watches, completions and high watermarks in several partitions, a backlog and live: one outcome each."""
    names = [topics(name) for name in ("requests", "outcomes", "rejects")]
    ensure_topics(kafka_broker.bootstrap, operations_topics(*names, partitions=3))

    def send(*events: OperationEvent | bytes) -> None:
        sender = Sender(kafka_broker.bootstrap, names[0], linger_ms=0)
        for number, event in enumerate(events):
            value = encode_operation(event) if isinstance(event, OperationEvent) else event
            sender.send(f"key-{number}".encode(), value)
        sender.close()
        assert (sender.unknown, sum(sender.errors.values())) == (0, 0)

    def outcomes() -> dict[str, LogRecord]:
        records = list(read_topic(kafka_broker.bootstrap, names[1]))
        found = {(record.key or b"").decode(): record for record in records}
        assert len(found) == len(records)
        return found

    send(watch("dies", "never", timeout_ms=1_000), b"garbage", produce("write", {"t-0": 5}, timeout_ms=600_000))
    flags = [
        f"operations.topics.requests={names[0]}",
        f"operations.topics.outcomes={names[1]}",
        f"kafka.topics.rejects={names[2]}",
        "engine.shards=2",
        "engine.trigger_interval=500ms",
        "spark.master=local[2]",
        "spark.driver_memory=1GiB",
    ]
    command = [sys.executable, "-m", "heartwheel", "operations", "--bootstrap-servers", kafka_broker.bootstrap]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), *(word for flag in flags for word in ("--set", flag))]
    log = tmp_path / "job.log"
    with log.open("wb") as output:
        job = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        wait_for(lambda: "dies" in outcomes() or job.poll() is not None, f"the expiry; {log}")
        assert job.poll() is None, log.read_text()
        send(mark("t-0", 5), watch("order", "paid", timeout_ms=600_000))
        send(done("paid"))
        wait_for(lambda: len(outcomes()) == 3, "the completions")
        job.send_signal(signal.SIGTERM)
        assert job.wait(PATIENCE_S) == 0
    finally:
        job.kill()
        job.wait(PATIENCE_S)
    rows = {key: msgspec.json.decode(record.value or b"", type=OutcomeRow) for key, record in outcomes().items()}
    assert {key: (row.outcome, row.completed_by, row.lacking) for key, row in rows.items()} == {
        "dies": ("expired", None, ("never",)),
        "write": ("completed", "t-0", ()),
        "order": ("completed", "paid", ()),
    }
    headers = {name: value.decode() for name, value in outcomes()["dies"].headers}
    assert headers["ce_id"] == rows["dies"].id
    assert headers["ce_type"] == "heartwheel.operation.expired.v1"
    (reject,) = [msgspec.json.decode(record.value or b"") for record in read_topic(kafka_broker.bootstrap, names[2])]
    assert reject["cause"] == "not_json"
