"""One batch of a shard: what it has come to so far, and what it came to."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from heartwheel.log_time import Outage
from heartwheel.shard.admission import Admission, Refusal
from heartwheel.wire.verdicts import Verdict


class BatchResult(NamedTuple):
    """What one batch came to.

    Args:
        verdicts: in the order in which they were reached; of each group in the order of time.
        refused: records that met a limit.
        outages: gaps that turned out to be outages, in the order of their ends.
        counts: how often what happened in this batch, by name.
    """

    verdicts: list[Verdict]
    refused: list[Refusal]
    outages: list[Outage]
    counts: Counter[str]


class Batch(NamedTuple):
    """What one batch has come to so far; its parts are added to in place.

    Args:
        verdicts: the shard's list, to which the rules of every group write.
        admission: the room that is left, and who found none.
        counts: how often what happened, by name.
    """

    verdicts: list[Verdict]
    admission: Admission
    counts: Counter[str]

    def result(self, outages: list[Outage]) -> BatchResult:
        """Count the verdicts by their kind, and copy what the next batch begins anew."""
        kinds = Counter(verdict.kind for verdict in self.verdicts)
        self.counts.update({f"verdict_{kind}": n for kind, n in kinds.items()})
        return BatchResult(list(self.verdicts), self.admission.refused, outages, self.counts)
