"""Parts of libraries that are not public, and that we override or read: each is there, and takes what it is given.

The ranges in pyproject.toml are wide, so that others can install heartwheel beside their own programs. With a release
that has renamed one of these parts, our override would never be called, and the bound that it keeps would be gone
without an error. The tests of what each override does are named in its module.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import uvicorn
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import Fetcher
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaTCPTransport
from kafka.producer.sender import Sender
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.legacy_records import LegacyRecordBatch
from kafka.record.memory_records import MemoryRecords
from pyspark import SparkContext
from uvicorn.protocols.http.h11_impl import H11Protocol

from heartwheel.kafka import bounded
from heartwheel.kafka.tls_login import FirmManager
from heartwheel.readers.http_server import server
from heartwheel.readers.http_server.protocol import LimitedProtocol
from kafka import KafkaConsumer, KafkaProducer

OVERRIDES: dict[type, dict[str, tuple[str, ...]]] = {
    bounded._Fetcher: {
        "fetched_records": ("max_records", "update_offsets"),
        "beginning_or_end_offset": ("partitions", "timestamp", "timeout_ms"),
        "_append": ("drained", "part", "max_records", "update_offsets"),
    },
    bounded._PartitionRecords: {
        "take": ("n",),
        "_unpack_records": ("tp", "records", "key_deserializer", "value_deserializer"),
    },
    bounded._Batch: {"__iter__": ()},
    bounded._OldBatch: {"_decompress": ("key_offset",)},
    FirmManager: {
        "get_connection": (
            "node_id",
            "timeout_ms",
            "pop_on_close",
            "refresh_metadata_on_err",
            "reset_backoff_on_connect",
        ),
        "_build_transport": ("node", "timeout_at"),
    },
    server._Server: {"startup": ("sockets",)},
    LimitedProtocol: {
        "connection_made": ("transport",),
        "connection_lost": ("exc",),
        "data_received": ("data",),
        "on_response_complete": (),
        "shutdown": (),
        "resume_writing": (),
        "send_400_response": ("msg",),
    },
}
"""By our subclass what it overrides, with the parameters of the library's method."""

READ: dict[type, tuple[str, ...]] = {
    KafkaConsumer: ("_client", "_subscription", "_fetcher", "config"),
    KafkaProducer: ("_sender", "_metadata"),
    ClusterMetadata: ("available_partitions_for_topic",),
    Sender: ("force_close",),
    Fetcher: ("_next_partition_records", "PartitionRecords"),
    Fetcher.PartitionRecords: ("record_iterator", "bytes_read"),
    MemoryRecords: ("next_batch",),
    DefaultRecordBatch: ("_buffer", "_pos", "magic"),
    LegacyRecordBatch: ("_buffer", "_read_key_value", "magic"),
    KafkaConnectionManager: ("bootstrapped", "closed", "cluster", "_bootstrap_wakeup"),
    KafkaTCPTransport: ("_sock_recv",),
    uvicorn.Server: ("lifespan", "servers", "started", "should_exit", "server_state"),
    H11Protocol: ("app", "conn", "cycle", "flow", "transport", "logger"),
    SparkContext: ("_gateway", "_jvm", "_jsc", "_accumulatorServer"),
}
"""By class of a library what we read or set of its objects."""


@pytest.mark.parametrize("ours", OVERRIDES, ids=lambda ours: ours.__qualname__)
def test_what_we_override_is_there(ours: type) -> None:
    """The library has each method that we override, with the parameters that ours passes on."""
    (theirs,) = ours.__bases__
    wanted = OVERRIDES[ours]
    own = {name for name, value in vars(ours).items() if inspect.isfunction(value) and hasattr(theirs, name)}
    assert own - {"__init__"} == set(wanted)
    assert {name: tuple(inspect.signature(getattr(theirs, name)).parameters)[1:] for name in wanted} == wanted


@pytest.mark.parametrize("theirs", READ, ids=lambda theirs: theirs.__qualname__)
def test_what_we_read_is_there(theirs: type) -> None:
    """The library's class has each attribute: of the class, or set by it or by a class above it."""
    text = "".join(inspect.getsource(each) for each in _python_classes(theirs))
    assert [name for name in READ[theirs] if not hasattr(theirs, name) and f"self.{name}" not in text] == []


def _python_classes(theirs: type) -> list[Any]:
    return [each for each in theirs.__mro__ if each.__module__.partition(".")[0] in {"kafka", "uvicorn", "pyspark"}]
