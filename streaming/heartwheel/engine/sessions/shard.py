"""A shard: its keys, their sessions on one timing wheel, and the events that wait for its clock.

An event is applied once the clock has reached it, so that nothing unread of another partition can come before it. What
a shard decides is thus the same however the source was cut into batches (`tests/sessions/test_cuts.py`), but for events
that are older than the clock when they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from heartwheel.engine.sessions import clock as clocks
from heartwheel.engine.sessions.codec import SessionState, decode_sessions, encode_sessions, new_state
from heartwheel.engine.sessions.columns import OF_TABLE, Events, in_order
from heartwheel.engine.sessions.config import SessionsConfig
from heartwheel.engine.sessions.fast_path import continued
from heartwheel.engine.sessions.packer import UNTIMED_MS, EventPack, SourceReading, joined, row_hashes, uniques
from heartwheel.engine.sessions.rows import OutputRows, carried
from heartwheel.engine.sessions.table import UNKNOWN, Ints, KeyStatus, fitting
from heartwheel.engine.sessions.transitions import Transitions, timed_out, transitions


class SessionsResult(NamedTuple):
    """What one batch of a shard gives.

    Args:
        rows: of the output, in the order of their time; `None` for none.
        figures: by the names of `config.FIGURES`.
    """

    rows: pa.RecordBatch | None
    figures: dict[str, int]


class SessionsShard:
    """One shard.

    Args:
        config: the query's.
        blob: its state, as `encode` gave it; empty for a new one.

    Raises:
        StateBlobError: the blob cannot be decoded.
    """

    def __init__(self, config: SessionsConfig, blob: str = "") -> None:
        self._config = config
        self._state: SessionState = decode_sessions(blob) if blob else new_state(config.shards, config.shape)
        self._table = self._state.table
        self._wheel = self._state.wheel
        self._counts: dict[str, int] = {}
        # What Spark keeps of the state is its text, so that is what is bounded.
        self._room = config.bytes_max - self._state.encoded_bytes
        self._rows = OutputRows(config, self._table)

    @property
    def begun_as(self) -> tuple[int, str]:
        """How many shards, and which columns, the query had that began the checkpoint."""
        return self._state.shards, self._state.shape

    @property
    def now_ms(self) -> int:
        """The clock, epoch ms; `clock.NO_TIME` before the first time."""
        return self._state.clock.now_ms

    @property
    def alive(self) -> int:
        """How many keys have a session."""
        return int(np.count_nonzero(self._table["status"] == KeyStatus.ALIVE))

    def __len__(self) -> int:
        """Return the number of keys that are remembered."""
        return len(self._table)

    def encode(self) -> str:
        """Encode the state as ASCII text."""
        return encode_sessions(self._state)

    def apply(self, packs: Sequence[EventPack], readings: Sequence[SourceReading], batch_ms: int) -> SessionsResult:
        """Advance by one batch.

        Args:
            packs: the events of this shard, in an order that is the same on every replay.
            readings: what was read of each partition, for all shards.
            batch_ms: the batch's timestamp, the same on every replay, epoch ms.
        """
        self._counts = {}
        clock = self._state.clock
        before_ms = clock.now_ms
        advanced = clocks.advance(clock, readings, batch_ms, self._config)
        self._shift(advanced.shift_ms)
        ready = self._ready(packs, before_ms)
        for silent_ms, until_ms in advanced.outages:
            early, ready = (None, None) if ready is None else ready.split(ready.time_ms <= silent_ms)
            self._until(early, silent_ms)
            self._renew(until_ms)
        self._until(ready, clock.now_ms)
        self._compact()
        return SessionsResult(self._rows.taken(), self._figures())

    def _shift(self, shift_ms: int) -> None:
        """Move all deadlines by a time in which the query did not run."""
        alive = np.flatnonzero(self._table["status"] == KeyStatus.ALIVE)
        if shift_ms and len(alive):
            self._table["due_ms"][alive] += shift_ms
            self._wheel.file(alive, self._table["due_ms"][alive])

    def _renew(self, until_ms: int) -> None:
        """Begin all sessions again at the end of an outage."""
        self._state.clock.renewed_ms = until_ms
        alive = np.flatnonzero(self._table["status"] == KeyStatus.ALIVE)
        due = np.maximum(self._table["due_ms"][alive], until_ms + self._table["timeout_ms"][alive])
        self._table["due_ms"][alive] = due
        self._wheel.file(alive, due)

    def _ready(self, packs: Sequence[EventPack], before_ms: int) -> EventPack | None:
        """Return the events that the clock has reached; the others wait."""
        waiting = self._state.waiting
        state, now_ms = self._state, self._state.clock.now_ms
        state.waiting = None
        every = [*([waiting] if waiting is not None else []), *packs]
        if not every:
            return None
        pack = joined(every)
        timed = pack.time_ms != UNTIMED_MS
        if now_ms == clocks.NO_TIME:
            # An event without a time counts as seen now, which is not known yet.
            self._count("refused", int(np.count_nonzero(~timed)))
            state.waiting, _ = pack.split(timed)
            return None
        self._count("late", int(np.count_nonzero(timed & (pack.time_ms <= before_ms))))
        pack = pack._replace(time_ms=np.where(timed, pack.time_ms, now_ms))
        limit_ms = now_ms
        if len(pack.time_ms) > self._config.waiting_max:
            nth = np.partition(pack.time_ms, -self._config.waiting_max - 1)[-self._config.waiting_max - 1]
            limit_ms = max(now_ms, int(nth))
        elif pack.rows.nbytes > self._config.bytes_max:
            limit_ms = max(now_ms, int(pack.time_ms.max()))
        ready = pack.time_ms <= limit_ms
        self._count("released", int(np.count_nonzero(ready & (pack.time_ms > now_ms))))
        found, state.waiting = pack.split(ready)
        return found

    def _until(self, pack: EventPack | None, now_ms: int) -> None:
        """Apply events, then let everything that is due by a time end."""
        if pack is not None:
            self._apply(pack)
        if now_ms >= 0 and now_ms >= self._wheel.clock_ms:
            self._fire(self._wheel.advance(now_ms))

    def _apply(self, pack: EventPack) -> None:
        events, renewed_ms = self._events(pack), self._state.clock.renewed_ms
        keys = events.key
        hashes, table = row_hashes(pack.rows).to_numpy(), self._table
        if not self._config.event_time:
            # They came at some time since the last batch, so the keys were alive up to this one: without that, a batch
            # that is late, or the first one after a stop, would end sessions of living keys.
            known = keys[table["status"][keys] == KeyStatus.ALIVE]
            table["due_ms"][known] = np.maximum(table["due_ms"][known], self._state.clock.now_ms + 1)
        if self._config.timeout_ms is not None and len(events.key):
            with_carry = self._config.carry > 0
            goes_on, events = continued(events, table, hashes, renewed_ms=renewed_ms, with_carry=with_carry)
            self._change(goes_on, pack.rows)
        events = events.select(in_order(events, hashes))
        changes = transitions(events, table, renewed_ms=renewed_ms, forget_ms=self._config.forget_ms)
        if changes is not None:
            self._rows.add(changes.rows, pack.rows)
            self._change(changes, pack.rows)
        if (unused := np.unique(keys[table["times"][keys] == 0])).size:
            table.remove(unused)  # keys that have nothing but ends

    def _change(self, changes: Transitions, rows: pa.RecordBatch) -> None:
        keys, table = changes.keys, self._table
        table["status"][keys] = changes.status
        table["first_ms"][keys] = changes.first_ms
        table["last_ms"][keys] = changes.last_ms
        table["due_ms"][keys] = changes.due_ms
        table["timeout_ms"][keys] = changes.timeout_ms
        table["times"][keys] = changes.times
        if self._config.carry:
            new = changes.carry != OF_TABLE
            values = carried(self._config, rows).take(pa.array(changes.carry[new]))
            fit, grown = table.write_carry(keys[new], values, self._room)
            self._room -= grown
            self._count("uncarried", len(values) - fit)
        # A key without a session has a timer, too: then it is forgotten.
        forget = np.where(changes.status == KeyStatus.ALIVE, 0, self._config.forget_ms)
        self._wheel.file(keys, changes.due_ms + forget)

    def _fire(self, keys: Ints) -> None:
        """End the sessions that are due, and forget the keys whose time has come."""
        if not len(keys):
            return
        table = self._table
        alive = table["status"][keys] == KeyStatus.ALIVE
        ends, forgotten = keys[alive], keys[~alive]
        if len(ends):
            table["status"][ends] = KeyStatus.TIMED_OUT
            self._rows.add(timed_out(ends, table))
            self._wheel.file(ends, table["due_ms"][ends] + self._config.forget_ms)
        if len(forgotten):
            table.remove(forgotten)
        if len(ends):  # a key may be due to be forgotten by now as well
            self._fire(self._wheel.advance(self._wheel.clock_ms))

    # Events and keys

    def _events(self, pack: EventPack) -> Events:
        """Return the events of the keys that the table has or takes."""
        keys = self._rows_of(pack)
        schema = pack.rows.schema
        key = keys[pack.owner]
        timeouts: Any = self._config.timeout_ms
        if timeouts is None:
            timeouts = pack.rows.column("timeout").to_numpy()[pack.owner]
        ends = np.zeros(len(key), np.bool_)
        if "reason" in schema.names:
            ends = pack.rows.column("reason").is_valid().to_numpy(zero_copy_only=False)[pack.owner]
        row = pack.owner.astype(np.int64)
        events = Events(key, pack.time_ms, row, ends, np.broadcast_to(np.asarray(timeouts, np.int64), len(key)))
        return events.select(key != UNKNOWN) if (key == UNKNOWN).any() else events

    def _rows_of(self, pack: EventPack) -> Ints:
        """Return the table's row of each distinct row's key; new keys are added as far as there is room."""
        distinct, codes, first = uniques(pack.rows.column("key"))
        rows = self._table.find(distinct)
        keys = pack.rows.select([f"k{number}" for number in range(self._config.keys)])
        new = np.flatnonzero(rows == UNKNOWN)[: max(0, self._config.keys_max - len(self._table))]
        if len(new):
            added = pack.rows.take(pa.array(first[new]))
            fit, grown = fitting(added, self._room)
            self._room -= grown
            new, added = new[:fit], added.slice(0, fit)
        if len(new):
            carry = carried(self._config, added) if self._config.carry else None
            rows[new] = self._table.add(distinct[new], added.select(keys.schema.names), carry)
        found = rows[codes]
        known = np.flatnonzero(found != UNKNOWN)
        # Another key may have the same hash: it is refused, as there is one row for both.
        if len(known):
            same = self._table.same_key(found[known], keys if len(known) == len(found) else keys.take(pa.array(known)))
            found[known[~same]] = UNKNOWN
        if (refused := found == UNKNOWN).any():
            self._count("refused", int(np.count_nonzero(refused[pack.owner])))
        return found

    def _compact(self) -> None:
        """Renumber the table if much of it is free."""
        if not self._table.columns.wasteful():
            return
        used = self._table.columns.used().astype(np.int64)
        deadlines = self._wheel.deadlines()[used].copy()
        self._table.keep(used)
        self._wheel = self._state.rewound(len(used), deadlines)

    # Figures

    def _count(self, name: str, number: int) -> None:
        self._counts[name] = self._counts.get(name, 0) + number

    def _figures(self) -> dict[str, int]:
        waiting = self._state.waiting
        alive = self.alive
        return {
            **self._counts,
            "alive": alive,
            "closed": len(self._table) - alive,
            "waiting": 0 if waiting is None else len(waiting.owner),
        }
