"""Delayed operations as a stream: each is completed before its deadline, or reported. No Spark, no Kafka, no clock."""

from heartwheel.engine.operations.limits import OperationLimits
from heartwheel.engine.operations.log import PackedRecord, Packet
from heartwheel.engine.operations.shard import OperationShard, Refused, Result
from heartwheel.wire.operations import (
    Needs,
    OperationEvent,
    OperationEventType,
    decode_operation,
    encode_operation,
)
from heartwheel.wire.outcomes import Ended, Ending, OutcomeRow, outcome_id, outcome_row

__all__ = [
    "Ended",
    "Ending",
    "Needs",
    "OperationEvent",
    "OperationEventType",
    "OperationLimits",
    "OperationShard",
    "OutcomeRow",
    "PackedRecord",
    "Packet",
    "Refused",
    "Result",
    "decode_operation",
    "encode_operation",
    "outcome_id",
    "outcome_row",
]
