"""A consumer's own log, read for what it says of its place in its group."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from heartwheel.explain.client_texts import CONTEXT, NEEDLES, RDKAFKA, TEXT_CHARS_MAX, TEXTS, ClientSaid
from heartwheel.explain.explanation import advice_of, explain, leave_reason
from heartwheel.explain.layouts import Layout
from heartwheel.explain.local_zone import LocalZone
from heartwheel.wire.explained import Evidence, ExplainedEvent, Happened

EVENTS_MAX: Final = 200_000
"""Most events that are kept of one log."""

_CLIENTS_MAX: Final = 10_000
_SAME_MS: Final = 5_000
_LINE_BYTES_MAX: Final = 65_536
_LOGGER: Final = re.compile(r"\s*\((?:[\w$]+\.)+[\w$]+(?::\d+)?\)\s*$")
_KINDS: Final = {
    ClientSaid.POLL_TIMEOUT: (Happened.POLL_TIMEOUT, "poll_timeout"),
    ClientSaid.REMOVED: (Happened.REMOVED, "not_a_member"),
    ClientSaid.NO_ANSWER: (Happened.EXPIRED, "no_answer"),
}


class ClientLog:
    """Reads the log of one or several consumers.

    Args:
        name: of the file, for evidence.
        zone: that of times that name none.
    """

    def __init__(self, name: str, zone: LocalZone) -> None:
        self._name, self._zone = name, zone
        self._layouts: dict[str, Layout] = {}
        self._rest, self._lines = b"", 0
        self._last_ms: int | None = None
        self._zone_assumed = False
        self._clients: dict[tuple[str, str], _Client] = {}
        self.events: list[ExplainedEvent] = []
        self.matched = 0
        """Lines that say something of a group."""

    def feed(self, block: bytes) -> None:
        """Read the next bytes of the log; no bytes are its end."""
        whole, newline, rest = (self._rest + block).rpartition(b"\n")
        if not block:
            whole, newline, rest = self._rest, b"", b""
        self._rest = rest[-_LINE_BYTES_MAX:]
        whole += newline
        counted, number = 0, self._lines + 1
        end = -1
        for found in NEEDLES.finditer(whole):
            if found.start() < end:
                continue  # a second needle of the same line
            start = whole.rfind(b"\n", 0, found.start()) + 1
            end = whole.find(b"\n", found.start())
            end = len(whole) if end < 0 else end
            number += whole.count(b"\n", counted, start)
            counted = start
            self._read(
                whole[max(start, found.start() - TEXT_CHARS_MAX) : min(end, found.end() + TEXT_CHARS_MAX)], number
            )
        self._lines += whole.count(b"\n")

    def finished(self) -> Iterator[ExplainedEvent]:
        """Return what was read as events, in the order of time."""
        for event in sorted(self.events, key=lambda each: each.time_ms):
            event.explanation, event.advice = explain(event), advice_of(event)
            yield event

    def _read(self, line: bytes, number: int) -> None:
        text = line.decode("utf-8", "replace")
        context = CONTEXT.search(text)
        body = text[context.end() :] if context else text
        found = next(((match, said) for pattern, said in TEXTS if (match := pattern.search(body))), None)
        if found is None:
            return
        match, said = found
        time_ms = self._time(line, context[0] if context else match[0][:12])
        if time_ms is None:
            return
        self.matched += 1
        parts = match.groupdict()
        group = (context["group"] if context else parts.get("group")) or ""
        rdkafka = RDKAFKA.search(text)
        client_id = context["client"] if context else rdkafka["client"] if rdkafka else ""
        client = self._client(group, client_id)
        client.instance_id = (context["instance"] if context else None) or client.instance_id
        client.member_id = parts.get("member") or client.member_id
        self._take(client, said, parts, time_ms, number)

    def _take(self, client: _Client, said: ClientSaid, parts: dict[str, str | None], time_ms: int, number: int) -> None:
        words = _LOGGER.sub("", parts.get("words") or "").strip()
        last = client.last
        near = last is not None and time_ms - last.time_ms <= _SAME_MS
        if said is ClientSaid.LEFT:
            polled = leave_reason(words) == "poll_timeout"
            if near and last is not None and last.kind is Happened.POLL_TIMEOUT:
                last.member_id = client.member_id
                last.group_id = last.group_id or client.group_id
                return
            kind = (Happened.POLL_TIMEOUT, "poll_timeout") if polled else (Happened.LEFT, leave_reason(words))
            client.last = self._event(client, *kind, time_ms, number, words)
        elif said is ClientSaid.REBALANCING:
            client.rebalancing_ms = time_ms if client.rebalancing_ms is None else client.rebalancing_ms
        elif said is ClientSaid.JOINED:
            self._joined(client, parts, time_ms, number)
        elif said is ClientSaid.POLLED_LATE:
            if last is not None and last.kind is Happened.POLL_TIMEOUT and last.returned_ms is None:
                last.late_ms = int(parts.get("late") or 0)
                last.member_id = last.member_id or client.member_id
        elif not (near and last is not None and last.kind is _KINDS[said][0]):
            client.last = self._event(client, *_KINDS[said], time_ms, number, words)
            if parts.get("limit"):
                client.last.rebalance_timeout_ms = int(parts["limit"] or 0)

    def _joined(self, client: _Client, parts: dict[str, str | None], time_ms: int, number: int) -> None:
        generation = int(parts.get("number") or 0)
        if client.generation == generation and client.rebalancing_ms is None:
            return  # joined, then synced: two lines
        last = client.last
        if last is not None and last.returned_ms is None:
            last.returned_ms, last.returned_as = time_ms, client.member_id
        started_ms, client.rebalancing_ms, client.generation = client.rebalancing_ms, None, generation
        event = self._event(client, Happened.REBALANCE, "unknown", time_ms, number, "")
        event.generation_id, event.started_ms = generation, started_ms
        event.duration_ms = None if started_ms is None else max(0, time_ms - started_ms)

    def _event(
        self, client: _Client, kind: Happened, reason: str, time_ms: int, number: int, words: str
    ) -> ExplainedEvent:
        event = ExplainedEvent(
            kind=kind,
            group_id=client.group_id,
            member_id=client.member_id,
            client_id=client.client_id or None,
            group_instance_id=client.instance_id,
            time_ms=time_ms,
            zone_assumed=self._zone_assumed,
            reason=reason,
            reason_text=words,
            generation_id=client.generation,
            certainty="likely" if reason == "no_answer" else "certain",
            evidence=Evidence(self._name, number),
        )
        if len(self.events) < EVENTS_MAX:
            self.events.append(event)
        return event

    def _client(self, group: str, client_id: str) -> _Client:
        client = self._clients.get((group, client_id))
        if client is None:
            if len(self._clients) >= _CLIENTS_MAX:
                self._clients.clear()
            client = self._clients[group, client_id] = _Client(group, client_id)
            without = self._clients.get(("", client_id))
            if group and without is not None:
                client.last = without.last
        return client

    def _time(self, line: bytes, needle: str) -> int | None:
        """Find the time of a line in whatever carried it; of one without, the time of the line before."""
        layout = self._layouts.get(needle)
        if layout is None:
            if len(self._layouts) >= _CLIENTS_MAX:
                self._layouts.clear()
            layout = self._layouts[needle] = Layout(self._zone, needle=needle)
        used = self._zone.used
        found = next((message.time_ms for message in layout.read(line) if message.time_ms is not None), None)
        if found is not None:
            self._last_ms, self._zone_assumed = found, self._zone.is_assumed and self._zone.used > used
        return self._last_ms


class _Client:
    """What is known of a consumer so far."""

    def __init__(self, group_id: str, client_id: str) -> None:
        self.group_id, self.client_id = group_id, client_id
        self.member_id: str | None = None
        self.instance_id: str | None = None
        self.generation: int | None = None
        self.rebalancing_ms: int | None = None
        self.last: ExplainedEvent | None = None
