"""Renewal after an outage: every timer of a member or phase starts again, as no member was silent meanwhile.

Kafka's coordinator does the same once it has loaded a partition (`GroupMetadataManager.onLoaded`). A renewal derives no
verdict, and no member counts as seen.
"""

from __future__ import annotations

import heapq

from heartwheel.proof.audit.rules.epoch_groups import renew_people
from heartwheel.proof.audit.rules.members import patience_ms
from heartwheel.proof.audit.rules.model import JOIN, MEMBER, NEVER, SYNC, AuditedGroup


def renew(group: AuditedGroup, from_ms: int) -> None:
    """Restart the running timers; a timer that ends later than its restart would is not changed.

    Args:
        group: changed in place; timers that ended before the outage have fired.
        from_ms: end of the outage, epoch ms.
    """
    group.renewed_ms = max(group.renewed_ms, from_ms)
    if group.modern is not None:
        renew_people(group, from_ms)
        return
    for member in (*group.members.values(), *group.pending.values()):
        deadline = from_ms + member.timer_ms
        if NEVER != member.deadline_ms < deadline:
            member.deadline_ms = deadline
            if deadline < member.filed_ms:
                member.filed_ms = deadline
                heapq.heappush(group.heap, (deadline, MEMBER, member.seq, member.member_id))
    patience = patience_ms(group)
    part_ms = group.join_delay_ms if group.initial else patience
    if part_ms is not None and NEVER != group.join_ms < from_ms + part_ms:
        group.join_ms, group.join_from_ms = from_ms + part_ms, from_ms
        heapq.heappush(group.heap, (group.join_ms, JOIN, 0, ""))
    if patience is not None and NEVER != group.sync_ms < from_ms + patience:
        group.sync_ms, group.sync_from_ms = from_ms + patience, from_ms
        heapq.heappush(group.heap, (group.sync_ms, SYNC, 0, ""))
