"""What `heartwheel explain` reads: logs, or a history of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from heartwheel.readers.live.lane_store import MemberJoined
from heartwheel.sources.explain.causes.join import Causes
from heartwheel.sources.explain.local_zone import LocalZone
from heartwheel.sources.explain.run import explain_logs, follow_logs
from heartwheel.sources.explain.scanned import Scanned
from heartwheel.sources.watch.explained_history import explain_history
from heartwheel.wire.explained import ExplainedEvent


class LogSource(NamedTuple):
    """Logs, or a history in place of them.

    Args:
        files: names of the logs; none if there is a history.
        history: the file of the history; `None` if there are logs.
        stdin: the stream for `-`; `None` where all are files.
        zone: of times in logs that name none.
        causes: what happened to pods and machines.
    """

    files: Sequence[str]
    history: Path | None
    stdin: BinaryIO | None
    zone: LocalZone
    causes: Causes | None = None

    @property
    def names(self) -> Sequence[str]:
        """What a page calls it."""
        return self.files if self.history is None else [str(self.history)]

    def explain(
        self,
        scanned: Scanned,
        progress: Callable[[int], None] | None = None,
        joined: Callable[[MemberJoined], None] | None = None,
    ) -> Iterator[ExplainedEvent]:
        """Return the events, in the order of time.

        Args:
            scanned: where to count.
            progress: called with the number of bytes read of logs.
            joined: called with each member that joins.
        """
        if self.history is None:
            yield from explain_logs(
                self.files,
                scanned,
                stdin=self.stdin,
                zone=self.zone,
                progress=progress,
                joined=joined,
                causes=self.causes,
            )
        else:
            yield from explain_history(self.history, scanned, joined, self.causes)
            self.zone.used += scanned.zone_assumed

    def follow(
        self, scanned: Scanned, go_on: Callable[[], bool], joined: Callable[[MemberJoined], None] | None = None
    ) -> Iterator[list[ExplainedEvent]]:
        """Return the events of logs as they grow, those of each look.

        Args:
            scanned: where to count.
            go_on: asked before each look whether to go on.
            joined: called with each member that joins.
        """
        return follow_logs(
            self.files,
            scanned,
            stdin=self.stdin,
            zone=self.zone,
            go_on=go_on,
            joined=joined,
            causes=self.causes,
        )
