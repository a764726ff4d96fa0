"""What must hold of any records on the topic of delayed operations: nothing raises, nothing is lost, each ends once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from fuzz.oracle import FIRST_OFFSET, PARTITION, T0, advance_twice, check_output, record_batch
from heartwheel.engine.operations import OperationEvent, OperationEventType, OperationLimits, Packet, decode_operation
from heartwheel.engine.operations_job.advance import OperationsConfig, advance_operations
from heartwheel.engine.operations_job.packer import OperationPacker, decode_packet
from heartwheel.engine.runtime.map.packed import PackedRow, PayloadKind
from heartwheel.engine.runtime.state.schema import NEW_STATE, StateRow
from heartwheel.wire.events import RejectedError
from heartwheel.wire.rejects import Reject

LIMITS = OperationLimits(operations_max=3, watermarks_max=2, waiting_max=4)
"""Small, so that a few records reach them."""

CONFIG = OperationsConfig(
    checkpoint="unused",
    kafka_options={},
    source="operations",
    topics={"operations": "operations"},
    slots=(0, 1),
    limits=LIMITS,
)


def check_operations(records: Sequence[tuple[bytes | None, bytes | None]]) -> None:
    """Run (key, value) records through decode, pack and both shards, and check everything that comes out."""
    rows = _pack(records)
    accepted: dict[int, OperationEvent] = {}
    refused: set[int] = set()
    for _, rejected, payload in rows:
        if rejected:
            refused |= {each.offset for each in msgspec.json.decode(payload, type=list[Reject])}
        else:
            accepted |= {each.offset: decode_operation(each.value) for each in decode_packet(payload).records}
    assert accepted.keys() | refused == set(range(FIRST_OFFSET, FIRST_OFFSET + len(records)))
    assert not accepted.keys() & refused
    written = [row for shard in range(CONFIG.shards) for row in _output_of(shard, rows, batch_ms=T0 + len(records))]
    rejects = [row["offset"] for topic, row in written if topic == "rejects"]
    assert len(rejects) == len(set(rejects))
    assert refused <= set(rejects)
    watches = {offset for offset, event in accepted.items() if event.type is OperationEventType.WATCH}
    ids = [row["id"] for topic, row in written if topic == "outcomes"]
    assert len(ids) == len(set(ids)) == len(watches.difference(rejects))


def is_operation(value: bytes | None) -> bool:
    """Tell whether a value says something about delayed operations."""
    try:
        decode_operation(value)
    except RejectedError:
        return False
    return True


def _pack(records: Sequence[tuple[bytes | None, bytes | None]]) -> list[PackedRow]:
    packer = OperationPacker("operations", CONFIG.shards, CONFIG.value_bytes_max, LIMITS.timeout_ms_max)
    return list(packer.pack(record_batch(records))) if records else []


def _output_of(shard: int, rows: list[PackedRow], *, batch_ms: int) -> list[tuple[str, dict[str, Any]]]:
    """Give what a shard tells from the batch until every operation is over, and that it does so again alike."""
    mine = [row[1:] for row in rows if row[0] == shard]
    state: StateRow = NEW_STATE
    written = []
    # A record counts once a later one has been read.
    for packed, at_ms in ((mine, batch_ms), ([], batch_ms + 1), ([], T0 + 2**33), ([], T0 + 2**34)):
        progress = (PayloadKind.RECORDS, msgspec.msgpack.encode(Packet(PARTITION, 2**40, at_ms)))
        rows_in = [*packed, progress]
        state, output = advance_twice(advance_operations, CONFIG, shard, state, rows_in, batch_ms=at_ms)
        written += check_output(output)
    return written
