"""A tap as its user runs it: `heartwheel tap` as a process that can be killed and started again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Self

from heartwheel.kafka.broker.embedded import EmbeddedKafka
from support.job import Job


class TapProcess:
    """One `heartwheel tap`, for the length of a `with` block.

    Args:
        job: whom it passes on to; its settings are the tap's.
        broker: whose logs it reads; it writes down its requests.
        broker_id: likewise.
        folder: for its positions and its own output.
        from_begin: whether it begins at the begin of the request log.
    """

    def __init__(
        self, job: Job, broker: EmbeddedKafka, broker_id: int, feed: str, folder: Path, *, from_begin: bool = True
    ) -> None:
        self._command = [
            *(sys.executable, "-m", "heartwheel", "tap", str(broker.request_log)),
            *(("--from-begin",) if from_begin else ()),
            *("--broker-log", str(broker.log_file), "--broker-id", str(broker_id)),
            *("--feed", feed, "--positions", str(folder / f"{feed}.positions")),
            *(word for flag in job.flags for word in ("--set", flag)),
        ]
        self._log = folder / f"{feed}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def said(self) -> str:
        """What it has printed so far."""
        return self._log.read_text()

    def start(self) -> None:
        """Start it, where it left off if it ran before."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill it, as a crash would."""
        assert self._process is not None
        assert self._process.poll() is None, self.said
        self._end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
