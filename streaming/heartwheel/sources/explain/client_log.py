"""A consumer's own log, parsed for what it shows of the consumer's membership."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from heartwheel.base.phrases import length
from heartwheel.sources.explain.broken_lines import end_of_line
from heartwheel.sources.explain.client_texts import CONTEXT, NEEDLES, RDKAFKA, TEXT_CHARS_MAX, TEXTS, ClientSaid
from heartwheel.sources.explain.explanation import explained, leave_reason
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.wire.explained import REASON_OF, Evidence, ExplainedEvent, Happened
from heartwheel.wire.verdicts import ExpiryReason

LINES_MAX: Final = 200_000
"""Most lines that are kept of one log."""

_CLIENTS_MAX: Final = 10_000
_SAME_MS: Final = 5_000
_LINE_BYTES_MAX: Final = 65_536
_LOGGER: Final = re.compile(r"\s*\((?:[\w$]+\.)+[\w$]+(?::\d+)?\)\s*$")
_REFUSED: Final = (
    (re.compile(r"ILLEGAL_GENERATION|generation id is not|epoch -?\d+ is fenced"), "other_generation"),
    (re.compile(r"FENCED_INSTANCE_ID|fenced id"), "instance_taken"),
)
"""Why a request of a known member was refused (`GroupCoordinator.validateCurrentMember`)."""
_KINDS: Final = {
    ClientSaid.POLL_TIMEOUT: Happened.POLL_TIMEOUT,
    ClientSaid.REMOVED: Happened.REMOVED,
    ClientSaid.NO_ANSWER: Happened.NO_ANSWER,
}


class _Line(NamedTuple):
    """A line of a consumer: its kind, the values of its pattern's groups, and its position."""

    group_id: str
    client_id: str
    instance_id: str | None
    kind: ClientSaid
    parts: dict[str, str]
    time_ms: int
    zone_assumed: bool
    number: int


