"""What `sessions` says, as a loop over events: written from the page docs/sessions.md, for tests to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """An event of a key.

    Args:
        key: whose.
        ends: the reason, if it ends the session.
        carry: the value that is carried.
        timeout_ms: of the session from then on.
        partition: of the source.
    """

    time_ms: int
    key: str
    ends: str | None = None
    carry: int = 0
    timeout_ms: int = 1_000
    partition: int = 0


@dataclass
class _Key:
    """What is known of a key; `over` says how its last session ended, `None` while it runs."""

    first: int
    last: int
    deadline: int
    timeout: int
    times: int = 1
    carry: int = 0
    over: str | None = None


@dataclass
class Oracle:
    """Sessions of keys.

    Args:
        forget_ms: how long after its end a key is remembered.
        outage_ms: from what length on a silence of all keys renews sessions.
    """

    forget_ms: int = 10**12
    outage_ms: int | None = None
    keys: dict[str, _Key] = field(default_factory=dict)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    renewed_ms: int = -1

    def apply(self, events: Sequence[Seen], now_ms: int) -> None:
        """Apply events up to a time in the order of theirs, and end what is due by then."""
        last_ms: int | None = None
        for event in sorted(events, key=lambda each: (each.time_ms, each.ends is not None)):
            silent = last_ms is not None and self.outage_ms is not None and event.time_ms - last_ms >= self.outage_ms
            if silent and last_ms is not None:
                self._end_until(last_ms)
                self._renew(event.time_ms)
            last_ms = event.time_ms
            self._end_until(event.time_ms, of=event.key)
            self._see(event)
        self._end_until(now_ms)

    def _renew(self, until_ms: int) -> None:
        self.renewed_ms = until_ms
        for key in self.keys.values():
            if key.over is None:
                key.deadline = max(key.deadline, until_ms + key.timeout)

    def _end_until(self, now_ms: int, of: str | None = None) -> None:
        for name, key in list(self.keys.items()):
            if of in (None, name) and key.over is None and key.deadline <= now_ms:
                key.over = "timeout"
                self._row("gone", key.deadline, name, key, key.last, "timeout", key.carry)
            if of in (None, name) and key.over is not None and key.deadline + self.forget_ms <= now_ms:
                del self.keys[name]

    def _see(self, event: Seen) -> None:
        key = self.keys.get(event.key)
        deadline = max(event.time_ms, self.renewed_ms) + event.timeout_ms
        if key is None:
            if event.ends is None:
                key = _Key(event.time_ms, event.time_ms, deadline, event.timeout_ms, carry=event.carry)
                self.keys[event.key] = key
                self._row("came", event.time_ms, event.key, key, None, None, event.carry)
        elif event.time_ms < key.last or (event.time_ms == key.last and key.over is not None):
            return
        elif event.ends is not None:
            if key.over is None:
                before, key.last = key.last, event.time_ms
                self._row("gone", event.time_ms, event.key, key, before, event.ends, key.carry)
                key.over, key.deadline = "ended", event.time_ms
        elif key.over is not None:
            reason = "late" if key.over == "timeout" and event.time_ms < key.deadline else None
            before = key.last
            key.first, key.last, key.deadline, key.over = event.time_ms, event.time_ms, deadline, None
            key.times, key.timeout, key.carry = key.times + 1, event.timeout_ms, event.carry
            self._row("back", event.time_ms, event.key, key, before, reason, event.carry)
        else:
            key.last, key.deadline, key.timeout, key.carry = event.time_ms, deadline, event.timeout_ms, event.carry

    def _row(self, *of: Any) -> None:
        event, at, name, key, last, reason, carry = of
        self.rows.append((name, event, at, key.first, last, key.deadline, key.times, reason, carry))
