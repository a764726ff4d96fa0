"""One run of a tap: it writes new log lines to the topic as events, then marks, then saves the positions."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec
from kafka.errors import KafkaError

from heartwheel.base.phrases import count
from heartwheel.sources.explain.facts import Fact, FactKind
from heartwheel.sources.explain.file_kind import BROKER, HEAD_BYTES, kind_of
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.log_tail import LogTail, TailedLine
from heartwheel.sources.tap.broken_message import BrokenMessage
from heartwheel.sources.tap.gaps import PAUSE_MS, Gaps, LogGap
from heartwheel.sources.tap.holds import Holds
from heartwheel.sources.tap.own_log import OwnLog, dated_ms
from heartwheel.sources.tap.pace import MarkSchedule
from heartwheel.sources.tap.phases import LoggedPhases
from heartwheel.sources.tap.plan import TapFigures, TapPlan
from heartwheel.sources.tap.positions import Positions, PositionsFolder
from heartwheel.sources.tap.request_log import NEEDLE, Answered, RequestLog, breaks_lines
from heartwheel.sources.tap.requests import code_of, event_of, group_of, ids_of, with_begin_unseen
from heartwheel.sources.tap.settling import SETTLE_MS_MAX, Settling
from heartwheel.sources.tap.shared_stream import SharedStream
from heartwheel.sources.tap.writer import Writer
from heartwheel.wire.event_codec import check_ids
from heartwheel.wire.events import FROM_MEMBERS, ID_BYTES_MAX, Event, EventType, RejectedError
from heartwheel.wire.group_heartbeats import HEARTBEAT_BYTES_MAX, GroupHeartbeat
from heartwheel.wire.relayed import FeedFields, FeedWatermark, encode_mark
from heartwheel.wire.requests import decode_request

_SAVE_S: Final = 1.0
_IDLE_S: Final = 0.05
_CLASSIC_MAX: Final = 200_000
_FOREIGN_LINES: Final = 20
"""How many foreign lines, without one of the request logger, are reported to a person."""

_REPORTS_MAX: Final = 10
"""How many omitted requests of a kind are reported to a person; the others are only counted."""

_COMMIT: Final = 8
_CLASSIC_APIS: Final = frozenset({11, 12, 14})
_AT_ONCE: Final = frozenset({12, 68, 76, 88})

_EVENT_OF: Final = {
    FactKind.LOADED: EventType.LOAD,
    FactKind.UNLOADED: EventType.UNLOAD,
    FactKind.FAILED: EventType.EXPIRED,
}

_encode = msgspec.json.Encoder().encode

_Written = tuple[str, bytes, str]
"""A group's id, the value of a record, and the event's id."""


class TapProcess:
    """The part of a tap that its runs share; a run ends when Kafka fails, and the next one continues.

    Attributes:
        token: a random word in the requests to the tapped broker: no client knows it, so none can write lines with it.
        classic: the groups that have sent classic heartbeats, joins or syncs, in the order of the first of them.
        ahead_reported: whether it was reported that lines are ahead of the clock.
        ending: set when the tap is asked to end.
    """

    def __init__(self, plan: TapPlan, report: Callable[[str], None]) -> None:
        self.plan, self.report = plan, report
        self.folder = PositionsFolder(plan.positions)
        self.requests = RequestLog(plan.zone)
        self.classic: dict[str, None] = {}
        self.token = secrets.token_hex(16)
        self.figures = TapFigures()
        self.ahead_reported = False
        self.ending = threading.Event()


class TapRun:
    """The tap between two failures of Kafka."""

    def __init__(
        self,
        tap: TapProcess,
        writer: Writer,
        requests: LogTail,
        broker: LogTail | None,
        known: Positions | None,
        already: set[str],
    ) -> None:
        self._tap, self._writer, self._requests = tap, writer, requests
        self._plan, self._figures = tap.plan, tap.figures
        odd_ms = known.odd_ms if known else -1
        self._own = OwnLog(broker, tap.plan.broker_log, tap.plan.zone, odd_ms, tap.report)
        self._log, self._already = tap.requests, already
        self._holds = Holds(known.holds, known.rebalance_ms) if known else Holds()
        self._gaps = Gaps(known.connections, known.pause) if known else Gaps()
        self._newest_ms = known.newest_ms if known else -1
        self._since_ms = known.since_ms if known else -1
        self._marked = MarkSchedule()
        self._settling = Settling()
        self._phases = LoggedPhases()
        self._unloaded: dict[str, int] = {}
        signs = BrokenMessage(Layout(tap.plan.zone), known.form if known else "")
        self._stream = SharedStream(tap.requests, signs, tap.token.encode(), self._report_left_out)
        self._doubts, self._missed, self._left_out = 0, False, tap.figures.left_out
        self._distrusted = tap.figures.distrusted
        self._answered: Answered | None = None
        self._foreign = 0
        self._saved_s = time.monotonic()
        if requests.lost:
            self._miss()

    def run(self) -> None:
        """Relay until the tap is stopped."""
        self._save()  # so that the start of this run is known whatever happens
        while not self._tap.ending.is_set():
            if not self._turn():
                self._tap.ending.wait(_IDLE_S)
        self._save()

    def _turn(self) -> int:
        """Relay what is new; return how many lines that was."""
        lines = self._requests.read()
        if self._requests.lost:
            self._stream.forget()
            self._miss()
        self._check_file(lines)
        # The coordinator's own log is read after the request log, so it is at least as new.
        self._own.read()
        for part in self._stream.sift(lines, self._requests.position):
            self._missed = self._missed or part.missed
            for run in self._log.runs(part.lines, PAUSE_MS) or [part.lines]:
                self._relay(run)
        self._figures.left_out = self._left_out + self._stream.left_out
        if time.monotonic() - self._saved_s >= _SAVE_S:
            self._save()
        return len(lines)

    def _check_file(self, lines: list[TailedLine]) -> None:
        """Report a file without any line of the request logger: another file may have been meant."""
        if self._foreign < 0:
            return
        if any(NEEDLE.encode() in line.text for line in lines):
            self._foreign = -1
            return
        self._foreign += len(lines)
        if self._foreign < _FOREIGN_LINES:
            return
        kind = kind_of(str(self._plan.request_log), b"\n".join(line.text for line in lines)[:HEAD_BYTES])
        meant = ": it seems to be the broker's own log, which --broker-log names" if kind == BROKER else ""
        self._tap.report(
            f"{self._plan.request_log} has {count(self._foreign, 'line')}, and none of the request logger{meant}; "
            "hint: kafka-request.log is the name that Kafka gives it, docs/tap.md shows how it is switched on"
        )
        self._foreign = -1

    def _relay(self, lines: list[TailedLine]) -> None:
        """Relay lines without a pause between them, and what the coordinator's own log had meanwhile."""
        self._note_time(lines)
        self._report_ahead()
        events = []
        for line in lines:
            event = self._event_or_none(line)
            events += [each for each in (self._contradicted(line), event) if each is not None]
        # Only as far as marks go: by then the requests of that time have been read, and with them any client that
        # forged it.
        self._write([*events, *self._own_log_events(self._newest_ms - self._settling.settle_ms)])
        self._figures.lines, self._figures.unreadable = self._log.lines, self._log.unreadable
        self._mark()

    def _own_log_events(self, until_ms: int) -> list[_Written]:
        """Return the events of the coordinator's own log up to a moment, epoch ms."""
        events = []
        for fact in self._own.due(until_ms):
            if not self._own.is_believed(fact, self._newest_ms):
                continue
            self._holds.note_fact(fact)
            if (event := self._own_log_event(fact)) is not None:
                events.append(event)
        self._figures.distrusted = self._distrusted + self._own.distrusted
        return events

    def _write(self, events: list[_Written]) -> None:
        fresh = [(group, value) for group, value, event_id in events if event_id not in self._already]
        self._already.difference_update(event_id for _, _, event_id in events)
        figures = self._figures
        if fresh:
            self._marked.note_events()
        if fresh and (refused := self._writer.write(fresh)):
            figures.refused += refused
            self._tap.report(
                f"Kafka rejected {count(refused, 'event')} as too large or invalid; no further attempt is made"
            )
        figures.relayed, figures.skipped = figures.relayed + len(fresh), figures.skipped + len(events) - len(fresh)

    def _event_or_none(self, line: TailedLine) -> tuple[str, bytes, str] | None:
        """Return the event of a line; no text of a client in it ends the tap."""
        try:
            return self._event(line)
        except (KafkaError, ConnectionError):
            raise
        except RejectedError as error:
            self._figures.too_large += 1
            self._report(self._figures.too_large, line, f"is not passed on: {error.detail}")
        except Exception as error:  # noqa: BLE001 - a client's text in the line must not stop other groups
            self._figures.failed += 1
            self._report(self._figures.failed, line, f"could not be handled: {type(error).__name__}: {error}"[:300])
        return None

    def _report_left_out(self, line: TailedLine, why: str) -> None:
        self._doubts += 1
        if self._doubts <= _REPORTS_MAX:
            more = "; more of them are only counted" if self._doubts == _REPORTS_MAX else ""
            self._tap.report(
                f"{self._plan.request_log}, byte {line.offset}: {why}; so a client may have written lines beside it: "
                f"they are left out{more}; hint: give the request log a file of its own"
            )

    def _report_ahead(self) -> None:
        """Report once that lines are ahead of the clock."""
        if self._log.ahead_ms >= 0 and not self._tap.ahead_reported:
            self._tap.ahead_reported = True
            self._tap.report(
                f"lines of {self._plan.request_log} that are more than a minute ahead of this machine's clock are "
                f"ignored, one of them at {self._log.ahead_ms} (epoch ms); hint: --utc-offset names the logs' time zone"
            )

    def _report(self, number: int, line: TailedLine, words: str) -> None:
        if number <= _REPORTS_MAX:
            more = "; more of them are only counted" if number == _REPORTS_MAX else ""
            self._tap.report(f"{self._plan.request_log}, byte {line.offset}: the request {words}{more}")

    def _event(self, line: TailedLine) -> tuple[str, bytes, str] | None:
        if breaks_lines(line.text) and (logged_ms := self._log.time_of(line.text)) is not None:
            self._own.distrust(logged_ms, f"{self._plan.request_log}, byte {line.offset}: a text has a line break")
        self._answered = answered = self._log.read(line.text, line.offset)
        if answered is None:
            return None
        check_ids(ids_of(answered))
        self._own.note_request(answered)
        self._holds.note(answered)
        self._gaps.note_request(answered)
        self._settle(answered.logged_ms)  # when much is read at once, lines after a restart still count after it
        if answered.api in _AT_ONCE:
            self._settling.note(answered.logged_ms, answered.logged_ms - answered.arrived_ms)
        if not self._is_relayed(answered):
            return None
        event = event_of(answered)
        if isinstance(event, Event) and answered.arrived_ms < self._since_ms:
            event = with_begin_unseen(event)
        if answered.logged_ms - answered.arrived_ms > SETTLE_MS_MAX:
            # The join was parked, and a load that let it in comes first, also when much is read at once.
            self._write(self._own_log_events(answered.logged_ms - SETTLE_MS_MAX))
        at_ms = max(answered.arrived_ms, self._phases.begun_ms(answered))
        return None if event is None else self._shaped(event, at_ms, answered.id)

    def _is_relayed(self, answered: Answered) -> bool:
        """Return whether a request is relayed: commits only for groups that have sent classic heartbeats.

        A commit does not show the protocol of its group, and keeps no member alive under the newer ones.
        """
        group_id, classic = group_of(answered), self._tap.classic
        if answered.api in _CLASSIC_APIS and group_id not in classic and len(classic) < _CLASSIC_MAX:
            classic[group_id] = None
        elif answered.api not in _CLASSIC_APIS and answered.api != _COMMIT:
            classic.pop(group_id, None)
        return answered.api != _COMMIT or group_id in classic

    def _shaped(self, event: Event | GroupHeartbeat, at_ms: int, event_id: str) -> tuple[str, bytes, str]:
        # A request under way in a gap counts after it: sessions start again there.
        relayed = FeedFields(feed=self._plan.feed, at_ms=max(at_ms, self._since_ms), id=event_id)
        value = _encode(event)
        if len(value) > ID_BYTES_MAX:
            decode_request(value, size_max=HEARTBEAT_BYTES_MAX)
        return event.group_id, value[:-1] + b"," + _encode(relayed)[1:], event_id

    def _contradicted(self, line: TailedLine) -> tuple[str, bytes, str] | None:
        """Return the load of a group that was reportedly unloaded, but in which the broker still accepts requests."""
        answered = self._answered
        if answered is None or group_of(answered) not in self._unloaded or code_of(answered) not in FROM_MEMBERS:
            return None
        group_id = group_of(answered)
        if answered.arrived_ms <= self._unloaded[group_id]:
            return None
        del self._unloaded[group_id]
        self._tap.report(
            f"{self._plan.request_log}, byte {line.offset}: group {group_id!r} was not unloaded: it is answered"
        )
        return self._shaped(Event(group_id=group_id, type=EventType.LOAD), answered.arrived_ms, f"{answered.id}-load")

    def _own_log_event(self, fact: Fact) -> tuple[str, bytes, str] | None:
        """Return the event of a message in the coordinator's own log that the request log does not show.

        A coordinator loaded or unloaded a group, or expired a member, whose session may be known to it alone.
        """
        if fact.kind not in _EVENT_OF or not fact.group_id:
            return None
        kind = _EVENT_OF[fact.kind]
        self._unloaded.pop(fact.group_id, None)
        if kind is EventType.LOAD:
            self._phases.note_load(fact.group_id, fact.time_ms)
        if kind is EventType.UNLOAD and len(self._unloaded) < _CLASSIC_MAX:
            self._unloaded[fact.group_id] = fact.time_ms
        member_id = fact.member_id if kind is EventType.EXPIRED else ""
        if kind is EventType.EXPIRED and not member_id:
            return None
        event = Event(group_id=fact.group_id, type=kind, member_id=member_id)
        return self._shaped(event, dated_ms(fact), f"{fact.time_ms}-b{fact.line}")

    def _note_time(self, lines: list[TailedLine]) -> None:
        """Note the time of the newest line; after a time without lines, report that nothing is known of that time."""
        first_ms, last_ms = self._log.first_time(lines), self._log.first_time(lines[::-1])
        if first_ms is None or last_ms is None:
            return
        if self._since_ms < 0:
            self._since_ms, self._newest_ms = first_ms, max(self._newest_ms, first_ms)
        gap = self._gaps.note(lines, self._newest_ms, first_ms)
        if self._missed:
            # Requests that arrived shortly before were logged where lines were left out, so marks go no further than
            # those.
            known_ms = max(self._newest_ms - self._settling.settle_ms, self._since_ms)
            gap, self._missed = LogGap(known_ms - 1, max(first_ms, self._newest_ms)), False
        if gap is not None:
            self._report_gap(gap)
        self._gaps.note_served(lines, self._log.first_time)
        self._newest_ms = max(self._newest_ms, last_ms)

    def _settle(self, at_ms: int) -> None:
        """Report a restart of the broker, if it is certain at a time of the log, epoch ms."""
        if (gap := self._gaps.settle(at_ms)) is not None:
            self._write(self._own_log_events(gap.since_ms))  # a load in the gap keeps its time
            self._report_gap(gap)

    def _report_gap(self, gap: LogGap) -> None:
        """Report a gap: nothing is known of it, and nothing more will come from the time before."""
        self._write_mark(gap.before_ms + 1, at_once=True)
        self._since_ms = gap.since_ms
        self._figures.gaps += 1
        away = f"{(gap.since_ms - gap.before_ms) / 1000:.1f} s"
        if gap.is_restart:
            self._tap.report(f"the broker was restarted, and is back after {away}: every session starts again")
        else:
            self._tap.report(
                f"no line was logged for {away}: what happened in that time is not known, so every session starts again"
            )

    def _miss(self) -> None:
        """Report that lines are lost: what was known ends before them, and starts again with the next line."""
        self._figures.gaps += 1
        self._since_ms = -1
        self._gaps.forget()
        self._tap.report(
            "the log that was being read is gone, and the rest of it was not read: every session starts again"
        )

    def _mark(self) -> None:
        """Write how far everything has been relayed, if that is further than before."""
        self._settle(self._newest_ms)
        if self._since_ms < 0 or self._gaps.pause is not None:
            return
        self._write_mark(max(self._newest_ms - self._settling.settle_ms, self._since_ms))

    def _write_mark(self, passed_ms: int, *, at_once: bool = False) -> None:
        held = self._holds.held(passed_ms)
        self._figures.held = len(held)
        if not self._marked.is_due(passed_ms, busy=bool(held), at_once=at_once):
            return
        self._writer.write_mark(self._mark_of(passed_ms, held))
        self._marked.note(passed_ms)
        self._figures.passed_ms = max(self._figures.passed_ms, passed_ms)

    def _mark_of(self, passed_ms: int, held: dict[str, int]) -> bytes:
        passed_ms, held = self._holds.named(passed_ms, held)
        mark = FeedWatermark(
            feed=self._plan.feed, passed_ms=max(passed_ms, 0), since_ms=min(self._since_ms, passed_ms), held=held
        )
        return encode_mark(mark)

    def _save(self) -> None:
        self._saved_s = time.monotonic()
        self._tap.folder.save(
            Positions(
                feed=self._plan.feed,
                request_log=self._stream.begin or self._requests.position,
                broker_log=self._own.position,
                end=self._writer.end,
                since_ms=self._since_ms,
                newest_ms=self._newest_ms,
                holds=self._holds.groups,
                rebalance_ms=self._holds.rebalance_ms,
                connections=self._gaps.connections,
                pause=self._gaps.pause,
                odd_ms=self._own.odd_ms,
                form=self._stream.form,
            )
        )
