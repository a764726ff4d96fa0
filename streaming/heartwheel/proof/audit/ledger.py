"""A ledger of findings: it counts all, and keeps the first of each kind."""

from __future__ import annotations

from typing import Any

import msgspec

from heartwheel.proof.audit.findings import Finding, FindingKind


class Ledger(msgspec.Struct):
    """A ledger of findings.

    Args:
        examples_max: number of findings of a kind that are kept.
        kept: the first of each kind, in the order in which they were found.
        unsettled: number of findings put aside, about groups whose order of records is not defined.
    """

    examples_max: int
    counts: dict[FindingKind, int] = {}
    kept: list[Finding] = []
    unsettled: int = 0

    def add(self, kind: FindingKind, **fields: Any) -> None:
        """Add a finding; `fields` are those of `Finding`."""
        seen = self.counts.get(kind, 0)
        self.counts[kind] = seen + 1
        if seen < self.examples_max:
            self.kept.append(Finding(kind=kind, **fields))

    def copy(self) -> Ledger:
        """Return an independent copy."""
        return Ledger(self.examples_max, dict(self.counts), list(self.kept), self.unsettled)
