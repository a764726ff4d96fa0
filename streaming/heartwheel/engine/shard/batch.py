"""One batch of a shard: what it has done so far, and its result."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from heartwheel.engine.shard.admission import Admission, Refusal
from heartwheel.engine.time import Outage
from heartwheel.wire.verdicts import Verdict


class BatchResult(NamedTuple):
    """The result of one batch.

    Args:
        verdicts: in the order in which they were emitted; within each group in the order of time.
        refused: records that reached a limit.
        outages: gaps that turned out to be outages, in the order of their ends.
        counts: the number of occurrences in this batch, by name.
    """

    verdicts: list[Verdict]
    refused: list[Refusal]
    outages: list[Outage]
    counts: Counter[str]


class Batch(NamedTuple):
    """What one batch has done so far. Its parts are changed in place.

    Args:
        verdicts: the shard's list, to which the rules of every group append.
        admission: the room that is left, and the refused records.
    """

    verdicts: list[Verdict]
    admission: Admission
    counts: Counter[str]

    def result(self, outages: list[Outage]) -> BatchResult:
        """Return the result: verdicts counted by kind, and copies of what the next batch resets."""
        kinds = Counter(verdict.kind for verdict in self.verdicts)
        self.counts.update({f"verdict_{kind}": n for kind, n in kinds.items()})
        return BatchResult(list(self.verdicts), self.admission.refused, outages, self.counts)
