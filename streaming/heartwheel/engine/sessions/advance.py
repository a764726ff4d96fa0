"""One batch of one shard of keys: state and packs in, rows and new state out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import pandas as pd

from heartwheel.base.errors import HeartwheelError
from heartwheel.engine.runtime.state.schema import STATE_VERSION, StateRow
from heartwheel.engine.runtime.state.state_function import require_known_version, split
from heartwheel.engine.sessions.clock import NO_TIME
from heartwheel.engine.sessions.config import FIGURES, SessionsConfig
from heartwheel.engine.sessions.packer import decode_pack, decode_readings, encode_rows
from heartwheel.engine.sessions.shard import SessionsShard

OUTPUT: Final = ", ".join(
    ["rows binary", *(f"{name} long" for name in FIGURES), "shards long", "now_ms long", "behind_ms long"]
)
"""What a shard writes in a batch: its rows as an Arrow stream, and figures for Spark's progress."""


class SessionsChangedError(HeartwheelError):
    """A checkpoint was begun by a query with other keys, other columns or another number of shards."""


class SessionsOutput(NamedTuple):
    """What one batch of a shard writes.

    Args:
        rows: an Arrow stream; `None` for none.
        figures: by the names of `FIGURES`.
        now_ms: the clock, epoch ms; `None` before the first time.
        behind_ms: how far it is behind the batch's timestamp.
    """

    rows: bytes | None
    figures: dict[str, int]
    now_ms: int | None
    behind_ms: int | None


def advance_sessions(
    config: SessionsConfig,
    shard_index: int,
    before: StateRow,
    frames: Iterable[pd.DataFrame],
    *,
    batch_ms: int,
    batch: int | None = None,  # noqa: ARG001 - the contract's
) -> tuple[StateRow, SessionsOutput]:
    """Advance one shard by one batch.

    The state row is the heartbeat job's: `members` counts the keys with a session, `groups` all that are remembered.

    Args:
        config: the query's.
        shard_index: which shard.
        before: the state row.
        frames: packs and readings.
        batch_ms: the batch's timestamp in Spark's offset log, the same on every replay, epoch ms.
        batch: its number, if Spark says it.

    Raises:
        SessionsChangedError: the checkpoint is of a query with other keys, columns or shards.
        StateVersionError: another release wrote the state row.
        StateBlobError: the state's blob cannot be read.
    """
    require_known_version(before, shard_index)
    payloads, _, readings, _ = split(frames)
    shard = SessionsShard(config, before.blob)
    _require_same(config, shard)
    # A shuffle brings packs in any order, and a repeated batch must find them in the same.
    packs = [decode_pack(payload) for payload in sorted(payloads)]
    found = [reading for each in readings for reading in decode_readings(each)]
    result = shard.apply(packs, found, batch_ms)
    counts = dict(result.figures)
    if shard_index == 0:  # every shard has the same readings
        for name in ("events", "untimed", "unkeyed", "untimeouted"):
            counts[name] = sum(getattr(reading, name) for reading in found)
    known = shard.now_ms != NO_TIME
    output = SessionsOutput(
        None if result.rows is None else encode_rows(result.rows),
        counts,
        shard.now_ms if known else None,
        max(0, batch_ms - shard.now_ms) if known else None,
    )
    last_ms = max(before.last_trigger_ms, batch_ms)
    row = StateRow(STATE_VERSION, last_ms, shard.now_ms, counts["alive"], len(shard), shard.encode())
    return row, output


def frame_of_sessions(output: SessionsOutput) -> pd.DataFrame:
    """Make the frame of `OUTPUT` that a state function gives."""
    figures: dict[str, Any] = {name: [output.figures.get(name, 0)] for name in FIGURES}
    times = {"now_ms": [output.now_ms], "behind_ms": [output.behind_ms]}
    return pd.DataFrame({"rows": [output.rows], **figures, "shards": [1], **times})


def _require_same(config: SessionsConfig, shard: SessionsShard) -> None:
    shards, shape = shard.begun_as
    if shards != config.shards:
        raise SessionsChangedError(
            f"the checkpoint was begun with {shards} shards, and sessions(shards={config.shards}) was called",
            hint=f"set shards={shards}, or start on a new checkpoint; left out it is Spark's shuffle partitions",
        )
    if shape != config.shape:
        raise SessionsChangedError(
            f"the checkpoint was begun with ({shape}), and this query has ({config.shape})",
            hint="keep the columns of key, time, timeout, ends and carry, or start on a new checkpoint",
        )
