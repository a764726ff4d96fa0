"""A frame: everything that the terminal shows at one moment, read from the picture at once."""

from __future__ import annotations

from typing import Final

import msgspec

from heartwheel.readers.live.at_risk import AtRisk, at_risk
from heartwheel.readers.live.expiration import Expiration
from heartwheel.readers.live.expirations import ExpirationFilter, list_expirations
from heartwheel.readers.live.group_list import GroupFilter, list_groups
from heartwheel.readers.live.groups import Group
from heartwheel.readers.live.now import View, now_of
from heartwheel.readers.live.now_document import Now
from heartwheel.readers.live.picture import Picture

EXPIRATIONS_MAX: Final = 200
"""Most expirations of a frame."""

AT_RISK_MAX: Final = 50
"""Most members at risk of a frame."""

GROUPS_MAX: Final = 200
"""Most groups of a frame."""


class CanaryLine(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the expirations in the canary's groups: how many, when the newest was known, how late they were.

    The canary itself runs with the dashboard, and only there it is known which ones are expected.
    """

    expirations: int
    newest_ms: int
    lateness_ms_max: int


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the screen at one moment.

    Args:
        canary: the figures of a canary, if one was seen.
        text: the filter of the tables.
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
    """Return a frame of the picture.

    Args:
        text: words that ids, clients or hosts must contain.
    """
    with picture.lock:
        found = list_expirations(picture, ExpirationFilter(text=text), limit=EXPIRATIONS_MAX)
        groups = list_groups(picture, GroupFilter(text=text), view.storm, now_ms=now_ms, limit=GROUPS_MAX)
        return Frame(
            now=now_of(picture, view, now_ms=now_ms),
            canary=_canary(picture),
            text=text,
            matched=found.matched,
            # The rows are in the order of arrival, which is partition by partition while topics are caught up with.
            expirations=sorted(found.rows, key=lambda row: (row.append_ms, row.seq), reverse=True),
            at_risk=risk_of(picture, now_ms=now_ms, text=text),
            groups=sorted(groups.rows, key=_urgency),
        )


def risk_of(picture: Picture, *, now_ms: int, text: str = "") -> list[AtRisk]:
    """Return the members nearest to their expiry whose ids contain all words of a text."""
    rows = at_risk(picture, now_ms=now_ms, limit=10 * AT_RISK_MAX).rows
    return [row for row in rows if _holds(text, row.group_id, row.member_id)][:AT_RISK_MAX]


def narrowed(frame: Frame, text: str) -> Frame:
    """Return a frame with only what matches a text, without reading the picture: a paused frame stays as it was."""
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
