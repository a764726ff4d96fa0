"""Logs of containers that are read into a history, and compared with what the containers wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from heartwheel.sources.explain.run import explain_logs
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.explained_history import explain_history
from heartwheel.sources.watch.history_file import HistoryFile
from heartwheel.sources.watch.watched_logs import WatchedLogs
from heartwheel.wire.explained import ExplainedEvent
from support.container_logs import KeptLog
from support.job import wait_for


class Reading:
    """Logs of containers that are read into a history."""

    def __init__(self, logs: WatchedLogs, history: HistoryFile) -> None:
        self.logs, self._history = logs, history

    def turn(self) -> int:
        """Read what there is, once."""
        return self.logs.read().size

    def until_lines(self, lines: int) -> None:
        """Read until so many lines were read, and see that there are no more."""

        def is_done() -> bool:
            self.turn()
            return self.logs.scanned.lines >= lines

        wait_for(is_done, lambda: f"{lines} lines; {self.logs.scanned.lines} were read")
        assert self.logs.scanned.lines == lines

    def until_at(self, log: KeptLog) -> None:
        """Read until a container's log is the one that is read of the pod `broker-1`, and that is saved."""

        def is_at() -> bool:
            self.turn()
            self.logs.save()
            saved = self._history.saved("kubernetes:kafka/broker-1")
            return saved is not None and saved.position.tail.head == log.id

        wait_for(is_at, f"the log of {log.id}")


def _told(events: Sequence[ExplainedEvent], names: dict[str, str]) -> list[bytes]:
    """Return events in the order of time, with the names of their logs replaced."""
    for event in events:
        event.evidence = msgspec.structs.replace(
            event.evidence, file=names.get(event.evidence.file, event.evidence.file)
        )
    return [msgspec.json.encode(event) for event in events]


def check(folder: Path, logs: dict[str, list[KeptLog]], *, prefix: str = "kubernetes:kafka/") -> None:
    """Compare the history with what the containers wrote; names of logs have a prefix."""
    names = {}
    for pod, containers in logs.items():
        for number, log in enumerate(containers):
            file = folder / f"{pod}.{number}.log"
            file.write_bytes(log.text)
            names[str(file)] = f"{prefix}{pod}"
    wanted = _told(list(explain_logs(list(names), Scanned(), stdin=None)), names)
    found = _told(list(explain_history(folder / "h.db", Scanned())), {})
    assert wanted
    assert found == wanted
