"""After an outage every timer of a member starts anew, and so do those of the phases: nobody was silent meanwhile.

As Kafka's coordinator does once it has loaded a partition (`GroupMetadataManager.onLoaded`). Nothing is said by it, and
nobody counts as seen.
"""

from __future__ import annotations

import heapq

from heartwheel.audit.rules.epoch_groups import renew_people
from heartwheel.audit.rules.members import patience_ms
from heartwheel.audit.rules.model import JOIN, MEMBER, NEVER, SYNC, Group


def renew(group: Group, from_ms: int) -> None:
    """Start the running timers anew; one that ends later than it would then is left alone.

    Args:
        group: changed in place; what ended before the outage has fired.
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
