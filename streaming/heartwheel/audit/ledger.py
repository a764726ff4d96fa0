"""The findings as they come: all are counted, the first of each kind are kept."""

from __future__ import annotations

from typing import Any

import msgspec

from heartwheel.audit.findings import Finding, FindingKind


class Ledger(msgspec.Struct):
    """Count findings.

    Args:
        examples_max: how many findings of a kind are kept.
        counts: how many there are of each kind.
        kept: the first of each kind, in the order in which they were found.
        unsettled: how many were put aside, as nothing promises what they miss.
    """

    examples_max: int
    counts: dict[FindingKind, int] = {}
    kept: list[Finding] = []
    unsettled: int = 0

    def add(self, kind: FindingKind, **fields: Any) -> None:
        """Note a finding; `fields` are those of `Finding`."""
        seen = self.counts.get(kind, 0)
        self.counts[kind] = seen + 1
        if seen < self.examples_max:
            self.kept.append(Finding(kind=kind, **fields))

    def copy(self) -> Ledger:
        """Return a ledger that goes on by itself."""
        return Ledger(self.examples_max, dict(self.counts), list(self.kept), self.unsettled)
