"""What must hold of any bytes in a broker's log: nothing raises, the next line counts, each byte costs alike."""

from __future__ import annotations

import io
import time
from typing import Final

from heartwheel.sources.explain.history import History
from heartwheel.sources.explain.layouts import Layout
from heartwheel.sources.explain.lines import Lines
from heartwheel.sources.explain.opened_log import decoded
from heartwheel.sources.explain.order import in_order
from heartwheel.sources.explain.scan import FactReader, Scanned, scan
from heartwheel.sources.explain.shown import rows_of_log
from heartwheel.sources.explain.summary import LogSummary
from heartwheel.sources.tap.request_log import RequestLog
from support.hostile_lines import HEAD, LOGGER

NEXT: Final = f"{HEAD}Member next-1 in group next has failed, removing it from the group.{LOGGER}\n"
_REPEATED: Final = 16
_LEAST_NS: Final = 100_000_000
_NS_PER_BYTE_MAX: Final = 20_000
"""Twenty times what the worst honest line costs; a quadratic pattern is beyond it from some 10 KiB on."""


def check_line(line: bytes) -> None:
    """Explain a log with this line and another one in it, to the end of every output; read it as a request, too."""
    scanned = Scanned()
    reader = FactReader("log", 0, Layout(), scanned)
    log = decoded(io.BytesIO(b"x" + line + b"\n" + NEXT.encode()), "log")
    events = list(History(["log"]).explain(in_order(scan(log, reader, scanned))))
    lines, summary = Lines(), LogSummary()
    for event in events:
        lines.of(event)
        summary.add(event)
    summary.groups()
    list(rows_of_log(events))
    is_read = any(event.group_id == "next" for event in events)
    assert is_read or any("next-1" in each.text for each in scanned.suspicious_lines) or scanned.suspicious > 100
    requests = RequestLog()
    requests.read(line, 0)
    requests.time_of(line)


def check_cost(line: bytes) -> None:
    """Read a line that repeats these bytes: the processor's time for a byte stays below a generous bound."""
    long = line.replace(b"\n", b" ") * _REPEATED
    begun_ns = time.process_time_ns()
    check_line(HEAD.encode() + long)
    took_ns = time.process_time_ns() - begun_ns
    assert took_ns < _LEAST_NS + _NS_PER_BYTE_MAX * len(long), f"{took_ns / 1e6:.0f} ms for {len(long)} bytes"
