"""An independent audit. It compares what a job wrote with what its log says, by a second implementation of the rules.

It shares the schemas of records and rows with the engine, and no other code (`test_layers.py`).

>>> from heartwheel.proof.audit import Audit
>>> audit = Audit()
>>> audit.event(0, 0, 0, b'{"group_id": "orders", "member_id": "a", "session_timeout_ms": 10000}')
>>> report = audit.finish(clock_ms=20_000)
>>> report.ok, [(finding.kind.value, finding.member_id) for finding in report.findings][-2:]
(False, [('missed', 'a'), ('missed', None)])
"""

from heartwheel.proof.audit.audit import Audit
from heartwheel.proof.audit.config import AuditConfig
from heartwheel.proof.audit.findings import Finding, FindingKind, Report
from heartwheel.proof.audit.order import in_log_order
from heartwheel.proof.audit.snapshot import AuditStateError

__all__ = ["Audit", "AuditConfig", "AuditStateError", "Finding", "FindingKind", "Report", "in_log_order"]
