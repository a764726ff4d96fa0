"""The function that Spark calls for every shard in every batch: state and packs in, records and new state out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.runtime.driver.running_batch import running_batch
from heartwheel.engine.runtime.map.packed import PayloadKind
from heartwheel.engine.runtime.plugin import Advance, OutputT, ShardedT
from heartwheel.engine.runtime.state.schema import NEW_STATE, STATE_VERSION, StateRow
from heartwheel.wire.rejects import Reject

StateFunction = Callable[[tuple[Any, ...], Iterable[pd.DataFrame], Any], Iterator[Any]]


class StateVersionError(HeartwheelError):
    """Another release wrote the state row, and this one cannot carry it on."""


def state_function(
    config: ShardedT,
    advance_one: Advance[ShardedT, OutputT],
    shape: Callable[[OutputT], Any],
    batch_number: Callable[[], int | None] = running_batch,
    *,
    every_batch: bool = False,
) -> StateFunction:
    """Return the function for `applyInPandasWithState`.

    Args:
        advance_one: advances one shard of the job by one batch.
        shape: makes of what a shard writes what the function gives.
        batch_number: tells the number of the batch that runs, as Spark does.
        every_batch: whether a shard is called in batches without rows, too; needs `ProcessingTimeTimeout`.
    """
    shard_of_slot = {slot: shard for shard, slot in enumerate(config.slots)}

    def advance(key: tuple[Any, ...], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        # -1: a checkpoint of a query with other shards calls one that this query has not; `advance_one` refuses it.
        shard_index = shard_of_slot.get(int(key[0]), -1)
        batch_ms = int(state.getCurrentProcessingTimeMs())
        before = StateRow(*state.get) if state.exists else NEW_STATE
        row, output = advance_one(config, shard_index, before, frames, batch_ms=batch_ms, batch=batch_number())
        state.update(row)
        if every_batch:
            state.setTimeoutDuration(1)
        yield shape(output)

    return advance


def require_known_version(row: StateRow, shard_index: int) -> None:
    """Refuse a state row that another release wrote.

    Raises:
        StateVersionError: this release knows no such version.
    """
    if row.version < STATE_VERSION:
        raise StateVersionError(
            f"the state of shard {shard_index} has version {row.version}, whose time came from the driver's clock; "
            f"this release reads version {STATE_VERSION}"
        )
    if row.version > STATE_VERSION:
        raise StateVersionError(
            f"the state of shard {shard_index} has version {row.version}, this release reads up to {STATE_VERSION}"
        )


class Arrived(NamedTuple):
    """What came for a shard in a batch.

    Args:
        payloads: of records.
        relayed: records of feeds.
    """

    payloads: list[bytes]
    rejects: list[Reject]
    readings: list[bytes]
    relayed: list[bytes]


def split(frames: Iterable[pd.DataFrame]) -> Arrived:
    """Sort what came for a shard by what it is."""
    arrived = Arrived([], [], [], [])
    for frame in frames:
        for kind, payload in zip(frame["kind"], frame["payload"], strict=True):
            if kind == PayloadKind.RECORDS:
                arrived.payloads.append(payload)
            elif kind == PayloadKind.REJECTS:
                arrived.rejects.extend(msgspec.json.decode(payload, type=list[Reject]))
            elif kind == PayloadKind.RELAYED:
                arrived.relayed.append(payload)
            else:
                arrived.readings.append(payload)
    return arrived