class ClientLog:
    """Reads the log of one or several consumers.

    Lines of librdkafka name no group, and of kafka-python not all do. Such a line is about the only group that the log
    names, which is known at the log's end: events are made from the lines only then.

    Args:
        zone: the zone of times that name none.
    """

    def __init__(self, name: str, zone: LocalZone) -> None:
        self._name, self._zone = name, zone
        self._layouts: dict[str, Layout] = {}
        self._rest, self._lines = b"", 0
        self._last_ms: int | None = None
        self._zone_assumed = False
        self._kept: list[_Line] = []
        self._clients: dict[tuple[str, str], _Client] = {}
        # By identity, so that a removal that is merged costs no search: a client may write as many as it likes.
        self._events: dict[int, ExplainedEvent] = {}
        self.matched = 0
        """Lines about a group."""

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
            end = end_of_line(whole, found.start())
            number += whole.count(b"\n", counted, start)
            counted = start
            self._read(
                whole[max(start, found.start() - TEXT_CHARS_MAX) : min(end, found.end() + TEXT_CHARS_MAX)], number
            )
        self._lines += whole.count(b"\n")

    def finished(self) -> Iterator[ExplainedEvent]:
        """Return the events of the log, in the order of time."""
        groups = {line.group_id for line in self._kept if line.group_id}
        only = groups.pop() if len(groups) == 1 else ""
        for line in self._kept:
            self._take(line, self._client(line.group_id or only, line.client_id))
        for event in sorted(self._events.values(), key=lambda each: each.time_ms):
            yield explained(event)

    def _read(self, line: bytes, number: int) -> None:
        text = line.decode("utf-8", "replace")
        context = CONTEXT.search(text)
        body = text[context.end() :] if context else text
        found = next(((match, kind) for pattern, kind in TEXTS if (match := pattern.search(body))), None)
        if found is None:
            return
        match, kind = found
        time_ms = self._time(line, context[0] if context else match[0][:12])
        if time_ms is None:
            return
        self.matched += 1
        if len(self._kept) >= LINES_MAX:
            return
        parts = {name: value for name, value in match.groupdict().items() if value is not None}
        group = context["group"] if context else parts.get("group", "")
        rdkafka = RDKAFKA.search(text)
        client_id = context["client"] if context else rdkafka["client"] if rdkafka else ""
        instance_id = context["instance"] if context else None
        self._kept.append(_Line(group, client_id, instance_id, kind, parts, time_ms, self._zone_assumed, number))

    def _take(self, line: _Line, client: _Client) -> None:
        client.instance_id = line.instance_id or client.instance_id
        client.member_id = line.parts.get("member") or client.member_id
        kind, time_ms = line.kind, line.time_ms
        words = _LOGGER.sub("", line.parts.get("words", "")).strip()
        last = client.last
        near = last is not None and time_ms - last.time_ms <= _SAME_MS
        if kind is ClientSaid.LEFT:
            polled = leave_reason(words) == ExpiryReason.POLL_TIMEOUT
            warned = self._poll_timeout_of(client, time_ms)
            if warned is not None:
                warned.member_id, warned.group_id = client.member_id, client.group_id
                warned.generation_id, client.last = client.generation, warned
                return
            happened = Happened.POLL_TIMEOUT if polled else Happened.LEFT
            client.last = self._event(client, happened, leave_reason(words), line, words)
        elif kind is ClientSaid.REBALANCING:
            client.rebalancing_ms = time_ms if client.rebalancing_ms is None else client.rebalancing_ms
        elif kind is ClientSaid.JOINED:
            self._joined(client, line)
        elif kind is ClientSaid.POLLED_LATE:
            if last is not None and last.kind is Happened.POLL_TIMEOUT and last.returned_ms is None:
                last.late_ms = int(line.parts.get("late", 0))
                last.member_id = last.member_id or client.member_id
        elif not (near and last is not None and last.kind is _KINDS[kind]):
            happened = _KINDS[kind]
            reason = next((each for pattern, each in _REFUSED if pattern.search(words)), REASON_OF[happened])
            if happened is Happened.REMOVED and last is not None and last.kind is Happened.NO_ANSWER:
                words = self._merged(last, words, time_ms)
            client.last = self._event(client, happened, reason, line, words)
            if "limit" in line.parts:
                client.last.rebalance_timeout_ms = int(line.parts["limit"])

    def _merged(self, unanswered: ExplainedEvent, words: str, time_ms: int) -> str:
        """Return the words of a removal after missing answers, of which it makes one event: a membership ends once."""
        if unanswered.returned_ms is not None:
            return words
        del self._events[id(unanswered)]
        return f'{words}, {length(time_ms - unanswered.time_ms)} after "{unanswered.reason_text}"'

    def _poll_timeout_of(self, client: _Client, time_ms: int) -> ExplainedEvent | None:
        """Return the poll timeout that a leave belongs to: the client's, or one just before that names no group."""
        for each in (client, self._clients.get(("", client.client_id))):
            last = None if each is None else each.last
            if (
                last is not None
                and last.kind is Happened.POLL_TIMEOUT
                and last.group_id in {"", client.group_id}
                and time_ms - last.time_ms <= _SAME_MS
            ):
                return last
        return None

    def _joined(self, client: _Client, line: _Line) -> None:
        generation, time_ms = int(line.parts.get("number", 0)), line.time_ms
        if client.generation == generation and client.rebalancing_ms is None:
            return  # joined, then synced: two lines
        last = client.last
        if last is not None and last.returned_ms is None:
            last.returned_ms, last.returned_as = time_ms, client.member_id
        started_ms, client.rebalancing_ms, client.generation = client.rebalancing_ms, None, generation
        event = self._event(client, Happened.REBALANCE, "unknown", line, "")
        event.generation_id, event.started_ms = generation, started_ms
        event.duration_ms = None if started_ms is None else max(0, time_ms - started_ms)

    def _event(self, client: _Client, kind: Happened, reason: str, line: _Line, words: str) -> ExplainedEvent:
        event = ExplainedEvent(
            kind=kind,
            group_id=client.group_id,
            member_id=client.member_id,
            client_id=client.client_id or None,
            group_instance_id=client.instance_id,
            time_ms=line.time_ms,
            zone_assumed=line.zone_assumed,
            reason=reason,
            reason_text=words,
            generation_id=client.generation,
            certainty="likely" if kind is Happened.NO_ANSWER else "certain",
            evidence=Evidence(self._name, line.number),
        )
        self._events[id(event)] = event
        return event

    def _client(self, group_id: str, client_id: str) -> _Client:
        client = self._clients.get((group_id, client_id))
        if client is None:
            if len(self._clients) >= _CLIENTS_MAX:
                self._clients.clear()
            client = self._clients[group_id, client_id] = _Client(group_id, client_id)
        return client

    def _time(self, line: bytes, needle: str) -> int | None:
        """Return the time of a line in any layout; for a line without a time, that of the line before."""
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
    """A consumer, as far as its log was read."""

    def __init__(self, group_id: str, client_id: str) -> None:
        self.group_id, self.client_id = group_id, client_id
        self.member_id: str | None = None
        self.instance_id: str | None = None
        self.generation: int | None = None
        self.rebalancing_ms: int | None = None
        self.last: ExplainedEvent | None = None
