"""The broker's own log: what the coordinator wrote there, unless a client may have written it.

Kafka logs the texts of its clients unchanged, line breaks included. So a client may write lines of that log, about any
group. Three things reveal such a client: a line break in a request, a message that a client may have broken, and an
expiry that an accepted request contradicts. After any of them, nothing in that log is believed for a while.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from pathlib import Path
from typing import Final

from heartwheel.base.wall_clock import wall_ms
from heartwheel.sources.explain.broken_lines import quotes_a_stranger
from heartwheel.sources.explain.fact_reader import FactReader
from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.layouts import NEEDLE, Layout
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.log_tail import LogTail, TailedLine
from heartwheel.sources.explain.rotated_log import TailPosition
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.tap.request_log import AHEAD_MS_MAX, Answered
from heartwheel.sources.tap.requests import code_of, group_of
from heartwheel.wire.events import FROM_MEMBERS

DISTRUST_MS: Final = 600_000
"""How long the broker's own log is not believed after a text with a line break, ms."""

_WAITING_MAX: Final = 100_000
"""How many facts may wait for their time; beyond that no more is read."""

_ACCEPTED_MAX: Final = 50_000
"""How many members have their newest accepted request remembered."""

_NEEDLE: Final = NEEDLE.encode()
_CLASSIC_APIS: Final = frozenset({8, 11, 12, 14})


_EXPIRED_BEFORE_MS: Final = 2
"""How much earlier than its line an expiry is dated, ms.

An expiry may end a join phase, and a sync of the next generation may arrive within its millisecond. A request is dated
by the line of its answer less how long it took, both cut to milliseconds, so it may seem to come 1 ms before the
expiry. The rules would then remove the member without a verdict, and find no one to expire."""


def dated_ms(fact: Fact) -> int:
    """Return when a fact counts, epoch ms: an expiry before every request that its effect has let through."""
    return fact.time_ms - _EXPIRED_BEFORE_MS if fact.kind is FactKind.FAILED else fact.time_ms


class OwnLog:
    """The facts in the coordinator's own log, each held until its time has come.

    Args:
        tail: the log; nothing is read if absent.
        zone: the zone of times that name none.
        odd_ms: when a client was last seen that may write lines of the log, epoch ms; -1 if none was.

    Attributes:
        odd_ms: the same, kept up to date.
        distrusted: how many facts were left out because a client may have written them.
    """

    def __init__(
        self,
        tail: LogTail | None,
        name: Path | None,
        zone: LocalZone | None,
        odd_ms: int,
        report: Callable[[str], None],
    ) -> None:
        self._tail, self._name, self._report = tail, name, report
        self._reader = FactReader(str(name), 0, Layout(zone), Scanned())
        self._waiting: list[tuple[int, int, Fact]] = []
        self._accepted: dict[tuple[str, str], int] = {}
        self._number = 0
        self.odd_ms = odd_ms
        self.distrusted = 0

    @property
    def position(self) -> TailPosition | None:
        """Where to continue after a restart: at the first line that waits for its time."""
        if self._tail is None:
            return None
        position = self._tail.position
        return TailPosition(position.inode, min([position.offset, *(fact.line for _, _, fact in self._waiting)]))

    def read(self) -> None:
        """Read new lines, unless too many facts wait already."""
        if self._tail is None or len(self._waiting) >= _WAITING_MAX:
            return
        lines = self._tail.read()
        block = b"\n".join(line.text for line in lines)
        at = clients_until = 0
        for line in lines:
            self._number += 1
            begin, at = at, at + len(line.text) + 1
            if quotes_a_stranger(line.text):
                words = "a message quotes a client that has not logged in, which may have broken it"
                self.distrust(wall_ms(), f"{self._name}, byte {line.offset}: {words}")
            if _NEEDLE not in line.text:
                continue
            if begin < clients_until:
                self.distrusted += 1
            else:
                clients_until = at + self._take(line, block, at)

    def due(self, until_ms: int) -> list[Fact]:
        """Return the facts whose time has come, in the order of the log.

        Args:
            until_ms: up to when, epoch ms.
        """
        facts = []
        while self._waiting and self._waiting[0][0] <= until_ms:
            facts.append(heapq.heappop(self._waiting)[2])
        return facts

    def is_believed(self, fact: Fact, newest_ms: int) -> bool:
        """Return whether a fact is believed to be the coordinator's; count it if not.

        Args:
            newest_ms: when the newest request was logged, epoch ms.
        """
        key = (fact.group_id, fact.member_id)
        if fact.kind is FactKind.FAILED and self._accepted.get(key, -1) > fact.time_ms:
            words = (
                f"it says that {fact.member_id!r} of group {fact.group_id!r} failed, and later requests were accepted"
            )
            self.distrust(fact.time_ms, f"{self._name}, byte {fact.line}: {words}")
        if self.odd_ms < 0 or newest_ms - self.odd_ms > DISTRUST_MS:
            return True
        self.distrusted += 1
        return False

    def distrust(self, at_ms: int, why: str) -> None:
        """Stop believing this log for a while: loads, unloads, expiries, starts and ends of join phases.

        Without them a tap knows less, but nothing wrong: a load is found as a gap, and a member with an unknown session
        stays unknown.

        Args:
            at_ms: when a client was seen that may write lines of the log, epoch ms.
            why: where that was seen, and what.
        """
        at_ms = min(at_ms, wall_ms())
        if self._tail is not None and (self.odd_ms < 0 or at_ms - self.odd_ms > DISTRUST_MS):
            self._report(
                f"{why}; so a client may write lines of {self._name}: its loads, expiries and join phases are not "
                f"believed for {DISTRUST_MS // 60_000} min"
            )
        self.odd_ms = max(self.odd_ms, at_ms)

    def note_request(self, answered: Answered) -> None:
        """Note when a member last sent a request that was accepted: it had not failed before that."""
        member_id = answered.request.get("memberId")
        if self._tail is None or not member_id or answered.api not in _CLASSIC_APIS:
            return
        if code_of(answered) not in FROM_MEMBERS:
            return
        key = (group_of(answered), str(member_id))
        newest_ms = max(answered.arrived_ms, self._accepted.pop(key, -1))
        if len(self._accepted) >= _ACCEPTED_MAX:
            del self._accepted[next(iter(self._accepted))]
        self._accepted[key] = newest_ms

    def _take(self, line: TailedLine, block: bytes, at: int) -> int:
        """Read the facts of one line; return how many bytes after it belong to it, because a client has broken it."""
        facts = list(self._reader.facts(line.text, self._number))
        broken = self._reader.clients_text(self._number, block, at)
        if broken or self._reader.doubtful:
            at_ms = self._reader.last_ms
            words = "a message may have been broken by a client's text"
            self.distrust(wall_ms() if at_ms is None else at_ms, f"{self._name}, byte {line.offset}: {words}")
        if broken:
            self.distrusted += len(facts)
            return broken + 1
        for count, fact in enumerate(facts):
            fact.line = line.offset
            if fact.time_ms > wall_ms() + AHEAD_MS_MAX:
                self.distrusted += 1
            else:
                heapq.heappush(self._waiting, (dated_ms(fact), self._number * 1_000 + count, fact))
        return 0
