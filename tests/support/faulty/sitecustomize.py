"""Faults inside the job's Python processes, at points that a test names; Python imports this when it is on the path.

A test puts this folder on `PYTHONPATH` and names a folder of its own in `HEARTWHEEL_TEST_FAULTS`. What lies there then
decides. While a file `hold` exists, a shard with expirations of the group that it names, or every shard if it names
none, waits inside the state function, after it has written `held-<pid>` with the batch's timestamp. With a file `bloat`
what a shard puts out is far larger than the JVM's heap. The partition that a file `withhold` names gets no ticks.
With a file `forget` no shard keeps the heartbeats of who is gone.
"""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path
from typing import Any

BLOAT_BYTES = 256 << 20


def _advance(real: Any, folder: Path, *arguments: Any, **named: Any) -> Any:
    if (folder / "forget").exists():
        from heartwheel.engine.shard import heartbeats  # noqa: PLC0415 - only where faults are wanted

        heartbeats.KEPT_BYTES_MAX = 0  # type: ignore[misc]  # for good, in this worker
    row, output = real(*arguments, **named)
    hold = folder / "hold"
    if _concerns(hold, output):
        (folder / f"held-{os.getpid()}").write_text(str(named["batch_ms"]))
        while hold.exists():
            time.sleep(0.01)
    if (folder / "bloat").exists():
        output.records[0] = output.records[0]._replace(value="x" * BLOAT_BYTES)
    return row, output


def _concerns(hold: Path, output: Any) -> bool:
    try:
        group = hold.read_text()
    except FileNotFoundError:
        return False
    return not group or any(record.topic == "expirations" and record.key == group for record in output.records)


class _NeverAnswered:
    is_done = False


def _send(real: Any, folder: Path, ticker: Any, now_s: float) -> None:
    withhold = folder / "withhold"
    withheld = withhold.read_text() if withhold.exists() else ""
    for number, part in ticker._partitions.items():
        if str(number) == withheld:
            part.flying = _NeverAnswered
        elif part.flying is _NeverAnswered:
            part.flying = None
    real(ticker, now_s)


def _install(folder: Path) -> None:
    from heartwheel.engine.heartbeats import advance as module  # noqa: PLC0415 - only where faults are wanted
    from heartwheel.engine.runtime.driver import ticker  # noqa: PLC0415 - likewise

    send = ticker.Ticker._send
    setattr(ticker.Ticker, "_send", lambda self, now_s: _send(send, folder, self, now_s))  # noqa: B010 - mypy

    real = module.advance_shard

    # Under its own name: the driver tells the workers this name, and each of them finds its own wrapper there.
    @functools.wraps(real)
    def advance(*arguments: Any, **named: Any) -> Any:
        return _advance(real, folder, *arguments, **named)

    module.advance_shard = advance


if "HEARTWHEEL_TEST_FAULTS" in os.environ:
    _install(Path(os.environ["HEARTWHEEL_TEST_FAULTS"]))
