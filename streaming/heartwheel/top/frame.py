"""A frame: everything that the terminal shows at one moment, taken out of the picture at once."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.live.at_risk import AtRisk, at_risk
from heartwheel.live.expiration import Expiration
from heartwheel.live.expirations import ExpirationFilter, list_expirations
from heartwheel.live.groups import Group, GroupFilter, list_groups
from heartwheel.live.now import Now, View, now_of
from heartwheel.live.picture import Picture

EXPIRATIONS_MAX: Final = 200
"""Most expirations of a frame."""

AT_RISK_MAX: Final = 50
"""Most members at risk of a frame."""

GROUPS_MAX: Final = 200
"""Most groups of a frame."""


class CanaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """What the expirations of the canary's groups show: how many, when the newest was known, how late they were.

    The canary itself runs beside the dashboard, and only there is known what it expects.
    """

    expirations: int
    newest_ms: int
    lateness_ms_max: int


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """What is shown at one moment.

    Args:
        now: how things stand.
        canary: what is seen of a canary, if any.
        text: what the tables are filtered by.
        matched: expirations that match.
        expirations: the newest of them, newest first.
        at_risk: members that match, nearest to their expiry first.
        groups: groups that match: those that rebalance, then those in a storm, then those that changed last.
    """

    now: Now
    canary: CanaryLine | None
    text: str
    matched: int
    expirations: list[Expiration]
    at_risk: list[AtRisk]
    groups: list[Group]


def frame_of(picture: Picture, view: View, *, now_ms: int, text: str = "") -> Frame:
    """Take a frame.

    Args:
        picture: what the topics say.
        view: what it is looked at with.
        now_ms: wall clock, epoch ms.
        text: words that ids, clients or hosts must hold.
    """
    with picture.lock:
        found = list_expirations(picture, ExpirationFilter(text=text), limit=EXPIRATIONS_MAX)
        groups = list_groups(picture, GroupFilter(text=text), view.storm, now_ms=now_ms, limit=GROUPS_MAX)
        return Frame(
            now=now_of(picture, view, now_ms=now_ms),
            canary=_canary(picture),
            text=text,
            matched=found.matched,
            # They come by arrival, which while topics are caught up with is partition by partition.
            expirations=sorted(found.rows, key=lambda row: (row.append_ms, row.seq), reverse=True),
            at_risk=risk_of(picture, now_ms=now_ms, text=text),
            groups=sorted(groups.rows, key=_urgency),
        )


def risk_of(picture: Picture, *, now_ms: int, text: str = "") -> list[AtRisk]:
    """List the members nearest to their expiry whose ids hold all words of a text."""
    rows = at_risk(picture, now_ms=now_ms, limit=10 * AT_RISK_MAX).rows
    return [row for row in rows if _holds(text, row.group_id, row.member_id)][:AT_RISK_MAX]


def narrowed(frame: Frame, text: str) -> Frame:
    """Leave in a frame what matches a text, without a look at the picture: what was held stays as it was."""
    expirations = [
        row
        for row in frame.expirations
        if _holds(text, row.group_id, row.member_id, row.group_instance_id, row.client_id, row.client_host)
    ]
    return msgspec.structs.replace(
        frame,
        text=text,
        matched=len(expirations),
        expirations=expirations,
        at_risk=[row for row in frame.at_risk if _holds(text, row.group_id, row.member_id)],
        groups=[group for group in frame.groups if _holds(text, group.group_id)],
    )


def _holds(text: str, *names: str | None) -> bool:
    joined = "\n".join(name for name in names if name).casefold()
    return all(word in joined for word in text.casefold().split())


def _urgency(group: Group) -> int:
    return 0 if group.blocked else 1 if group.storm else 2


def _canary(picture: Picture) -> CanaryLine | None:
    rows = [row for row in picture.window.rows if picture.is_canary(row.group_id)]
    if not rows:
        return None
    return CanaryLine(
        expirations=len(rows), newest_ms=rows[-1].append_ms, lateness_ms_max=max(row.known_late_ms or 0 for row in rows)
    )
